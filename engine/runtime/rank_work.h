// SPDX-License-Identifier: Apache-2.0
//
// What a rank does in one step, and what its stages have to be prepared for. Follows from the schedule alone.
//
//   for (const Action& action : rankWork(schedule, Rank{0})) execute(action);
#pragma once

#include "engine/model/model.h"
#include "engine/plan/run_spec.h"
#include "engine/schedule/schedule.h"

#include <cstdint>
#include <vector>

namespace stagecraft::runtime {

using engine::Action;
using engine::Schedule;
using traces::Flow;
using traces::Rank;
using traces::Stage;

// A stage of one direction: with two of them, there are two copies of its weights.
struct Place {
    Flow flow = Flow::Single;
    Stage stage{};
    auto operator<=>(const Place&) const = default;
};

constexpr Place placeOf(const traces::Work& work) { return {work.flow, work.stage}; }

// All that there are, and those that a rank holds; stages ascending, of each the one that runs down first.
std::vector<Place> places(const Schedule& schedule);
std::vector<Place> placesOf(const Schedule& schedule, Rank rank);

// Whether the first and the last stage share a table (engine/model/tied.h).
enum class Ends : std::uint8_t { Apart, Tied };
inline Ends endsOf(const engine::ModelSpec& model) { return model.tiedEmbeddings ? Ends::Tied : Ends::Apart; }

// Whether the updates wait for the norm of all gradients together.
enum class Clipping : std::uint8_t { Off, On };
inline Clipping clippingOf(const engine::RunSpec& run) { return run.clipNorm > 0 ? Clipping::On : Clipping::Off; }

// The schedule's list without its transfers, which the engine makes by itself; behind it, where anything is trained, what it does
// not say: the sums of gradients of which there are two copies, and the update of the weights. An ALL_REDUCE has the other copy as
// its `partner`: the same stage in the other direction, or of a table the stage at the other end. Where one rank holds both, there is
// one action for the two. Every rank goes through the directions' sums by stage and then through those of the ends by direction, so
// those that add up together never wait for each other in a circle. Where there are several replicas, the two directions' copies are
// summed along with theirs (replica_sums.h), and have no action of their own.
// With clipping all sums come first, then an ALL_REDUCE of all ranks, for the norm, and the updates last.
std::vector<Action> rankWork(const Schedule& schedule, Rank rank, Ends ends = Ends::Apart, Clipping clipping = Clipping::Off, int replicas = 1);
// That ALL_REDUCE: it has no partner, for it is with all.
constexpr bool sharesNorm(const Action& action)
{
    return action.kind() == traces::ActionKind::AllReduce && action.partner.kind == traces::ActionKind::None;
}

// Micro-batches, or slices of them, of the direction that has more.
int mostUnits(const Schedule& schedule);

// How the schedule treats a stage.
struct StageDuties {
    int units = 0;          // micro-batches of the direction, or slices of them
    bool inference = false; // forwards alone
    bool splits = false;    // has I and W
    std::vector<bool> recomputed; // by unit; empty: none is
    // The units in the order in which their weight gradients are added up.
    std::vector<int> gradientOrder;
    bool moves = false; // activations are offloaded in this run, so that each rank has its boundary tensors for itself
    bool gathers = false; // has UNSHARD: where there are replicas, they divide its weights
    int slices = 1; // units of a micro-batch: slices of its sequences, or halves of its rows (Chimera's halved backwards)

    // Where weights change while units are in flight (weight_versions.h); else empty.
    std::vector<int> version; // by unit: the weights that it goes by
    std::vector<int> group;   // by unit: how many the update takes that its gradient is in
    std::vector<int> update;  // by unit: which update that is
    [[nodiscard]] int updateOf(int unit) const { return update[static_cast<std::size_t>(unit)]; }
    int updates = 0;          // of a step
    [[nodiscard]] bool asynchronous() const { return !version.empty(); }
};
StageDuties dutiesOf(const Schedule& schedule, const Place& place);

} // namespace stagecraft::runtime
