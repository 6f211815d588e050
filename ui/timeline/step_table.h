// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the steps of a trace lie, found by binary search in its lanes: cheap enough to do anew whenever data arrives.
#pragma once

#include "traces/analysis/finished_steps.h"
#include "traces/store/trace.h"

#include <vector>

namespace stagecraft::ui {

struct StepPlace {
    traces::Step step{};
    traces::Interval span; // first begin to last end, transfers included
    std::size_t slices = 0;
    bool finished = false; // it is known to be whole (traces::FinishedSteps)

    bool operator==(const StepPlace&) const = default;
};

using traces::Growth;

class StepTable {
public:
    StepTable() = default;
    explicit StepTable(const traces::Trace& trace, Growth growth = Growth::Closed);

    [[nodiscard]] const std::vector<StepPlace>& all() const { return places_; } // by step
    [[nodiscard]] bool empty() const { return places_.empty(); }
    [[nodiscard]] const StepPlace* find(traces::Step step) const;

private:
    std::vector<StepPlace> places_;
};

} // namespace stagecraft::ui
