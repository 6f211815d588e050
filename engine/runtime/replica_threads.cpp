// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_threads.h"

#include <algorithm>
#include <string>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

ReplicaThreads::ReplicaThreads(int ranks, const Clock& clock, Hooks hooks)
    : clock_(clock), hooks_(std::move(hooks)), waiting_(static_cast<std::size_t>(ranks)), noted_(waiting_.size())
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

void ReplicaThreads::give(const Turn& turn, traces::Step step, std::vector<std::span<float>> values)
{
    {
        const std::lock_guard lock(mutex_);
        const std::vector<Collective::Member>& members = turn.collective->members();
        State& state = states_[turn.collective];
        state.given.resize(members.size());
        ++state.given[turn.member];
        if (!turn.collective->give(turn.member, std::move(values))) return;
        state.step = step;
        state.left = members.size();
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
    for (;;) {
        Part part;
        CollectiveSpan span;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return cancelled_ || !waiting.empty(); });
            if (cancelled_) return;
            part = waiting.front();
            waiting.pop_front();
            const State& state = states_[part.collective];
            span = {.step = state.step, .ready = state.ready, .last = state.last};
        }
        if (!hooks_.enter(rank)) return;
        span.begin = clock_.now();
        part.collective->work(part.member);
        span.end = clock_.now();
        hooks_.done(*part.collective, part.member, span);
        bool last = false;
        {
            const std::lock_guard lock(mutex_);
            State& own = states_[part.collective];
            own.doneAt = std::max(own.doneAt, span.end);
            last = --own.left == 0;
        }
        if (last && hooks_.whole) hooks_.whole(*part.collective);
        hooks_.rest(rank);
        if (!last) continue;
        {
            const std::lock_guard lock(mutex_);
            ++states_[part.collective].ended;
        }
        changed_.notify_all();
    }
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
