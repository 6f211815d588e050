// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/dry_run.h"

#include "engine/schedule/handoff.h"
#include "engine/schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace stagecraft::engine {
namespace {

// The action on the other side of a SEND or RECV; nothing for other kinds.
std::optional<Action> counterpart(const Action& action)
{
    const Stage before{action.stage().value - 1};
    const Stage after{action.stage().value + 1};
    switch (action.kind()) {
    case ActionKind::SendForward: return makeAction(ActionKind::RecvForward, after, action.microbatch(), action.work.flow);
    case ActionKind::RecvForward: return makeAction(ActionKind::SendForward, before, action.microbatch(), action.work.flow);
    case ActionKind::SendBackward: return makeAction(ActionKind::RecvBackward, before, action.microbatch(), action.work.flow);
    case ActionKind::RecvBackward: return makeAction(ActionKind::SendBackward, after, action.microbatch(), action.work.flow);
    default: return std::nullopt;
    }
}

ActionKind kindThatReaches(Fact fact)
{
    switch (fact) {
    case Fact::ForwardDone: return ActionKind::Forward;
    case Fact::BackwardDone: return ActionKind::Backward;
    case Fact::ForwardSent: return ActionKind::SendForward;
    case Fact::BackwardSent: return ActionKind::SendBackward;
    case Fact::ForwardArrived: return ActionKind::RecvForward;
    case Fact::BackwardArrived: return ActionKind::RecvBackward;
    }
    return ActionKind::None;
}

// Of a SEND or RECV.
Milestone milestoneOf(const Action& action)
{
    return *gainOf(action.work);
}

} // namespace

std::string milestoneText(const Milestone& milestone)
{
    return toText(traces::makeAction(kindThatReaches(milestone.fact), milestone.stage, milestone.microbatch, milestone.flow));
}

DryRun::DryRun(const Schedule& schedule, SendMode send)
    : schedule_(schedule), shape_(schedule, hasCommunication(schedule)), send_(send), places_(schedule.order.size()),
      reached_(kFactCount * shape_.factSlots, false)
{
    for (std::size_t rank = 0; rank < places_.size(); ++rank) standBefore(rank, 0);
}

void DryRun::standBefore(std::size_t rank, std::size_t position)
{
    const std::vector<Action>& list = schedule_.order[rank];
    places_[rank] = {position, position < list.size() ? batchEnd(list, position) : position, 0};
}

bool DryRun::posted(std::size_t rank, std::size_t position) const
{
    const Place& place = places_[rank];
    return position >= place.position && position < place.end && (place.executed >> (position - place.position) & 1U) == 0;
}

std::optional<std::size_t> DryRun::findPosted(std::size_t rank, const Action& action) const
{
    for (std::size_t position = places_[rank].position; position < places_[rank].end; ++position)
        if (posted(rank, position) && at(rank, position).work == action.work) return position;
    return std::nullopt;
}

std::optional<DryRun::Obstacle> DryRun::obstacle(std::size_t rank, std::size_t position) const
{
    const ActionKind kind = at(rank, position).kind();
    if (send_ == SendMode::Channel && receives(kind))
        if (std::optional<Obstacle> ahead = channelObstacle(rank, position)) return ahead;
    if (send_ == SendMode::Rendezvous && traces::isTransfer(kind)) return rendezvousObstacle(rank, position);
    return milestoneObstacle(rank, position);
}

std::optional<DryRun::Obstacle> DryRun::milestoneObstacle(std::size_t rank, std::size_t position) const
{
    std::optional<Obstacle> found;
    forEachWork(at(rank, position), [&](const traces::Work& work) {
        everyNeed(shape_, work, [&](const Milestone& need) {
            if (!found && !reached_[slot(shape_, need)]) found = Obstacle{need, rankOf(shape_, need)};
            return !found;
        });
    });
    return found;
}

std::optional<DryRun::Obstacle> DryRun::channelObstacle(std::size_t rank, std::size_t position) const
{
    const Action send = *counterpart(at(rank, position));
    const Rank from = schedule_.rankOf(send.work.flow, send.stage());
    const auto channel = channels_.find({from, Rank{rank}});
    if (channel != channels_.end() && !channel->second.empty() && channel->second.front() != send.work) {
        const Action first{channel->second.front(), {}};
        return Obstacle{milestoneOf(*counterpart(first)), Rank{rank},
                        fmt::format("{} is first on the channel from rank {}", toText(first), from.value)};
    }
    // receipts that are posted together take the messages in the order in which they are posted
    for (std::size_t earlier = places_[rank].position; earlier < position; ++earlier) {
        if (!posted(rank, earlier) || !receives(at(rank, earlier).kind())) continue;
        const Action other = *counterpart(at(rank, earlier));
        if (schedule_.rankOf(other.work.flow, other.stage()) == from)
            return Obstacle{milestoneOf(at(rank, earlier)), Rank{rank}, fmt::format("it is posted before on the channel from rank {}", from.value)};
    }
    return std::nullopt;
}

std::optional<DryRun::Obstacle> DryRun::rendezvousObstacle(std::size_t rank, std::size_t position) const
{
    const Action& action = at(rank, position);
    const Action other = *counterpart(action);
    if (sends(action.kind()))
        if (std::optional<Obstacle> own = milestoneObstacle(rank, position)) return own;
    const Rank peer = schedule_.rankOf(other.work.flow, other.stage());
    const std::optional<std::size_t> meets = findPosted(index(peer), other);
    if (!meets) return Obstacle{milestoneOf(other), peer};
    // a sender that is there may have nothing to send yet
    return sends(action.kind()) ? std::nullopt : milestoneObstacle(index(peer), *meets);
}

template <class Reached>
void DryRun::finish(std::size_t rank, std::size_t position, Reached&& reached)
{
    const Action& action = at(rank, position);
    forEachWork(action, [&](const traces::Work& work) {
        const std::optional<Milestone> gain = gainOf(work);
        if (!gain) return;
        const std::size_t place = slot(shape_, *gain);
        reached_[place] = true;
        reached(place);
    });
    if (send_ == SendMode::Channel) passMessage(rank, action);
    Place& place = places_[rank];
    place.executed |= 1U << (position - place.position);
    if (place.executed == (1ULL << (place.end - place.position)) - 1) standBefore(rank, place.end);
}

void DryRun::passMessage(std::size_t rank, const Action& action)
{
    const std::optional<Action> other = counterpart(action);
    if (!other) return;
    const Rank peer = schedule_.rankOf(other->work.flow, other->stage());
    if (sends(action.kind())) channels_[{Rank{rank}, peer}].push_back(action.work);
    else channels_[{peer, Rank{rank}}].pop_front();
}

void DryRun::execute(const std::function<void(Rank, const Action&)>& executed)
{
    if (send_ == SendMode::Rendezvous) executeRendezvous(executed);
    else executeBuffered(executed);
}

// In each pass every rank takes one action, or what it can of a batch, in the order of the ranks: PyTorch's order of lowering. A rank
// that waits is not asked again before what it waits for is there; otherwise many ranks of which one works at a time would be asked in
// vain for each action.
void DryRun::executeBuffered(const std::function<void(Rank, const Action&)>& executed)
{
    std::set<std::size_t> pass;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) pass.insert(pass.end(), rank);
    std::set<std::size_t> nextPass;
    std::unordered_multimap<std::size_t, std::size_t> waiters; // by slot
    while (!pass.empty()) {
        const std::size_t rank = *pass.begin();
        pass.erase(pass.begin());
        const auto wake = [&](std::size_t place) {
            const auto [first, last] = waiters.equal_range(place);
            for (auto waiter = first; waiter != last; ++waiter) (waiter->second > rank ? pass : nextPass).insert(waiter->second);
            waiters.erase(first, last);
        };
        const auto [begin, end, before] = places_[rank];
        for (std::size_t position = begin; position < end; ++position) {
            if ((before >> (position - begin) & 1U) != 0) continue;
            if (const std::optional<Obstacle> what = obstacle(rank, position)) {
                waiters.emplace(slot(shape_, what->need), rank);
            } else {
                if (executed) executed(Rank{rank}, at(rank, position));
                finish(rank, position, wake);
                nextPass.insert(rank);
            }
        }
        if (pass.empty()) std::swap(pass, nextPass);
    }
}

void DryRun::executeRendezvous(const std::function<void(Rank, const Action&)>& executed)
{
    const auto run = [&](std::size_t rank, std::size_t position) {
        if (executed) executed(Rank{rank}, at(rank, position));
        finish(rank, position, [](std::size_t) {});
    };
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t rank = 0; rank < places_.size(); ++rank) {
            const auto [begin, end, before] = places_[rank];
            for (std::size_t position = begin; position < end; ++position) {
                // what the other side finished has been executed here as well
                if (!posted(rank, position) || obstacle(rank, position)) continue;
                progress = true;
                const std::optional<Action> other = counterpart(at(rank, position));
                if (!other) {
                    run(rank, position);
                    continue;
                }
                const std::size_t peer = index(schedule_.rankOf(other->work.flow, other->stage()));
                const std::size_t meets = *findPosted(peer, *other);
                // the sender's side first: the receipt rests on it
                const bool first = sends(at(rank, position).kind());
                run(first ? rank : peer, first ? position : meets);
                run(first ? peer : rank, first ? meets : position);
            }
        }
    }
}

bool DryRun::complete() const
{
    for (std::size_t rank = 0; rank < places_.size(); ++rank)
        if (!done(rank)) return false;
    return true;
}

std::vector<WaitingRank> DryRun::circle() const
{
    std::size_t rank = 0;
    while (rank < places_.size() && done(rank)) ++rank;
    std::vector<WaitingRank> chain;
    std::vector<int> visitedAt(places_.size(), -1);
    while (rank < places_.size() && !done(rank) && visitedAt[rank] < 0) {
        // of a batch, the first that waits: it goes on only when all are done
        std::size_t position = places_[rank].position;
        std::optional<Obstacle> what;
        for (; position < places_[rank].end && !what; ++position)
            if (posted(rank, position)) what = obstacle(rank, position);
        if (!what) break;
        --position;
        visitedAt[rank] = static_cast<int>(chain.size());
        chain.push_back({Rank{rank}, static_cast<int>(position), toText(at(rank, position)), milestoneText(what->need), what->rank, what->why});
        rank = index(what->rank);
    }
    if (rank < places_.size() && visitedAt[rank] > 0)
        chain.erase(chain.begin(), chain.begin() + visitedAt[rank]); // the way into the circle is not part of it
    return chain;
}

} // namespace stagecraft::engine
