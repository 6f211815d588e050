// SPDX-License-Identifier: Apache-2.0
//
// What an action waits for and what it brings about, in one place: the dependency rules that validator, lowering and
// simulator share. A milestone is a fact about one (stage, micro-batch), such as "its forward is done".
//
//   const bool ready = everyNeed(shape, work, [&](const Milestone& need) { return reached[slot(shape, need)]; });
//
// Rules (validate.h tells them for a user); every direction of a two-direction schedule is a pipeline of its own:
//   F(s,i)  needs the activation of stage s-1: its forward, or with communication its receipt if that is another rank
//   B, I    need their own forward, and the gradient of stage s+1 in the same way
//   W       needs its own input gradient
//   SEND    needs what it sends; RECV needs the SEND of the other side
// With sequences cut into slices (Seq1F1B, arXiv 2406.03488), attention reads the keys and values of the slices before:
//   F       needs the forward of the slice before; B, I need the backward of the slice behind, which gives their gradients
#pragma once

#include "engine/schedule/schedule.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace stagecraft::engine {

enum class Fact : std::uint8_t { ForwardDone, BackwardDone, ForwardSent, BackwardSent, ForwardArrived, BackwardArrived };
inline constexpr std::size_t kFactCount = 6;

struct Milestone {
    Fact fact = Fact::ForwardDone;
    Flow flow = Flow::Single;
    Stage stage{};
    MicroBatch microbatch{};

    bool operator==(const Milestone&) const = default;
};
static_assert(sizeof(Milestone) == 8);

// What the rules need to know of a schedule; cheap to copy.
struct ScheduleShape {
    const Rank* stageToRank = nullptr;   // of the single direction, or of the one that runs down
    const Rank* upStageToRank = nullptr; // of the other
    std::int32_t stages = 0;
    std::int32_t slices = 1;
    bool communicates = false; // has SEND and RECV actions of its own
    // One stage's row of slots: an odd number of groups of four, which are a cache line in the simulator. The ranks take turns on
    // rows next to each other, and rows as long as a power of two would share few lines of the cache.
    std::size_t stageSlots = 0;
    std::size_t flowSlots = 0; // of all stages
    std::size_t factSlots = 0; // of all directions

    explicit ScheduleShape(const Schedule& schedule, bool withCommunication)
        : stageToRank(schedule.stageToRank.data()),
          upStageToRank(schedule.twoDirections() ? schedule.upStageToRank.data() : nullptr), stages(schedule.stages()),
          slices(schedule.slices), communicates(withCommunication)
    {
        const auto units = static_cast<std::size_t>(std::max(schedule.units(Flow::Down), schedule.units(Flow::Up)));
        stageSlots = (((units + 3) / 4) | 1) * 4;
        flowSlots = static_cast<std::size_t>(stages) * stageSlots;
        factSlots = flowSlots * (schedule.twoDirections() ? 2 : 1);
    }
    [[nodiscard]] Rank rank(Flow flow, Stage stage) const { return (flow == Flow::Up ? upStageToRank : stageToRank)[index(stage)]; }
    [[nodiscard]] bool sameRank(Flow flow, Stage a, Stage b) const { return rank(flow, a) == rank(flow, b); }
};

inline std::size_t slot(const ScheduleShape& shape, const Milestone& m)
{
    return static_cast<std::size_t>(m.fact) * shape.factSlots + (m.flow == Flow::Up ? shape.flowSlots : 0) +
           static_cast<std::size_t>(m.stage.value) * shape.stageSlots + index(m.microbatch);
}

// Whether all milestones that the work needs are as `holds` wants them; stops at the first that is not. No list of them is made:
// these rules are the simulator's innermost loop.
template <class Holds>
bool everyNeed(const ScheduleShape& shape, const traces::Work& work, Holds&& holds)
{
    const Flow flow = work.flow;
    const Stage s = work.stage;
    const Stage before{s.value - 1};
    const Stage after{s.value + 1};
    const MicroBatch i = work.microbatch;
    switch (work.kind) {
    case ActionKind::Forward:
        if (shape.slices > 1 && i.value % shape.slices != 0 && !holds(Milestone{Fact::ForwardDone, flow, s, MicroBatch{i.value - 1}}))
            return false;
        if (s.value == 0) return true;
        if (shape.communicates && !shape.sameRank(flow, before, s)) return holds(Milestone{Fact::ForwardArrived, flow, s, i});
        return holds(Milestone{Fact::ForwardDone, flow, before, i});
    case ActionKind::Backward:
    case ActionKind::InputGrad:
        if (!holds(Milestone{Fact::ForwardDone, flow, s, i})) return false;
        if (shape.slices > 1 && i.value % shape.slices != shape.slices - 1 &&
            !holds(Milestone{Fact::BackwardDone, flow, s, MicroBatch{i.value + 1}}))
            return false;
        if (s.value + 1 == shape.stages) return true;
        if (shape.communicates && !shape.sameRank(flow, after, s)) return holds(Milestone{Fact::BackwardArrived, flow, s, i});
        return holds(Milestone{Fact::BackwardDone, flow, after, i});
    case ActionKind::WeightGrad: return holds(Milestone{Fact::BackwardDone, flow, s, i});
    case ActionKind::SendForward: return holds(Milestone{Fact::ForwardDone, flow, s, i});
    case ActionKind::SendBackward: return holds(Milestone{Fact::BackwardDone, flow, s, i});
    case ActionKind::RecvForward: return holds(Milestone{Fact::ForwardSent, flow, before, i});
    case ActionKind::RecvBackward: return holds(Milestone{Fact::BackwardSent, flow, after, i});
    default: return true;
    }
}

inline std::optional<Milestone> gainOf(const traces::Work& work)
{
    switch (work.kind) {
    case ActionKind::Forward: return Milestone{Fact::ForwardDone, work.flow, work.stage, work.microbatch};
    case ActionKind::Backward:
    case ActionKind::InputGrad: return Milestone{Fact::BackwardDone, work.flow, work.stage, work.microbatch};
    case ActionKind::SendForward: return Milestone{Fact::ForwardSent, work.flow, work.stage, work.microbatch};
    case ActionKind::SendBackward: return Milestone{Fact::BackwardSent, work.flow, work.stage, work.microbatch};
    case ActionKind::RecvForward: return Milestone{Fact::ForwardArrived, work.flow, work.stage, work.microbatch};
    case ActionKind::RecvBackward: return Milestone{Fact::BackwardArrived, work.flow, work.stage, work.microbatch};
    default: return std::nullopt;
    }
}

// The works of an action: one, or the two of an overlapped pair.
template <class Visit>
void forEachWork(const Action& action, Visit&& visit)
{
    if (action.kind() != ActionKind::Overlap) {
        visit(action.work);
        return;
    }
    traces::Work ahead = action.work;
    ahead.kind = ActionKind::Forward;
    visit(ahead);
    visit(action.partner);
}

// The rank that can bring a milestone about: for a receipt the receiving rank, else that of the stage.
inline Rank rankOf(const ScheduleShape& shape, const Milestone& m) { return shape.rank(m.flow, m.stage); }

// "0F1": the action whose end is the milestone (a backward may also be an input gradient).
std::string milestoneText(const Milestone& milestone);

} // namespace stagecraft::engine
