// SPDX-License-Identifier: Apache-2.0
//
// What a slice of a sequence takes of a cost, which the table has of the mean slice. In a header because it stands in the innermost
// loop of a simulation; without factors in the table it is the cost itself.
//
//   hold(partOf(costs.sliceSize, stage.activationBytes, work.microbatch));
#pragma once

#include "engine/simulate/cost_table.h"
#include "traces/base/ids.h"

#include <cmath>

namespace stagecraft::engine {

inline std::int64_t partOf(const std::vector<double>& factors, std::int64_t ofMean, traces::MicroBatch unit)
{
    if (factors.empty() || unit == traces::kNoMicroBatch) return ofMean;
    return std::llround(static_cast<double>(ofMean) * factors[index(unit) % factors.size()]);
}

} // namespace stagecraft::engine
