// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/shard.h"

#include "engine/schedule/milestones.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stagecraft::engine {
namespace {

// Weights: those of a stage, of a direction.
using Held = std::pair<Flow, Stage>;

Action actionOn(ActionKind kind, const Held& held) { return traces::makeAction(kind, held.second, traces::kNoMicroBatch, held.first); }

struct NextUse {
    Held held;
    std::size_t position = 0;
};

// For each position of the list the stages that it and those behind it use, the first `most` of them in the order of use; one more
// where an overlapped pair brings two at once. Found from the back: what an action uses comes to the front of the list.
std::vector<std::vector<Held>> nextUses(const std::vector<Action>& list, std::size_t most)
{
    std::vector<std::vector<Held>> found(list.size());
    std::vector<NextUse> uses;
    for (std::size_t at = list.size(); at-- > 0;) {
        if (!usesWeights(list[at].kind())) continue;
        std::vector<Held> here;
        forEachWork(list[at], [&](const traces::Work& work) { here.emplace_back(work.flow, work.stage); });
        for (auto held = here.rbegin(); held != here.rend(); ++held) {
            std::erase_if(uses, [&](const NextUse& use) { return use.held == *held; });
            uses.insert(uses.begin(), {*held, at});
        }
        std::size_t count = std::min(most, uses.size());
        if (count > 0 && count < uses.size() && uses[count].position == uses[count - 1].position) ++count;
        for (std::size_t i = 0; i < count; ++i) found[at].push_back(uses[i].held);
    }
    return found;
}

std::vector<Action> gathered(const std::vector<Action>& list, std::size_t most)
{
    const std::vector<std::vector<Held>> uses = nextUses(list, most);
    std::vector<Action> out;
    std::vector<Held> active; // in order
    for (std::size_t at = 0; at < list.size(); ++at) {
        if (usesWeights(list[at].kind())) {
            const auto isNext = [&](const Held& held) { return std::find(uses[at].begin(), uses[at].end(), held) != uses[at].end(); };
            for (const Held& held : active)
                if (!isNext(held)) out.push_back(actionOn(ActionKind::Reshard, held));
            std::erase_if(active, [&](const Held& held) { return !isNext(held); });
            for (const Held& held : uses[at]) {
                if (std::find(active.begin(), active.end(), held) != active.end()) continue;
                out.push_back(actionOn(ActionKind::Unshard, held));
                active.insert(std::lower_bound(active.begin(), active.end(), held), held);
            }
        }
        out.push_back(list[at]);
    }
    for (const Held& held : active) out.push_back(actionOn(ActionKind::Reshard, held));
    return out;
}

std::vector<Action> reduced(const std::vector<Action>& list, const Schedule& schedule)
{
    std::vector<Action> out;
    std::map<Held, int> backwards;
    for (const Action& action : list) {
        out.push_back(action);
        forEachWork(action, [&](const traces::Work& work) {
            if (work.kind != ActionKind::Backward && work.kind != ActionKind::WeightGrad) return;
            const Held held{work.flow, work.stage};
            if (++backwards[held] == schedule.units(work.flow)) out.push_back(actionOn(ActionKind::ReduceGrad, held));
        });
    }
    return out;
}

template <class Is>
bool hasAny(const Schedule& schedule, Is&& is)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [&](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [&](const Action& a) { return is(a.kind()); });
    });
}

} // namespace

bool hasSharding(const Schedule& schedule) { return hasAny(schedule, isSharding); }
bool gathersWeights(const Schedule& schedule) { return hasAny(schedule, [](ActionKind kind) { return kind == ActionKind::Unshard; }); }
bool reducesGradients(const Schedule& schedule) { return hasAny(schedule, [](ActionKind kind) { return kind == ActionKind::ReduceGrad; }); }

Schedule withoutSharding(Schedule schedule)
{
    for (std::vector<Action>& list : schedule.order) std::erase_if(list, [](const Action& action) { return isSharding(action.kind()); });
    return schedule;
}

Schedule addUnshardReshard(Schedule schedule, int activeStages)
{
    for (std::vector<Action>& list : schedule.order) list = gathered(list, static_cast<std::size_t>(std::max(activeStages, 1)));
    return schedule;
}

Schedule addReduceGrad(Schedule schedule)
{
    for (std::vector<Action>& list : schedule.order) list = reduced(list, schedule);
    return schedule;
}

Schedule shard(Schedule schedule, Sharding sharding)
{
    if (sharding < Sharding::Zero2 || hasSharding(schedule)) return schedule;
    if (sharding == Sharding::Zero3) schedule = addUnshardReshard(std::move(schedule));
    return addReduceGrad(std::move(schedule));
}

} // namespace stagecraft::engine
