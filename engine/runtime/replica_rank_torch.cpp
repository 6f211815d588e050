// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_rank_torch.h"

#include <algorithm>

namespace stagecraft::runtime {

using namespace traces;

ReplicaRank::ReplicaRank(const Execution& run, ReplicaThreads& threads, Rank rank)
    : run_(run), threads_(threads), rank_(run.among(rank)), places_(placesOf(run.schedule, rank))
{
    if (run.sums->byActions()) return;
    for (const Place& place : places_)
        run.pipeline.stage(place).onFinalGradients([this, place](int layer) { giveGradients(place, layer); });
}

ReplicaRank::~ReplicaRank()
{
    for (const Place& place : places_) run_.pipeline.stage(place).onFinalGradients({});
}

bool ReplicaRank::isLast(const Work& work) const
{
    return (work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad) &&
           run_.pipeline.stage(placeOf(work)).isLast(work.microbatch.value);
}

void ReplicaRank::giveGradients(const Place& place, int layer)
{
    for (const Turn& turn : run_.sums->gradients(run_.replica, place))
        if (turn.layer == layer) threads_.give(turn, step_, run_.pipeline.stage(place).gradientMemory(turn.parameters));
}

void ReplicaRank::sumGradients(const Place& place)
{
    for (const Turn& turn : run_.sums->gradients(run_.replica, place))
        threads_.give(turn, step_, run_.pipeline.stage(place).gradientMemory(turn.parameters));
}

void ReplicaRank::gatherWeights(const Place& place)
{
    for (const Turn& turn : run_.sums->gathers(run_.replica, place))
        threads_.give(turn, step_, run_.pipeline.stage(place).valueMemory(turn.parameters));
    gathering_.insert(place);
}

std::optional<TimeNs> ReplicaRank::weightsOf(const Place& place)
{
    const std::vector<Turn>& turns = run_.sums->gathers(run_.replica, place);
    gathering_.erase(place);
    return turns.empty() ? std::optional<TimeNs>(-1) : waitFor(turns);
}

void ReplicaRank::giveWeights(const Place& place)
{
    for (const Turn& turn : run_.sums->weights(run_.replica, place))
        threads_.give(turn, step_, run_.pipeline.stage(place).valueMemory(turn.parameters));
}

std::optional<TimeNs> ReplicaRank::waitFor(const std::vector<Turn>& turns)
{
    if (!threads_.done(turns)) run_.control.rest(rank_);
    return threads_.wait(turns);
}

std::optional<TimeNs> ReplicaRank::allGradients()
{
    TimeNs since = 0;
    for (const Place& place : places_) {
        const std::optional<TimeNs> one = gradientsOf(place);
        if (!one) return std::nullopt;
        since = std::max(since, *one);
    }
    return since;
}

std::optional<TimeNs> ReplicaRank::allWeights()
{
    TimeNs since = 0;
    while (!gathering_.empty()) // gathered for nothing, but the next gather is another one
        if (!weightsOf(*gathering_.begin())) return std::nullopt;
    for (const Place& place : places_) {
        const std::optional<TimeNs> one = waitFor(run_.sums->weights(run_.replica, place));
        if (!one) return std::nullopt;
        since = std::max(since, *one);
    }
    return since;
}

} // namespace stagecraft::runtime
