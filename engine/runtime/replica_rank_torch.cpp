// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_rank_torch.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using namespace traces;

ReplicaRank::ReplicaRank(const Execution& run, SumMaker& maker, Rank rank)
    : run_(run), maker_(maker), device_(run.pipeline.device(rank)), rank_(run.among(rank)), places_(placesOf(run.schedule, rank))
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

void ReplicaRank::give(const Turn& turn, std::vector<at::Tensor> values)
{
    const RankDevice::Scope here = device_.enter();
    maker_.give(turn, step_, std::move(values), device_.mark());
}

void ReplicaRank::giveGradients(const Place& place, int layer)
{
    for (const Turn& turn : run_.sums->gradients(run_.replica, place))
        if (turn.layer == layer) giveGradients(turn, place);
}

void ReplicaRank::giveGradients(const Turn& turn, const Place& place)
{
    give(turn, run_.pipeline.stage(place).wholeGradients(turn.parameters));
    const bool divided = turn.collective->kind().result == Collective::Result::OwnPart;
    if (!device_.isCpu() && divided && run_.sums->isLastSum(*turn.collective)) summing_.insert(place);
}

std::optional<ReplicaRank::Since> ReplicaRank::gradientsOf(const Place& place)
{
    std::optional<Since> since = waitFor(run_.sums->gradients(run_.replica, place));
    if (since && summing_.erase(place) > 0) keepOwnGradients(place, since->mark);
    return since;
}

bool ReplicaRank::letGoOfSummed()
{
    if (summing_.empty()) return false;
    const RankDevice::Scope here = device_.enter();
    return std::erase_if(summing_, [&](const Place& place) {
        const std::vector<Turn>& turns = run_.sums->gradients(run_.replica, place);
        if (!maker_.done(turns)) return false;
        const DeviceMark summed = maker_.doneAt(turns.back());
        if (!summed->reached()) return false;
        keepOwnGradients(place, summed);
        return true;
    }) > 0;
}

void ReplicaRank::keepOwnGradients(const Place& place, const DeviceMark& summed)
{
    const RankDevice::Scope here = device_.enter();
    device_.await(summed);
    run_.pipeline.stage(place).keepOwnGradients();
}

void ReplicaRank::sumGradients(const Place& place)
{
    const RankDevice::Scope here = device_.enter();
    for (const Turn& turn : run_.sums->gradients(run_.replica, place)) giveGradients(turn, place);
}

void ReplicaRank::gatherWeights(const Place& place)
{
    for (const Turn& turn : run_.sums->gathers(run_.replica, place)) give(turn, run_.pipeline.stage(place).values(turn.parameters));
    gathering_.insert(place);
}

std::optional<ReplicaRank::Since> ReplicaRank::weightsOf(const Place& place)
{
    const std::vector<Turn>& turns = run_.sums->gathers(run_.replica, place);
    gathering_.erase(place);
    return turns.empty() ? std::optional(Since{}) : waitFor(turns);
}

void ReplicaRank::giveWeights(const Place& place)
{
    for (const Turn& turn : run_.sums->weights(run_.replica, place)) give(turn, run_.pipeline.stage(place).values(turn.parameters));
}

// Of several the last one is done last: all come in the order in which every member gives.
std::optional<ReplicaRank::Since> ReplicaRank::waitFor(const std::vector<Turn>& turns)
{
    if (!maker_.done(turns)) run_.control.rest(rank_);
    const std::optional<TimeNs> since = maker_.wait(turns);
    if (!since) return std::nullopt;
    return Since{*since, !turns.empty() ? maker_.doneAt(turns.back()) : nullptr};
}

void ReplicaRank::settle()
{
    if (device_.isCpu()) return;
    run_.control.rest(rank_);
    maker_.settle(rank_);
}

bool ReplicaRank::allGradients()
{
    for (const Place& place : places_)
        if (!gradientsOf(place)) return false;
    settle();
    return true;
}

std::optional<TimeNs> ReplicaRank::allWeights()
{
    std::vector<Since> all;
    while (!gathering_.empty()) // gathered for nothing, but the next gather is another one
        if (!weightsOf(*gathering_.begin())) return std::nullopt;
    for (const Place& place : places_) {
        const std::optional<Since> one = waitFor(run_.sums->weights(run_.replica, place));
        if (!one) return std::nullopt;
        all.push_back(*one);
    }
    settle();
    if (run_.control.ending()) return std::nullopt; // what is asked for may not be done
    TimeNs since = 0;
    for (const Since& each : all) since = std::max(since, each.mark ? each.mark->time() : each.time);
    return since;
}

} // namespace stagecraft::runtime
