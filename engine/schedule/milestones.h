// SPDX-License-Identifier: Apache-2.0
//
// What an action waits for and what it brings about, in one place: the dependency rules that validator, lowering and
// simulator share. A milestone is a fact about one (stage, micro-batch), such as "its forward is done".
//
//   forEachNeed(shape, action, [&](Milestone need) { ready = ready && reached[slot(shape, need)]; });
//
// Rules (validate.h tells them for a user):
//   F(s,i)  needs the activation of stage s-1: its forward, or with communication its receipt if that is another rank
//   B, I    need their own forward, and the gradient of stage s+1 in the same way
//   W       needs its own input gradient
//   SEND    needs what it sends; RECV needs the SEND of the other side
#pragma once

#include "engine/schedule/schedule.h"

#include <cstddef>

namespace stagecraft::engine {

enum class Fact : std::uint8_t { ForwardDone, BackwardDone, ForwardSent, BackwardSent, ForwardArrived, BackwardArrived };
inline constexpr std::size_t kFactCount = 6;

struct Milestone {
    Fact fact = Fact::ForwardDone;
    Stage stage{};
    MicroBatch microbatch{};

    bool operator==(const Milestone&) const = default;
};

// What the rules need to know of a schedule; cheap to copy.
struct ScheduleShape {
    const Rank* stageToRank = nullptr;
    std::int32_t stages = 0;
    std::int32_t microbatches = 0;
    bool communicates = false; // has SEND and RECV actions of its own

    explicit ScheduleShape(const Schedule& schedule, bool withCommunication)
        : stageToRank(schedule.stageToRank.data()), stages(schedule.stages()), microbatches(schedule.microbatches),
          communicates(withCommunication)
    {
    }
    [[nodiscard]] bool sameRank(Stage a, Stage b) const { return stageToRank[index(a)] == stageToRank[index(b)]; }
    [[nodiscard]] std::size_t factSlots() const
    {
        return static_cast<std::size_t>(stages) * static_cast<std::size_t>(microbatches);
    }
};

inline std::size_t slot(const ScheduleShape& shape, const Milestone& m)
{
    return static_cast<std::size_t>(m.fact) * shape.factSlots() +
           static_cast<std::size_t>(m.stage.value) * static_cast<std::size_t>(shape.microbatches) + index(m.microbatch);
}

template <class Visit>
void forEachNeedOf(const ScheduleShape& shape, const traces::Work& work, Visit&& visit)
{
    const Stage s = work.stage;
    const Stage before{s.value - 1};
    const Stage after{s.value + 1};
    const MicroBatch i = work.microbatch;
    switch (work.kind) {
    case ActionKind::Forward:
        if (s.value == 0) break;
        if (shape.communicates && !shape.sameRank(before, s)) visit(Milestone{Fact::ForwardArrived, s, i});
        else visit(Milestone{Fact::ForwardDone, before, i});
        break;
    case ActionKind::Backward:
    case ActionKind::InputGrad:
        visit(Milestone{Fact::ForwardDone, s, i});
        if (s.value + 1 == shape.stages) break;
        if (shape.communicates && !shape.sameRank(after, s)) visit(Milestone{Fact::BackwardArrived, s, i});
        else visit(Milestone{Fact::BackwardDone, after, i});
        break;
    case ActionKind::WeightGrad: visit(Milestone{Fact::BackwardDone, s, i}); break;
    case ActionKind::SendForward: visit(Milestone{Fact::ForwardDone, s, i}); break;
    case ActionKind::SendBackward: visit(Milestone{Fact::BackwardDone, s, i}); break;
    case ActionKind::RecvForward: visit(Milestone{Fact::ForwardSent, before, i}); break;
    case ActionKind::RecvBackward: visit(Milestone{Fact::BackwardSent, after, i}); break;
    default: break;
    }
}

template <class Visit>
void forEachGainOf(const traces::Work& work, Visit&& visit)
{
    const auto gain = [&](Fact fact) { visit(Milestone{fact, work.stage, work.microbatch}); };
    switch (work.kind) {
    case ActionKind::Forward: gain(Fact::ForwardDone); break;
    case ActionKind::Backward:
    case ActionKind::InputGrad: gain(Fact::BackwardDone); break;
    case ActionKind::SendForward: gain(Fact::ForwardSent); break;
    case ActionKind::SendBackward: gain(Fact::BackwardSent); break;
    case ActionKind::RecvForward: gain(Fact::ForwardArrived); break;
    case ActionKind::RecvBackward: gain(Fact::BackwardArrived); break;
    default: break;
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

template <class Visit>
void forEachNeed(const ScheduleShape& shape, const Action& action, Visit&& visit)
{
    forEachWork(action, [&](const traces::Work& work) { forEachNeedOf(shape, work, visit); });
}

template <class Visit>
void forEachGain(const Action& action, Visit&& visit)
{
    forEachWork(action, [&](const traces::Work& work) { forEachGainOf(work, visit); });
}

// The rank that can bring a milestone about: for a receipt the receiving rank, else that of the stage.
inline Rank rankOf(const ScheduleShape& shape, const Milestone& m) { return shape.stageToRank[index(m.stage)]; }

// "0F1": the action whose end is the milestone (a backward may also be an input gradient).
std::string milestoneText(const Milestone& milestone);

} // namespace stagecraft::engine
