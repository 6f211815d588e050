// SPDX-License-Identifier: Apache-2.0
//
// Which steps of a trace are known to be whole. A run says the end of each step (Trace::steps); one that broke off leaves a
// step without it, whose figures are those of a part. Of a trace that was not recorded by a run and says nothing of its steps,
// all are taken for whole, unless it still grows.
//
//   if (!FinishedSteps(trace).contains(step)) mark(step);
#pragma once

#include "traces/store/trace.h"

#include <vector>

namespace stagecraft::traces {

enum class Growth : std::uint8_t { Closed, Growing };

class FinishedSteps {
public:
    explicit FinishedSteps(const Trace& trace, Growth growth = Growth::Closed);
    [[nodiscard]] bool contains(Step step) const;

private:
    bool all_ = false;
    std::vector<Step> told_; // ascending
};

} // namespace stagecraft::traces
