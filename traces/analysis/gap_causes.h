// SPDX-License-Identifier: Apache-2.0
//
// Splits the idle time of a rank into pieces with one cause each:
//
//        before the first      between two computing slices              after the last
//     |-----filling-----|F|--waiting--|--transfer--|-memory-|-host-|B|------draining------|
//                                     ^            ^        ^
//                    end of the last producer   its ready  memory was given back
//
// Where the first waited for its weights to be gathered, that part is transfer, not filling.
// Communication on the compute lane is idle time like any other; where no edge tells more, it counts as transfer.
#pragma once

#include "traces/analysis/figures.h"
#include "traces/analysis/step_view.h"

#include <functional>

namespace stagecraft::traces {

// In the order of time, no empty pieces, pauses not yet cut out: with the rank's computing slices they tile the step.
void forEachGap(const Trace& trace, const StepView& view, const RankView& rank,
                const std::function<void(const Gap&)>& visit);

} // namespace stagecraft::traces
