// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/building_block.h"

#include "engine/schedule/families.h"
#include "engine/schedule/slot_grid.h"
#include "engine/schedule/v_list.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

using Use = SlotGrid::Use;

// Of what is pending chunk 1 first; nothing where nothing is.
void takeWeightGrad(VList& list)
{
    if (list.pending()) list.weightGrad(list.pending(1) ? 1 : 0);
}

// The actions of the grid's slots, with I or B for a backward.
Schedule scheduleOf(const ScheduleRequest& request, const SlotGrid& grid, ActionKind backwardKind)
{
    const bool splits = backwardKind == ActionKind::InputGrad;
    const auto m = static_cast<std::size_t>(request.microbatches);
    Schedule schedule = emptySchedule(request, wavePlacement(request.ranks, 2), (splits ? 6 : 4) * m);
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        VList list(schedule, r);
        const auto backward = [&](int chunk) { splits ? list.inputGrad(chunk) : list.backward(chunk); };
        for (const Use use : grid.uses(r)) {
            switch (use) {
            case Use::Forward0: list.forward(0); break;
            case Use::Forward1: list.forward(1); break;
            case Use::Backward1: backward(1); break;
            case Use::Backward0: backward(0); break;
            default: takeWeightGrad(list); // also where the grid left a slot free
            }
        }
        while (list.pending()) takeWeightGrad(list);
    }
    return schedule;
}

} // namespace

Expected<void> checkBlockRanks(const ScheduleRequest& request)
{
    if (request.ranks <= kMostBlockRanks) return {};
    return Error{
        fmt::format("schedule {}: {} ranks are not allowed, it is planned on a grid of slots that grows with their square; "
                    "use {} ranks at most",
                    request.name, request.ranks, kMostBlockRanks)};
}

// Twice: with the weight gradients where they first find room, which settles the fill, then without them, which frees the
// drain.
Schedule splitBackwardSchedule(const ScheduleRequest& request, const std::vector<BlockSlots>& block)
{
    SlotGrid grid(request.microbatches, block, 1);
    grid.addWeightGrads();
    grid.squeeze(SlotGrid::Part::FillAndDrain, request.stop);
    grid.pack(request.stop);
    grid.removeWeightGrads();
    grid.squeezeDrain(request.stop);
    grid.addWeightGrads();
    grid.pack(request.stop);
    return scheduleOf(request, grid, ActionKind::InputGrad);
}

Schedule fullBackwardSchedule(const ScheduleRequest& request, const std::vector<BlockSlots>& block)
{
    SlotGrid grid(request.microbatches, block, 2);
    grid.squeeze(SlotGrid::Part::All, request.stop);
    return scheduleOf(request, grid, ActionKind::Backward);
}

} // namespace stagecraft::engine
