// SPDX-License-Identifier: Apache-2.0
//
// What a rank of one of several replicas does with the others: it gives the gradients of its stages away, bucket by bucket as its last
// backwards make them or where its list says REDUCE_GRAD, and waits for their sums before it updates the weights; where replicas divide
// the update, it gives its part of the new weights away and waits for the others' before the step ends, or does so where its list says
// UNSHARD, and waits before what uses them. Where the rank is on a GPU, its stream waits for that, and its thread until all have asked for
// it. One thread, the rank's. Private to the runtime.
//
//   ReplicaRank replica(execution, maker, Rank{1});
//   replica.begin(step);
//   replica.gatherWeights(place);                             // UNSHARD
//   std::optional<Since> since = replica.weightsOf(place);    // before an action that uses them; none when cancelled
//   replica.sumGradients(place);                              // REDUCE_GRAD
//   since = replica.gradientsOf(place);                       // before the update
//   replica.giveWeights(place);                               // after it
//   since = replica.allWeights();                             // at the end of the step
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/sum_maker_torch.h"

#include <optional>
#include <set>
#include <vector>

namespace stagecraft::runtime {

class ReplicaRank {
public:
    // When something was there: at `time` on the CPU, at `mark` on a GPU.
    struct Since {
        TimeNs time = -1;
        DeviceMark mark = {};
    };

    ReplicaRank(const Execution& run, SumMaker& maker, Rank rank);
    ~ReplicaRank();
    ReplicaRank(const ReplicaRank&) = delete;
    ReplicaRank& operator=(const ReplicaRank&) = delete;

    // Until those who make its sums are prepared, so that no step pays for it.
    void awaitPrepared() { settle(); }
    void begin(traces::Step step) { step_ = step; }
    // When they were there; the rank is at rest while it waits.
    std::optional<Since> gradientsOf(const Place& place);
    // Of all stages, and done also on a GPU. False when cancelled.
    bool allGradients();
    void sumGradients(const Place& place);
    // Of a GPU: lets go of what others update of gradients that are summed by now; on the CPU who sums last does that for all. True where
    // there was something.
    bool letGoOfSummed();
    void gatherWeights(const Place& place);
    // -1 where no UNSHARD gathers them.
    std::optional<Since> weightsOf(const Place& place);
    void giveWeights(const Place& place);
    // When all were there; done also on a GPU.
    std::optional<TimeNs> allWeights();
    // What the rank holds when sums beside it have let go of something.
    [[nodiscard]] std::vector<MemorySample> takeSamples() { return maker_.takeNoted(rank_); }
    // The work that adds the last to the gradients of its stage.
    [[nodiscard]] bool isLast(const traces::Work& work) const;

private:
    void giveGradients(const Place& place, int layer);
    void give(const Turn& turn, std::vector<at::Tensor> values);
    void giveGradients(const Turn& turn, const Place& place);
    void keepOwnGradients(const Place& place, const DeviceMark& summed);
    std::optional<Since> waitFor(const std::vector<Turn>& turns);
    void settle();

    const Execution& run_;
    SumMaker& maker_;
    const RankDevice& device_;
    const Rank rank_; // of all
    const std::vector<Place> places_;
    traces::Step step_{};
    std::set<Place> gathering_; // nothing has waited for those weights yet
    std::set<Place> summing_;   // of a GPU: the rank has all of gradients that it is to have a part of
};

} // namespace stagecraft::runtime
