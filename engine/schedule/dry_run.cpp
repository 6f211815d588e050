// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/dry_run.h"

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

bool sends(ActionKind kind) { return kind == ActionKind::SendForward || kind == ActionKind::SendBackward; }
bool receives(ActionKind kind) { return kind == ActionKind::RecvForward || kind == ActionKind::RecvBackward; }

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
    : schedule_(schedule), shape_(schedule, hasCommunication(schedule)), send_(send),
      position_(schedule.order.size(), 0), reached_(kFactCount * shape_.factSlots, false)
{
}

std::optional<DryRun::Obstacle> DryRun::obstacle(std::size_t rank) const
{
    if (send_ == SendMode::Channel)
        if (std::optional<Obstacle> ahead = channelObstacle(rank)) return ahead;
    std::optional<Obstacle> found;
    forEachWork(next(rank), [&](const traces::Work& work) {
        everyNeed(shape_, work, [&](const Milestone& need) {
            if (!found && !reached_[slot(shape_, need)]) found = Obstacle{need, rankOf(shape_, need)};
            return !found;
        });
    });
    return found;
}

std::optional<DryRun::Obstacle> DryRun::channelObstacle(std::size_t rank) const
{
    const Action& action = next(rank);
    if (!receives(action.kind())) return std::nullopt;
    const Action send = *counterpart(action);
    const Rank from = schedule_.rankOf(send.work.flow, send.stage());
    const auto channel = channels_.find({from, Rank{rank}});
    if (channel == channels_.end() || channel->second.empty() || channel->second.front() == send.work) return std::nullopt;
    const Action first{channel->second.front(), {}};
    return Obstacle{milestoneOf(*counterpart(first)), Rank{rank},
                    fmt::format("{} is first on the channel from rank {}", toText(first), from.value)};
}

std::optional<DryRun::Obstacle> DryRun::rendezvousObstacle(std::size_t rank) const
{
    const Action& action = next(rank);
    const std::optional<Action> other = counterpart(action);
    if (!other) return obstacle(rank);
    if (sends(action.kind()))
        if (std::optional<Obstacle> own = obstacle(rank)) return own;
    const Rank peer = schedule_.rankOf(other->work.flow, other->stage());
    if (!done(index(peer)) && next(index(peer)) == *other) return std::nullopt;
    return Obstacle{milestoneOf(*other), peer};
}

template <class Reached>
void DryRun::advance(std::size_t rank, Reached&& reached)
{
    forEachWork(next(rank), [&](const traces::Work& work) {
        const std::optional<Milestone> gain = gainOf(work);
        if (!gain) return;
        const std::size_t place = slot(shape_, *gain);
        reached_[place] = true;
        reached(place);
    });
    if (send_ == SendMode::Channel) passMessage(rank);
    ++position_[rank];
}

void DryRun::passMessage(std::size_t rank)
{
    const Action& action = next(rank);
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

// In each pass every rank takes one action, those that can, in the order of the ranks: PyTorch's order of lowering. A rank
// that waits is not asked again before what it waits for is there; otherwise many ranks of which one works at a time would
// be asked in vain for each action.
void DryRun::executeBuffered(const std::function<void(Rank, const Action&)>& executed)
{
    std::set<std::size_t> pass;
    for (std::size_t rank = 0; rank < position_.size(); ++rank) pass.insert(pass.end(), rank);
    std::set<std::size_t> nextPass;
    std::unordered_multimap<std::size_t, std::size_t> waiters; // by slot
    while (!pass.empty()) {
        const std::size_t rank = pass.extract(pass.begin()).value();
        if (!done(rank)) {
            if (const std::optional<Obstacle> what = obstacle(rank)) {
                waiters.emplace(slot(shape_, what->need), rank);
            } else {
                if (executed) executed(Rank{rank}, next(rank));
                advance(rank, [&](std::size_t place) {
                    const auto [first, last] = waiters.equal_range(place);
                    for (auto waiter = first; waiter != last; ++waiter)
                        (waiter->second > rank ? pass : nextPass).insert(waiter->second);
                    waiters.erase(first, last);
                });
                nextPass.insert(rank);
            }
        }
        if (pass.empty()) std::swap(pass, nextPass);
    }
}

void DryRun::executeRendezvous(const std::function<void(Rank, const Action&)>& executed)
{
    const auto run = [&](std::size_t rank) {
        if (executed) executed(Rank{rank}, next(rank));
        advance(rank, [](std::size_t) {});
    };
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t rank = 0; rank < position_.size(); ++rank) {
            if (done(rank)) continue;
            if (rendezvousObstacle(rank)) continue;
            const std::optional<Action> other = counterpart(next(rank));
            if (other) {
                const std::size_t peer = index(schedule_.rankOf(other->work.flow, other->stage()));
                // the sender's side first: the receipt rests on it
                const bool first = sends(next(rank).kind());
                if (!first && obstacle(peer)) continue; // the sender has nothing to send yet
                run(first ? rank : peer);
                run(first ? peer : rank);
            } else {
                run(rank);
            }
            progress = true;
        }
    }
}

bool DryRun::complete() const
{
    for (std::size_t rank = 0; rank < position_.size(); ++rank)
        if (!done(rank)) return false;
    return true;
}

std::vector<WaitingRank> DryRun::circle() const
{
    std::size_t rank = 0;
    while (rank < position_.size() && done(rank)) ++rank;
    std::vector<WaitingRank> chain;
    std::vector<int> visitedAt(position_.size(), -1);
    while (rank < position_.size() && !done(rank) && visitedAt[rank] < 0) {
        const std::optional<Obstacle> what = send_ == SendMode::Rendezvous ? rendezvousObstacle(rank) : obstacle(rank);
        if (!what) break;
        visitedAt[rank] = static_cast<int>(chain.size());
        chain.push_back({Rank{rank}, static_cast<int>(position_[rank]), toText(next(rank)), milestoneText(what->need),
                         what->rank, what->why});
        rank = index(what->rank);
    }
    if (rank < position_.size() && visitedAt[rank] > 0)
        chain.erase(chain.begin(), chain.begin() + visitedAt[rank]); // the way into the circle is not part of it
    return chain;
}

} // namespace stagecraft::engine
