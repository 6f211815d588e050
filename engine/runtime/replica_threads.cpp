// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_threads.h"

#include <algorithm>
#include <string>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

ReplicaThreads::ReplicaThreads(int ranks, const Clock& clock, CollectiveWork& work, Hooks hooks)
    : clock_(clock), work_(work), hooks_(std::move(hooks)), waiting_(static_cast<std::size_t>(ranks)), settles_(waiting_.size()),
      noted_(waiting_.size())
{
}

ReplicaThreads::~ReplicaThreads() { cancel(); }

void ReplicaThreads::start(Rank rank)
{
    threads_.emplace_back([this, rank] {
        serve(rank);
        hooks_.leave(rank);
    });
    pthread_setname_np(threads_.back().native_handle(), ("sums " + std::to_string(rank.value)).c_str());
}

void ReplicaThreads::cancel()
{
    {
        const std::lock_guard lock(mutex_);
        cancelled_ = true;
    }
    changed_.notify_all();
}

void ReplicaThreads::give(const Turn& turn, traces::Step step, std::vector<Collective::Values> values)
{
    {
        const std::lock_guard lock(mutex_);
        const std::vector<Collective::Member>& members = turn.collective->members();
        State& state = states_[turn.collective];
        state.given.resize(members.size());
        ++state.given[turn.member];
        if (!turn.collective->give(turn.member, std::move(values))) return;
        state.step = step;
        state.through = 0;
        state.ready = clock_.now();
        state.last = members[turn.member].rank;
        state.doneAt = 0;
        for (std::size_t m = 0; m < members.size(); ++m) waiting_[traces::index(members[m].rank)].push_back({turn.collective, m});
    }
    changed_.notify_all();
}

void ReplicaThreads::serve(Rank rank)
{
    std::deque<Part>& waiting = waiting_[traces::index(rank)];
    traces::Step step{};
    traces::Work work{};
    work_.prepare(rank);
    for (;;) {
        Part part;
        CollectiveSpan span;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return cancelled_ || !waiting.empty(); });
            if (cancelled_) return;
            part = waiting.front();
            waiting.pop_front();
            if (part.collective != nullptr) {
                const State& state = states_[part.collective];
                span = {.step = step = state.step, .ready = state.ready, .last = state.last};
                work = part.collective->action(part.member);
            }
        }
        try {
            if (part.collective != nullptr) {
                if (!make(rank, part, span)) return;
                continue;
            }
            work_.settle(rank, hooks_.done);
        } catch (...) {
            if (hooks_.failed) hooks_.failed(rank, step, work, std::current_exception());
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            --settles_[traces::index(rank)];
        }
        changed_.notify_all();
    }
}

bool ReplicaThreads::make(Rank rank, const Part& part, CollectiveSpan span)
{
    const std::size_t members = part.collective->members().size();
    const int rounds = work_.rounds();
    if (!hooks_.enter(rank)) return false;
    span.begin = clock_.now();
    for (int round = 0; round < rounds; ++round) {
        if (round > 0 && !meet(rank, part, round)) return false;
        work_.work(*part.collective, part.member, round);
        if (round + 1 == rounds) break;
        {
            const std::lock_guard lock(mutex_);
            ++states_[part.collective].through;
        }
        changed_.notify_all();
    }
    span.end = clock_.now();
    work_.end(*part.collective, part.member, span, hooks_.done);
    bool last = false;
    {
        const std::lock_guard lock(mutex_);
        State& own = states_[part.collective];
        own.doneAt = std::max(own.doneAt, span.end);
        last = ++own.through == members * static_cast<std::size_t>(rounds);
    }
    if (last && hooks_.whole) hooks_.whole(*part.collective);
    hooks_.rest(rank);
    if (!last) return true;
    {
        const std::lock_guard lock(mutex_);
        ++states_[part.collective].ended;
    }
    changed_.notify_all();
    return true;
}

// Until all are through the rounds before. They may be kept from it by a pause, for which the rank then is at rest.
bool ReplicaThreads::meet(Rank rank, const Part& part, int round)
{
    const std::size_t all = part.collective->members().size() * static_cast<std::size_t>(round);
    std::unique_lock lock(mutex_);
    State& state = states_[part.collective];
    if (state.through < all) {
        lock.unlock();
        hooks_.rest(rank);
        lock.lock();
        changed_.wait(lock, [&] { return cancelled_ || state.through >= all; });
        if (cancelled_) return false;
        lock.unlock();
        return hooks_.enter(rank);
    }
    return true;
}

// Of the rank's thread, which is at rest.
void ReplicaThreads::settle(Rank rank)
{
    std::unique_lock lock(mutex_);
    waiting_[traces::index(rank)].push_back({});
    ++settles_[traces::index(rank)];
    changed_.notify_all();
    changed_.wait(lock, [&] { return cancelled_ || settles_[traces::index(rank)] == 0; });
}

bool ReplicaThreads::isDone(const Turn& turn) const
{
    const auto known = states_.find(turn.collective);
    if (known == states_.end()) return false;
    const State& state = known->second;
    return state.given[turn.member] > 0 && state.given[turn.member] == state.ended;
}

bool ReplicaThreads::done(const std::vector<Turn>& turns)
{
    const std::lock_guard lock(mutex_);
    return std::all_of(turns.begin(), turns.end(), [&](const Turn& turn) { return isDone(turn); });
}

void ReplicaThreads::note(Rank rank, const MemorySample& sample)
{
    const std::lock_guard lock(mutex_);
    noted_[traces::index(rank)].push_back(sample);
}

std::vector<MemorySample> ReplicaThreads::takeNoted(Rank rank)
{
    const std::lock_guard lock(mutex_);
    return std::exchange(noted_[traces::index(rank)], {});
}

std::optional<TimeNs> ReplicaThreads::wait(const std::vector<Turn>& turns)
{
    TimeNs since = 0;
    std::unique_lock lock(mutex_);
    for (const Turn& turn : turns) {
        changed_.wait(lock, [&] { return cancelled_ || isDone(turn); });
        if (cancelled_) return std::nullopt;
        since = std::max(since, states_[turn.collective].doneAt);
    }
    return since;
}

} // namespace stagecraft::runtime
