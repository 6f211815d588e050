// SPDX-License-Identifier: Apache-2.0
//
// PipeDream-2BW (Narayanan et al., ICML 2021, arXiv 2006.09503), p = 3, groups of g = 3; ' is the update of the stage's weights:
//
//   rank 0 | F0 F1 F2       B0 F3 B1 F4 B2'F5 B3 F6 B4 F7 B5' ...
//   rank 1 |    F0 F1    B0 F2 B1 F3 B2'F4 B3 F5 B4 F6 B5'F7  ...
//   rank 2 |       F0 B0 F1 B1 F2 B2'F3 B3 F4 B4 F5 B5'F6 B6  ...
//
// 1F1B without a flush, as PipeDream, but a stage adds up the gradients of g >= p micro-batches before it takes a step, and group k
// goes by the weights after k-1 steps (the first two by those of the start): w(t+1) = w(t) - lr * gradient at w(t-1). So two versions
// of the weights are enough on every rank, and all gradients are one update late. g >= p is the paper's condition: on rank 0 a group's
// first forward then comes after the update that it needs. A last group takes what is left. Any p and m.
#include "engine/schedule/one_f_one_b_updates.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

int groupOf(const ScheduleRequest& request) { return request.group > 0 ? request.group : request.ranks; }

Expected<void> checkPipeDream2Bw(const ScheduleRequest& request)
{
    if (groupOf(request) >= request.ranks && request.group >= 0) return {};
    return Error{fmt::format("schedule {}: groups of {} are not allowed, an update takes at least as many as there are ranks, so that two "
                             "versions of the weights are enough; the nearest size that fits is {}",
                             request.name, traces::counted(request.group, "micro-batch"), request.ranks)};
}

Schedule pipeDream2BwSchedule(const ScheduleRequest& request)
{
    return oneFOneBWithUpdates(request, UpdateRule::DoubleBuffered, groupOf(request));
}

} // namespace

Generator pipeDream2Bw()
{
    Generator made{{"pipedream-2bw", "PipeDream-2BW",
                    "1F1B without a flush: weights change after every group of micro-batches, and two versions of them are enough.",
                    "any number of ranks and micro-batches; groups of p or more; one chunk per rank; asynchronous, 2 versions of the weights",
                    "Narayanan et al. 2021, arXiv 2006.09503", 1, 1, {{"paper", "PipeDream-2BW, double-buffered weight updates"}}},
                   &pipeDream2BwSchedule, &checkPipeDream2Bw};
    made.family.goesInGroups = true;
    made.family.asynchronous = true;
    return made;
}

} // namespace stagecraft::engine
