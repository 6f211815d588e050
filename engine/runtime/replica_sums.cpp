// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/replica_sums.h"

#include "engine/schedule/shard.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace stagecraft::runtime {

using traces::ActionKind;

ReplicaSums::ReplicaSums(const Spec& spec) : replicas_(spec.replicas), byActions_(engine::reducesGradients(spec.schedule))
{
    const Schedule& schedule = spec.schedule;
    const int weight = engine::valueBytes(spec.precision);
    std::set<Place> gathered; // by UNSHARD
    for (const std::vector<Action>& list : schedule.order)
        for (const Action& action : list)
            if (action.kind() == ActionKind::Unshard) gathered.insert(placeOf(action.work));
    const auto member = [&](int replica, const Place& place) {
        return Collective::Member{Rank{replica * schedule.ranks + schedule.rankOf(place.flow, place.stage).value}, place, replica};
    };
    const auto add = [&](const Collective::Kind& kind, const std::vector<Collective::Member>& members, auto&& turnsOf, const Turn& turn) {
        collectives_.push_back(std::make_unique<Collective>(kind, members, replicas_));
        for (std::size_t m = 0; m < members.size(); ++m) {
            Turn own = turn;
            own.collective = collectives_.back().get();
            own.member = m;
            turnsOf(copies_[{members[m].replica, members[m].place}]).push_back(std::move(own));
        }
    };
    for (int s = 0; s < schedule.stages(); ++s) {
        std::vector<Collective::Member> all;
        for (int j = 0; j < replicas_; ++j)
            for (const Flow flow : schedule.flows()) all.push_back(member(j, {flow, Stage{s}}));
        traces::Bytes bytes = 0;
        std::size_t parameters = 0;
        for (const GradientBucket& bucket : spec.buckets[static_cast<std::size_t>(s)]) {
            const ActionKind kind = byActions_ || spec.result == Result::OwnPart ? ActionKind::ReduceGrad : ActionKind::AllReduce;
            add({kind, Stage{s}, bucket.bytes, spec.result}, all, [](Copy& copy) -> auto& { return copy.gradients; },
                {.parameters = bucket.parameters, .layer = bucket.layer});
            bytes += bucket.bytes;
            parameters += bucket.parameters.size();
        }
        for (const Collective::Member& each : all) copies_.try_emplace({each.replica, each.place}); // also where there is nothing to sum
        if (parameters == 0) continue;
        std::vector<std::size_t> every(parameters);
        std::iota(every.begin(), every.end(), std::size_t{0});
        for (const Flow flow : schedule.flows()) {
            std::vector<Collective::Member> ofFlow;
            for (int j = 0; j < replicas_; ++j) ofFlow.push_back(member(j, {flow, Stage{s}}));
            const bool byAction = gathered.contains({flow, Stage{s}});
            if (!byAction && spec.update == Update::Whole) continue;
            add({ActionKind::Unshard, Stage{s}, bytes / engine::kMainBytes * weight, Result::All, weight}, ofFlow, [byAction](Copy& copy) -> auto& { return byAction ? copy.gathers : copy.weights; },
                {.parameters = every});
        }
    }
}

bool ReplicaSums::isLastSum(const Collective& collective) const
{
    const Collective::Member& any = collective.members().front();
    return collective.sums() && gradients(any.replica, any.place).back().collective == &collective;
}

std::vector<std::vector<int>> sumCliques(const Schedule& schedule, int replicas)
{
    std::vector<std::vector<int>> cliques;
    for (int s = 0; s < schedule.stages(); ++s) {
        std::set<int> ranks;
        for (int j = 0; j < replicas; ++j)
            for (const Flow flow : schedule.flows()) ranks.insert(j * schedule.ranks + schedule.rankOf(flow, Stage{s}).value);
        std::vector<int> clique(ranks.begin(), ranks.end());
        if (std::ranges::find(cliques, clique) == cliques.end()) cliques.push_back(std::move(clique));
    }
    return cliques;
}

RunEvent collectiveEvent(const ReplicaSums& sums, const Collective& collective, std::size_t member, const CollectiveSpan& span)
{
    RunEvent event = actionEvent(span.step, collective.action(member), {.begin = span.begin, .end = span.end, .ready = span.ready});
    event.value[RunEvent::kFrom] = span.last.value;
    event.value[RunEvent::kLast] = sums.isLastSum(collective) ? 1 : 0;
    return event;
}

} // namespace stagecraft::runtime
