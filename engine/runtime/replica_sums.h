// SPDX-License-Identifier: Apache-2.0
//
// Which collectives the replicas of a run have: for each stage the buckets of its gradients, summed over all its copies (replica 0
// first, of each the direction down first), and where replicas divide the update the gather of its weights: for the schedule's UNSHARD
// actions where it has any of the stage, else behind the update. The ranks of replica j are numbered from j * p on. A description; who
// executes it is another's. Private to the runtime.
//
//   ReplicaSums sums({.schedule = schedule, .replicas = 2, .buckets = bucketsByStage});
//   for (const Turn& turn : sums.gradients(0, place)) give(turn);
#pragma once

#include "engine/model/precision.h"
#include "engine/runtime/collective.h"
#include "engine/runtime/gradient_buckets.h"
#include "engine/runtime/run_event.h"

#include <map>
#include <memory>
#include <vector>

namespace stagecraft::runtime {

// A rank's part in a collective.
struct Turn {
    Collective* collective = nullptr;
    std::size_t member = 0;
    std::vector<std::size_t> parameters; // of the stage, whose gradients or values it is about
    int layer = 0;                       // of the stage: gradients are ready with it
};

class ReplicaSums {
public:
    enum class Update : std::uint8_t { Whole, Divided }; // every replica updates all weights, or its part of them (ZeRO-1)
    using Result = Collective::Result;
    struct Spec {
        const Schedule& schedule;
        int replicas = 1;
        Update update = Update::Whole;
        Result result = Result::All;
        engine::Precision precision = engine::Precision::Fp32; // of the weights
        std::vector<std::vector<GradientBucket>> buckets; // by stage; one of each where the schedule says when it is summed
    };
    explicit ReplicaSums(const Spec& spec);

    [[nodiscard]] const std::vector<Turn>& gradients(int replica, const Place& place) const { return of(replica, place).gradients; }
    // Behind the update; nothing where every replica updates all weights, or UNSHARD gathers them.
    [[nodiscard]] const std::vector<Turn>& weights(int replica, const Place& place) const { return of(replica, place).weights; }
    // Of the stage's UNSHARD actions; nothing where the schedule has none.
    [[nodiscard]] const std::vector<Turn>& gathers(int replica, const Place& place) const { return of(replica, place).gathers; }
    // REDUCE_GRAD actions say when gradients are summed; else the buckets are, as soon as they are made.
    [[nodiscard]] bool byActions() const { return byActions_; }
    // Whether the sum of its stage's gradients is whole with this collective.
    [[nodiscard]] bool isLastSum(const Collective& collective) const;
    [[nodiscard]] int replicas() const { return replicas_; }
    // In the order of the stages.
    [[nodiscard]] const std::vector<std::unique_ptr<Collective>>& collectives() const { return collectives_; }

private:
    struct Copy {
        std::vector<Turn> gradients;
        std::vector<Turn> weights;
        std::vector<Turn> gathers;
    };
    [[nodiscard]] const Copy& of(int replica, const Place& place) const { return copies_.at({replica, place}); }

    int replicas_;
    bool byActions_;
    std::vector<std::unique_ptr<Collective>> collectives_;
    std::map<std::pair<int, Place>, Copy> copies_;
};

// The ranks that hold copies of the same stage and sum together, of all replicas, in rising order: each once, in the order of the stages.
std::vector<std::vector<int>> sumCliques(const Schedule& schedule, int replicas);

// What the rank of a member leaves behind of its part.
RunEvent collectiveEvent(const ReplicaSums& sums, const Collective& collective, std::size_t member, const CollectiveSpan& span);

} // namespace stagecraft::runtime
