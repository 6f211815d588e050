// SPDX-License-Identifier: Apache-2.0
//
// When each action of a schedule begins: the event simulation itself, without a trace. The ranks take turns here, each as
// far as it comes; who writes a trace afterwards goes through them one by one and finds all moments known. (With the trace
// written in the same pass, 64 ranks in turn kept more columns open than the nearest cache holds: a third slower.)
//
//   Timing timing(schedule, costs);
//   if (timing.calculate(stop)) use(timing.begin(rank, position), timing.duration(schedule.order[rank][position]));
//
// Precondition: stages and micro-batches of all actions lie within the schedule's shape. Not thread-safe.
#pragma once

#include "engine/schedule/milestones.h"
#include "engine/simulate/action_time.h"
#include "engine/simulate/cost_table.h"

#include <stop_token>
#include <vector>

namespace stagecraft::engine {

// A milestone as whoever waited for it has it: made by this slice, one of the computing actions of its rank, which are numbered
// in their order, and there at this moment.
struct Arrival {
    Rank from{};
    std::uint32_t slice = 0;
    TimeNs at = 0;
};

class Timing {
public:
    Timing(const Schedule& schedule, const CostTable& costs);

    // False when ranks wait for ever, or when it was told to stop.
    bool calculate(const std::stop_token& stop);

    [[nodiscard]] const ScheduleShape& shape() const { return shape_; }
    [[nodiscard]] TimeNs duration(const Action& action) const { return actionTime(costs_, action, costs_.seed); }
    // After calculate().
    [[nodiscard]] TimeNs begin(std::size_t rank, std::size_t position) const { return begin_[rank][position]; }

    [[nodiscard]] Arrival arrival(Rank at, const Milestone& wanted) const
    {
        const Milestone need = source(wanted);
        const Reached& reached = reached_[slot(shape_, need)];
        const Rank from = rankOf(shape_, need);
        return {from, reached.slice, reached.at + (from == at ? 0 : costs_.transfer)};
    }

private:
    static constexpr TimeNs kNever = -1;
    static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
    struct Reached { // a milestone: when, and by which slice
        TimeNs at = kNever;
        std::uint32_t slice = 0;
    };
    struct RankState {
        std::size_t position = 0;
        std::size_t blockedOn = kNothing; // slot
        TimeNs clock = 0;
        std::uint32_t slices = 0;
    };

    // A receipt takes no time of its rank here: what it brings is there when the other side's SEND plus the transfer is.
    [[nodiscard]] static Milestone source(const Milestone& need)
    {
        if (need.fact == Fact::ForwardArrived) return {Fact::ForwardSent, need.flow, Stage{need.stage.value - 1}, need.microbatch};
        if (need.fact == Fact::BackwardArrived) return {Fact::BackwardSent, need.flow, Stage{need.stage.value + 1}, need.microbatch};
        return need;
    }
    bool step(std::size_t r, std::vector<std::size_t>& ready);
    bool wait(std::size_t r, const traces::Work& work, TimeNs& begin);
    void reach(const traces::Work& work, Reached reached, std::vector<std::size_t>& ready);

    const Schedule& schedule_;
    const CostTable& costs_;
    ScheduleShape shape_;
    std::vector<Reached> reached_; // by slot
    std::vector<RankState> ranks_;
    std::vector<std::vector<TimeNs>> begin_; // [rank][position]
};

} // namespace stagecraft::engine
