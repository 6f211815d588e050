// SPDX-License-Identifier: Apache-2.0
//
// What the summary of a run needs, gathered from the run's own records as they pass: of each step its span, its loss and
// the median times of each stage, and nothing of single actions. A run may take hours; its trace belongs to whoever follows.
//
//   RunTotals totals(stages);
//   for (const Record& record : records) totals.take(record);
//   totals.median(Stage{1}, ActionKind::Forward)          // over the steps that count
#pragma once

#include "traces/store/record.h"

#include <map>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

class RunTotals {
public:
    explicit RunTotals(int stages);

    // Records in the order of the stream; the slices of a step come before its StepRecord.
    void take(const traces::Record& record);

    [[nodiscard]] const std::vector<traces::StepSpan>& steps() const { return steps_; } // completed
    [[nodiscard]] const std::vector<traces::Interval>& pauses() const { return pauses_; }

    // The median over the counted steps (traces/analysis/step_times.h) of the median within each; 0 where nothing of the
    // kind ran. Forward, Backward, InputGrad, WeightGrad, Overlap (of a pair, by its forward's stage) and Optimizer are kept.
    [[nodiscard]] traces::TimeNs median(traces::Stage stage, traces::ActionKind kind) const;
    [[nodiscard]] traces::TimeNs medianTransfer() const; // a hand-off between ranks
    [[nodiscard]] traces::TimeNs medianCollectives() const; // all collectives of a step, over all ranks

private:
    static constexpr std::size_t kKinds = 6;
    using Durations = std::vector<std::vector<traces::TimeNs>>; // by series
    // Of one series, the medians of the steps in which it had anything. Compact: a run may have millions of steps.
    struct Medians {
        std::optional<traces::TimeNs> first; // of the first step, which may not count
        std::vector<traces::TimeNs> others;
    };

    void takeSlice(const traces::SliceRecord& record);
    void note(traces::Step step, std::size_t series, traces::TimeNs duration);
    [[nodiscard]] static std::optional<std::size_t> seriesOf(const traces::Action& action);
    void endStep(const traces::StepSpan& step);
    [[nodiscard]] traces::TimeNs medianOfSeries(std::size_t series) const;

    std::size_t transferSeries_; // the last one; before it stages by kinds
    std::vector<traces::LaneInfo> lanes_;
    std::map<traces::Rank, traces::Slice> beside_; // the forward of a pair, until its backward comes
    std::map<traces::Step, Durations> open_; // steps that have not ended
    std::vector<Medians> medians_;           // by series
    std::map<traces::Step, traces::TimeNs> openCollectives_;
    std::vector<traces::TimeNs> collectives_; // by step that had any
    std::vector<traces::StepSpan> steps_;
    std::vector<traces::Interval> pauses_;
};

} // namespace stagecraft::runtime
