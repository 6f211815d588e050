// SPDX-License-Identifier: Apache-2.0
//
// What a rank of one of several replicas does beside its list: it gives the gradients of its stages away bucket by bucket, as its last
// backwards make them, and waits for their sums before it updates the weights; where replicas divide the update, it gives its part of
// the new weights away and waits for the others' before the step ends. One thread, the rank's. Private to the runtime.
//
//   ReplicaRank replica(execution, threads, Rank{1});
//   replica.begin(step);
//   std::optional<TimeNs> since = replica.gradientsOf(place); // before the update; none when cancelled
//   replica.giveWeights(place);                               // after it
//   since = replica.allWeights();                             // at the end of the step
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/replica_threads.h"

#include <optional>
#include <vector>

namespace stagecraft::runtime {

class ReplicaRank {
public:
    ReplicaRank(const Execution& run, ReplicaThreads& threads, Rank rank);
    ~ReplicaRank();
    ReplicaRank(const ReplicaRank&) = delete;
    ReplicaRank& operator=(const ReplicaRank&) = delete;

    void begin(traces::Step step) { step_ = step; }
    // When they were there; the rank is at rest while it waits.
    std::optional<TimeNs> gradientsOf(const Place& place) { return waitFor(run_.sums->gradients(run_.replica, place)); }
    std::optional<TimeNs> allGradients();
    void giveWeights(const Place& place);
    std::optional<TimeNs> allWeights();
    // The work that adds the last to the gradients of its stage.
    [[nodiscard]] bool isLast(const traces::Work& work) const;

private:
    void giveGradients(const Place& place, int layer);
    std::optional<TimeNs> waitFor(const std::vector<Turn>& turns);

    const Execution& run_;
    ReplicaThreads& threads_;
    const Rank rank_; // of all
    const std::vector<Place> places_;
    traces::Step step_{};
};

} // namespace stagecraft::runtime
