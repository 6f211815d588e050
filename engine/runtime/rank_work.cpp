// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_work.h"

#include "engine/schedule/milestones.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/weight_versions.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using traces::ActionKind;

std::vector<Place> places(const Schedule& schedule)
{
    std::vector<Place> all;
    for (int s = 0; s < schedule.stages(); ++s)
        for (const Flow flow : schedule.flows()) all.push_back({flow, Stage{s}});
    return all;
}

std::vector<Place> placesOf(const Schedule& schedule, Rank rank)
{
    std::vector<Place> held;
    for (const Place& place : places(schedule))
        if (schedule.rankOf(place.flow, place.stage) == rank) held.push_back(place);
    return held;
}

namespace {

// Nothing where the copies lie on one rank, and the other action is the one for both.
void addSum(std::vector<Action>& list, const Schedule& schedule, const Place& own, const Place& other)
{
    if (own > other && schedule.rankOf(own.flow, own.stage) == schedule.rankOf(other.flow, other.stage)) return;
    const auto sumOf = [](const Place& place) { return traces::makeAction(ActionKind::AllReduce, place.stage, traces::kNoMicroBatch, place.flow).work; };
    list.push_back({sumOf(own), sumOf(other)});
}

} // namespace

std::vector<Action> rankWork(const Schedule& schedule, Rank rank, Ends ends, Clipping clipping, int replicas)
{
    std::vector<Action> list;
    std::vector<Place> updated;
    for (const Action& action : schedule.order[traces::index(rank)]) {
        if (traces::isTransfer(action.kind())) continue;
        if (action.kind() == ActionKind::Optimizer) updated.push_back({action.work.flow, action.stage()});
        list.push_back(action);
    }
    if (schedule.inference()) return list;
    const Stage first{0};
    const Stage last{schedule.stages() - 1};
    const auto isEnd = [&](const Place& place) { return ends == Ends::Tied && first != last && (place.stage == first || place.stage == last); };
    std::vector<Action> updates; // that wait for all sums
    const auto update = [&](const Place& place) {
        (clipping == Clipping::On ? updates : list).push_back(traces::makeAction(ActionKind::Optimizer, place.stage, traces::kNoMicroBatch, place.flow));
    };
    const std::vector<Place> held = placesOf(schedule, rank);
    std::vector<Place> tied;
    for (const Place& place : held) {
        if (std::find(updated.begin(), updated.end(), place) != updated.end()) continue;
        if (schedule.twoDirections() && replicas == 1) addSum(list, schedule, place, {place.flow == Flow::Up ? Flow::Down : Flow::Up, place.stage});
        if (isEnd(place)) tied.push_back(place);
        else update(place);
    }
    std::sort(tied.begin(), tied.end()); // by direction
    for (const Place& place : tied) addSum(list, schedule, place, {place.flow, place.stage == first ? last : first});
    for (const Place& place : tied) update(place);
    if (clipping == Clipping::On)
        list.push_back(traces::makeAction(ActionKind::AllReduce, held.front().stage, traces::kNoMicroBatch, held.front().flow));
    list.insert(list.end(), updates.begin(), updates.end());
    return list;
}

int mostUnits(const Schedule& schedule)
{
    int most = 0;
    for (const Flow flow : schedule.flows()) most = std::max(most, schedule.units(flow));
    return most;
}

StageDuties dutiesOf(const Schedule& schedule, const Place& place)
{
    StageDuties duties;
    duties.units = schedule.units(place.flow);
    duties.inference = schedule.inference();
    duties.slices = schedule.slices;
    duties.moves = engine::hasOffload(schedule);
    std::vector<int> waiting; // units whose gradients wait for the next update
    if (schedule.asynchronous()) {
        duties.version = engine::weightVersions(schedule)[traces::index(place.stage)].version;
        duties.group.resize(duties.version.size());
        duties.update.resize(duties.version.size());
    }
    for (const Action& action : schedule.order[traces::index(schedule.rankOf(place.flow, place.stage))])
        engine::forEachWork(action, [&](const traces::Work& work) {
            if (Place{work.flow, work.stage} != place) return;
            const int unit = work.microbatch.value;
            switch (work.kind) {
            case ActionKind::InputGrad: duties.splits = true; break;
            case ActionKind::Backward:
            case ActionKind::WeightGrad:
                duties.gradientOrder.push_back(unit);
                waiting.push_back(unit);
                break;
            case ActionKind::Optimizer: {
                ++duties.updates;
                const std::vector<int> taken = std::exchange(waiting, {});
                for (const int each : taken)
                    if (duties.asynchronous()) {
                        duties.group[static_cast<std::size_t>(each)] = static_cast<int>(taken.size());
                        duties.update[static_cast<std::size_t>(each)] = duties.updates;
                    }
                break;
            }
            case ActionKind::Unshard: duties.gathers = true; break;
            case ActionKind::Recompute:
                duties.recomputed.resize(static_cast<std::size_t>(duties.units));
                duties.recomputed[static_cast<std::size_t>(unit)] = true;
                break;
            default: break;
            }
        });
    return duties;
}

} // namespace stagecraft::runtime
