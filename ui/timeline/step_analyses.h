// SPDX-License-Identifier: GPL-3.0-or-later
//
// Idle intervals, figures and insights of the steps that a scene shows, kept while their traces are shown. Asked for, they are:
//
//   a short step      worked out at once, and again when it has grown or is finished: by any slice while it is small, by a
//                     noticeable part when it is larger, so that a long step costs no more per slice than a short one
//   any other         worked out beside the window. Until that is done there is nothing, or what was known of the step
//                     before; arrived() tells, and whoever shows them asks again. Of a run that goes on a copy is looked at.
//
// GUI thread. What was asked for of traces that are gone is dropped, whether it is being worked at or was delivered late.
#pragma once

#include "ui/bridge/background_job.h"
#include "ui/timeline/gap_table.h"
#include "ui/timeline/step_table.h"
#include "ui/timeline/trace_source.h"

#include "traces/analysis/critical_path.h"
#include "traces/analysis/exchanges.h"
#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/slack.h"
#include "traces/analysis/steady_state.h"
#include "traces/analysis/step_index.h"

#include <QObject>

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace stagecraft::ui {

// What there is to say of a step once it is whole. Without a path for one that is not, or not yet looked at.
struct StepInsight {
    std::optional<traces::CriticalPath> path;
    std::vector<traces::MemoryPeak> peaks; // by rank
    std::optional<traces::SteadyState> steady;
    std::optional<traces::StepSlack> slack; // not of very long steps
    std::vector<traces::ExchangeKernel> exchanges; // by kernel
};

class StepAnalyses : public QObject {
    Q_OBJECT
public:
    // Slices that are passed over within a part of a frame. For a finished trace those of all its steps count: to find
    // one of them takes a look at all.
    static constexpr std::size_t kDirectSlices = 50'000;
    // Gaps kept of steps that nobody has asked for lately: some 200 MB.
    static constexpr std::size_t kMostGaps = 4'000'000;

    explicit StepAnalyses(QObject* parent = nullptr);
    ~StepAnalyses() override;

    // For a picture that is drawn once: everything is worked out when it is asked for, however long it takes.
    void setAtOnce() { atOnce_ = true; }
    void keepOnly(const std::vector<TraceSource>& sources);

    const GapTable& gaps(const TraceSource& source, const StepTable& steps, traces::Step step);
    const std::optional<traces::StepFigures>& figures(const TraceSource& source, const StepTable& steps, traces::Step step);
    const StepInsight& insight(const TraceSource& source, const StepTable& steps, traces::Step step);
    // What gaps() and figures() last gave is nothing, or outdated, for being worked out.
    [[nodiscard]] bool calculating(const TraceSource& source, const StepTable& steps, traces::Step step) const;
    [[nodiscard]] bool busy() const { return !wanted_.empty() || (job_ && job_->busy()); }

signals:
    void arrived();

private:
    struct Kept {
        StepPlace gapsAt; // how far the step had come
        StepPlace figuresAt;
        StepPlace insightAt;
        GapTable gaps;
        std::optional<traces::StepFigures> figures;
        StepInsight insight;
        std::uint64_t askedIn = 0; // round
    };
    struct OfTrace {
        std::weak_ptr<const traces::Trace> trace;
        std::shared_ptr<const traces::StepIndex> index; // of a trace that no longer grows
        std::map<traces::Step, Kept> steps;
    };
    struct Wanted {
        std::weak_ptr<const traces::Trace> trace;
        bool growing = false;
        StepPlace place;
    };
    struct Result {
        std::weak_ptr<const traces::Trace> trace;
        std::shared_ptr<const traces::StepIndex> index;
        StepPlace place;
        std::optional<GapTable> gaps; // nullopt: was stopped
        std::optional<traces::StepFigures> figures;
        StepInsight insight;
    };

    [[nodiscard]] bool isDirect(const TraceSource& source, const StepPlace& place) const;
    [[nodiscard]] bool isCurrent(const TraceSource& source, const StepPlace& kept, const StepPlace& now) const;
    OfTrace& ofTrace(const std::shared_ptr<const traces::Trace>& trace);
    Kept& kept(const TraceSource& source, traces::Step step);
    void want(const TraceSource& source, const StepPlace& place);
    void startNext();
    void take(Result result);
    void dropOldGaps();

    bool atOnce_ = false;
    std::vector<OfTrace> traces_;
    std::vector<Wanted> wanted_; // the last is the next one
    std::optional<Wanted> atWork_;
    std::uint64_t round_ = 2;                    // counts what was delivered
    std::unique_ptr<BackgroundJob<Result>> job_; // made when first needed
};

} // namespace stagecraft::ui
