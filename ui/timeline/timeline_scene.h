// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the timeline, the overview and the memory plot show together: the sources, where their times lie on the shared
// axis, and what was found out about their steps. One scene per window; GUI thread only.
//
// Shown time is 0 at the start of the reference, which is the measured source where there is one. A source beside it is
// moved step by step, so that both begin each step together; a simulation of one step is shown again under each.
//
//   TimelineScene scene;
//   scene.setSources({{simulated}, {measured, {}, true}});
//   scene.dataArrived();                  // after each batch that was added to `measured`
//   TimelineWidget timeline(scene);
//   MemoryPlot memory(scene);
#pragma once

#include "ui/timeline/step_analyses.h"
#include "ui/timeline/step_table.h"
#include "ui/timeline/time_axis.h"
#include "ui/timeline/timeline_item.h"
#include "ui/timeline/trace_source.h"

#include <QObject>

#include <optional>
#include <utility>
#include <vector>

namespace stagecraft::ui {

// A stretch of a trace's own time, shown moved by `shift`.
struct Segment {
    traces::Interval span;
    traces::TimeNs shift = 0;

    [[nodiscard]] traces::Interval shown() const { return {span.begin + shift, span.end + shift}; }
    bool operator==(const Segment&) const = default;
};

class TimelineScene : public QObject {
    Q_OBJECT
public:
    explicit TimelineScene(QObject* parent = nullptr);

    // For a picture that is drawn once: no step is analysed beside it, but whenever it is asked for.
    void analyseAtOnce() { analyses_.setAtOnce(); }

    // One change with one signal: whoever hears it finds sources and arrangement that belong together.
    void setSources(std::vector<TraceSource> sources, Arrangement arrangement);
    void setSources(std::vector<TraceSource> sources) { setSources(std::move(sources), arrangement_); }
    void setArrangement(Arrangement arrangement);
    void setGrowing(int source, bool growing);
    void dataArrived(); // growing traces got longer

    [[nodiscard]] const std::vector<TraceSource>& sources() const { return sources_; }
    [[nodiscard]] int sourceCount() const { return static_cast<int>(sources_.size()); }
    [[nodiscard]] const traces::Trace& trace(int source) const { return *sources_[static_cast<std::size_t>(source)].trace; }
    [[nodiscard]] SourceRole role(int source) const { return roleOf(sources_[static_cast<std::size_t>(source)]); }
    [[nodiscard]] Arrangement arrangement() const { return arrangement_; }
    [[nodiscard]] int reference() const { return reference_; } // index of the source that sets the time; -1 without sources
    [[nodiscard]] bool drawnAsOutline(int source) const; // over another source's rows, without any of its own
    [[nodiscard]] bool empty() const; // no slices at all
    [[nodiscard]] bool growing() const;

    [[nodiscard]] const std::vector<Segment>& segments(int source) const { return states_[static_cast<std::size_t>(source)].segments; }
    [[nodiscard]] const StepTable& steps(int source) const { return states_[static_cast<std::size_t>(source)].steps; }
    [[nodiscard]] traces::Interval extent() const; // shown, over all sources
    [[nodiscard]] traces::TimeNs newest() const;   // shown end of the growing source, or of everything

    // Shown interval of an item, nullopt when its source or slice is gone.
    [[nodiscard]] std::optional<traces::Interval> shownSpan(const TimelineItem& item) const;

    // Idle intervals and figures of one step, worked out when first asked for and kept until the step changes: of a long
    // step beside the window, and until then there are none, or those of its state before.
    [[nodiscard]] const GapTable& gaps(int source, traces::Step step) const;
    [[nodiscard]] const std::optional<traces::StepFigures>& figures(int source, traces::Step step) const;

    // The same of a finished step: critical path, memory peaks, steady state.
    [[nodiscard]] const StepInsight& insight(int source, traces::Step step) const;

    [[nodiscard]] bool calculating(int source, traces::Step step) const; // they are being worked out
    [[nodiscard]] bool calculating() const { return analyses_.busy(); }  // those of any step

    [[nodiscard]] TimeAxis& axis() { return axis_; }
    [[nodiscard]] const TimeAxis& axis() const { return axis_; }

signals:
    void sourcesChanged(); // other sources or another arrangement
    void dataChanged();    // the same sources with more in them
    void analysed();       // gaps and figures of a step have come, that was asked for

private:
    struct State {
        StepTable steps;
        std::vector<Segment> segments;
    };

    void arrange();

    std::vector<TraceSource> sources_;
    std::vector<State> states_;
    Arrangement arrangement_ = Arrangement::Stacked;
    int reference_ = -1;
    TimeAxis axis_;
    mutable StepAnalyses analyses_; // what is asked for is worked out
};

} // namespace stagecraft::ui
