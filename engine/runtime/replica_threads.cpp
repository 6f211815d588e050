// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_threads.h"

#include <algorithm>
#include <string>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

ReplicaThreads::ReplicaThreads(int ranks, const Clock& clock, Hooks hooks)
    : clock_(clock), hooks_(std::move(hooks)), waiting_(static_cast<std::size_t>(ranks))
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
        if (!turn.collective->give(turn.member, std::move(values))) return;
        const std::vector<Collective::Member>& members = turn.collective->members();
        states_[turn.collective] = {step, members.size(), clock_.now(), members[turn.member].rank, 0};
        for (std::size_t m = 0; m < members.size(); ++m) waiting_[traces::index(members[m].rank)].push_back({turn.collective, m});
    }
    changed_.notify_all();
}

void ReplicaThreads::serve(Rank rank)
{
    std::deque<Part>& waiting = waiting_[traces::index(rank)];
    for (;;) {
        Part part;
        State state;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return cancelled_ || !waiting.empty(); });
            if (cancelled_) return;
            part = waiting.front();
            waiting.pop_front();
            state = states_[part.collective];
        }
        if (!hooks_.enter(rank)) return;
        const TimeNs begin = clock_.now();
        part.collective->work(part.member);
        const TimeNs end = clock_.now();
        hooks_.done(*part.collective, part.member, {state.step, begin, end, state.ready, state.last});
        hooks_.rest(rank);
        {
            const std::lock_guard lock(mutex_);
            State& own = states_[part.collective];
            own.doneAt = std::max(own.doneAt, end);
            if (--own.left > 0) continue;
        }
        changed_.notify_all();
    }
}

bool ReplicaThreads::isDone(const Turn& turn, traces::Step step) const
{
    const auto state = states_.find(turn.collective);
    return state != states_.end() && state->second.step == step && state->second.left == 0;
}

bool ReplicaThreads::done(const std::vector<Turn>& turns, traces::Step step)
{
    const std::lock_guard lock(mutex_);
    return std::all_of(turns.begin(), turns.end(), [&](const Turn& turn) { return isDone(turn, step); });
}

std::optional<TimeNs> ReplicaThreads::wait(const std::vector<Turn>& turns, traces::Step step)
{
    TimeNs since = 0;
    std::unique_lock lock(mutex_);
    for (const Turn& turn : turns) {
        changed_.wait(lock, [&] { return cancelled_ || isDone(turn, step); });
        if (cancelled_) return std::nullopt;
        since = std::max(since, states_[turn.collective].doneAt);
    }
    return since;
}

} // namespace stagecraft::runtime
