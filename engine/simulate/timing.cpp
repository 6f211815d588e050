// SPDX-License-Identifier: Apache-2.0
#include "engine/simulate/timing.h"

#include "engine/schedule/handoff.h"
#include "engine/schedule/lower.h"
#include "engine/simulate/action_time.h"

#include <algorithm>

namespace stagecraft::engine {

Timing::Timing(const Schedule& schedule, const CostTable& costs)
    : schedule_(schedule), costs_(costs), shape_(schedule, hasCommunication(schedule)),
      reached_((shape_.communicates ? kFactCount : 2) * shape_.factSlots), ranks_(schedule.order.size()), begin_(schedule.order.size())
{
    for (std::size_t r = 0; r < begin_.size(); ++r) begin_[r].resize(schedule.order[r].size());
}

bool Timing::calculate(const std::stop_token& stop)
{
    std::vector<std::size_t> ready;
    for (std::size_t r = ranks_.size(); r-- > 0;) ready.push_back(r);
    while (!ready.empty() && !stop.stop_requested()) {
        const std::size_t r = ready.back();
        ready.pop_back();
        while (ranks_[r].position < schedule_.order[r].size() && step(r, ready)) ++ranks_[r].position;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (ranks_[r].position < schedule_.order[r].size()) return false;
    return true;
}

// Moves `begin` behind everything that the work waits for. False when something is not there.
bool Timing::wait(std::size_t r, const traces::Work& work, TimeNs& begin)
{
    return everyNeed(shape_, work, [&](const Milestone& wanted) {
        const Milestone need = source(wanted);
        const std::size_t place = slot(shape_, need);
        const TimeNs made = reached_[place].at;
        if (made == kNever) {
            ranks_[r].blockedOn = place;
            return false;
        }
        begin = std::max(begin, made + (rankOf(shape_, need) == Rank{r} ? 0 : costs_.transfer));
        return true;
    });
}

// False when the rank's next action has to wait for something that is not there.
bool Timing::step(std::size_t r, std::vector<std::size_t>& ready)
{
    RankState& rank = ranks_[r];
    const Action& action = schedule_.order[r][rank.position];
    TimeNs begin = rank.clock;
    if (traces::isCompute(action.kind())) {
        bool there = true;
        forEachWork(action, [&](const traces::Work& work) { there = there && wait(r, work, begin); });
        if (!there) return false;
        rank.clock = begin + duration(action);
        forEachWork(action, [&](const traces::Work& work) { reach(work, {rank.clock, rank.slices}, ready); });
        ++rank.slices;
    } else if (sends(action.kind())) {
        if (!wait(r, action.work, begin)) return false;
        // the slice that made what is sent is what the receiver's edge names
        const Milestone made{action.kind() == ActionKind::SendForward ? Fact::ForwardDone : Fact::BackwardDone, action.work.flow,
                             action.stage(), action.microbatch()};
        reach(action.work, {begin, reached_[slot(shape_, made)].slice}, ready);
    }
    begin_[r][rank.position] = begin;
    return true;
}

void Timing::reach(const traces::Work& work, Reached reached, std::vector<std::size_t>& ready)
{
    const std::optional<Milestone> gain = gainOf(work);
    if (!gain) return;
    const std::size_t place = slot(shape_, *gain);
    reached_[place] = reached;
    const bool ahead = gain->fact == Fact::ForwardDone || gain->fact == Fact::ForwardSent;
    const std::int32_t neighbour = gain->stage.value + (ahead ? 1 : -1);
    if (neighbour < 0 || neighbour >= shape_.stages) return;
    const Rank to = shape_.rank(gain->flow, Stage{neighbour});
    RankState& waiter = ranks_[index(to)];
    if (waiter.blockedOn != place) return;
    waiter.blockedOn = kNothing;
    ready.push_back(index(to));
}

} // namespace stagecraft::engine
