// SPDX-License-Identifier: Apache-2.0
//
// ZB-V planned by times and a limit of memory (arXiv 2401.10241 sec. 6; the rule is that of sail-sg's zbv.py), p = 2, m = 4,
// F = I = W; stage 0, 3 on rank 0 and stage 1, 2 on rank 1; "3F0" is stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 0I2 3W3 0I3 0W2 0W3
//   rank 1 |     1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 1I2 2I3 1I3 2W2 1W2 2W3 1W3
//
// 1  Fill: micro-batch 0 goes down and back; while it comes back, the ranks above take as many F0 as time and memory allow. Then
//    each rank takes F0 and F1 in turn until it is no further behind than the rank before it.
// 2  Rounds of an input gradient and a forward on each rank: on the way back (I0, F1) where that input is planned, else on the way
//    down (I1, F0). Weight gradients, the oldest first, go before an action where memory is short, where they fit into the wait
//    for its input, and where the rest of the wait would make this rank's bubble larger than any other.
// 3  The weight gradients that are left.
// Whether the last reason of 2 counts before forwards and before I1 is tried both ways. Each plan is made again with the bubbles
// of the one before as known, by which a rank that has less may wait longer, as long as the largest bubble shrinks. The plan with
// the smallest largest bubble is taken, the first of equals.
//
// All chunks are planned alike, with the median over the ranks of their chunks' mean times, as zbv.py is called: the fill relies
// on each rank having room for two forwards more than the next, which ranks of different speed do not. Memory is planned with the
// largest of all stages, and so holds for the others. The limit is p micro-batches unless another is given, and not less than
// that: the rule fills all ranks before it takes a backward. Where there are fewer micro-batches, a limit that holds all of them
// is enough.
#include "engine/schedule/families.h"
#include "engine/schedule/v_list.h"
#include "engine/schedule/v_planner.h"
#include "engine/simulate/cost_table.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stagecraft::engine {
namespace {

Expected<void> checkZbVAuto(const ScheduleRequest& request)
{
    const auto refused = [](const std::string& why) { return Error{"schedule zb-v-auto: " + why}; };
    Bytes largest = 0;
    if (request.costs) {
        const std::vector<StageCosts>& stages = request.costs->stages;
        if (stages.size() != 2 * static_cast<std::size_t>(request.ranks))
            return refused(fmt::format("the costs are of {}, there are {}; give one entry per stage",
                                       traces::counted(stages.size(), "stage"), 2 * request.ranks));
        for (const StageCosts& stage : stages) largest = std::max(largest, stage.activationBytes);
    }
    if (request.memoryLimit == 0) return {};
    if (largest == 0)
        return refused(fmt::format("nothing says what a forward keeps, so a memory limit of {} cannot be planned for; give the bytes of "
                                   "its activations, or leave the limit out",
                                   traces::formatSize(request.memoryLimit)));
    const int held = 2 * std::min(request.ranks, request.microbatches);
    if (request.memoryLimit / held >= largest) return {};
    constexpr Bytes kMost = std::numeric_limits<Bytes>::max();
    return refused(fmt::format("a memory limit of {} is not allowed, a rank comes to hold {} activations of {}; the nearest is {}",
                               traces::formatSize(request.memoryLimit), held, traces::formatSize(largest),
                               traces::exactSize(largest > kMost / held ? kMost : largest * held)));
}

VPlan bestPlan(const ScheduleRequest& request)
{
    VPlan best;
    for (const bool beforeInputGrad1 : {true, false})
        for (const bool beforeForward : {true, false}) {
            const VPlanOptions options{beforeForward, beforeInputGrad1};
            if (request.stop.stop_requested()) return best;
            VPlan plan = planV(request, options, nullptr);
            while (!request.stop.stop_requested()) {
                VPlan again = planV(request, options, &plan);
                if (again.largestBubble >= plan.largestBubble) break;
                plan = std::move(again);
            }
            if (best.order.empty() || plan.largestBubble < best.largestBubble) best = std::move(plan);
        }
    return best;
}

Schedule zbVAutoSchedule(const ScheduleRequest& request)
{
    const VPlan plan = bestPlan(request);
    const auto m = static_cast<std::size_t>(request.microbatches);
    Schedule schedule = emptySchedule(request, wavePlacement(request.ranks, 2), 6 * m);
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        VList list(schedule, r);
        for (const VPass pass : plan.order[static_cast<std::size_t>(r)]) {
            switch (pass) {
            case VPass::Forward0: list.forward(0); break;
            case VPass::Forward1: list.forward(1); break;
            case VPass::InputGrad1: list.inputGrad(1); break;
            case VPass::InputGrad0: list.inputGrad(0); break;
            case VPass::WeightGrad: list.weightGrad(); break;
            }
        }
    }
    return schedule;
}

} // namespace

Generator zbVAuto()
{
    return {{"zb-v-auto", "ZB-V (automatic)",
             "ZB-V planned by the times of F, I and W, of transfers, and by a limit of memory, where they are not the same.",
             "two chunks per rank; any number of ranks and micro-batches; a memory limit of p micro-batches or more",
             "Qi et al. 2024, arXiv 2401.10241 sec. 6, the greedy planner", 2, 2,
             {{"sail-sg", "zero-bubble schedule (zbv.py)"}, {"paper", "ZB-V"}}, true},
            &zbVAutoSchedule, &checkZbVAuto, &wavePlacement};
}

} // namespace stagecraft::engine
