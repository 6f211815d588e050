// SPDX-License-Identifier: Apache-2.0
//
// What a rank of one of several replicas does with the others: it gives the gradients of its stages away, bucket by bucket as its last
// backwards make them or where its list says REDUCE_GRAD, and waits for their sums before it updates the weights; where replicas divide
// the update, it gives its part of the new weights away and waits for the others' before the step ends, or does so where its list says
// UNSHARD, and waits before what uses them. One thread, the rank's. Private to the runtime.
//
//   ReplicaRank replica(execution, threads, Rank{1});
//   replica.begin(step);
//   replica.gatherWeights(place);                             // UNSHARD
//   std::optional<TimeNs> since = replica.weightsOf(place);   // before an action that uses them; none when cancelled
//   replica.sumGradients(place);                              // REDUCE_GRAD
//   since = replica.gradientsOf(place);                       // before the update
//   replica.giveWeights(place);                               // after it
//   since = replica.allWeights();                             // at the end of the step
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/replica_threads.h"

#include <optional>
#include <set>
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
    void sumGradients(const Place& place);
    void gatherWeights(const Place& place);
    // -1 where no UNSHARD gathers them.
    std::optional<TimeNs> weightsOf(const Place& place);
    void giveWeights(const Place& place);
    std::optional<TimeNs> allWeights();
    // What the rank holds when sums beside it have let go of something.
    [[nodiscard]] std::vector<MemorySample> takeSamples() { return threads_.takeNoted(rank_); }
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
    std::set<Place> gathering_; // nothing has waited for those weights yet
};

} // namespace stagecraft::runtime
