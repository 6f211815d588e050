// SPDX-License-Identifier: Apache-2.0
//
// Operators that a rank's thread called in one action, on their way to the run's trace. Who records them is
// engine/probe/operators_torch.h.
//
//   recorder.post(OperatorBatch{.rank = rank, .step = step, .spans = recording.take()});
#pragma once

#include "traces/base/ids.h"
#include "traces/base/units.h"

#include <vector>

namespace stagecraft::runtime {

struct OperatorSpan {
    const char* name = nullptr; // stays where it is, and is one for each name
    traces::TimeNs begin = 0;
    traces::TimeNs end = 0;

    bool operator==(const OperatorSpan&) const = default;
};

struct OperatorBatch {
    traces::Rank rank{};
    traces::Step step{};
    int beside = 0; // 1: of the action that runs on the rank's second thread
    std::vector<OperatorSpan> spans; // one after the other
};

} // namespace stagecraft::runtime
