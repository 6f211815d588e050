// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/offload.h"

#include "engine/schedule/dry_run.h"
#include "engine/schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

namespace stagecraft::engine {
namespace {

bool takesActivations(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::InputGrad; }

// An activation on its rank: the actions that make it and take it, counted among the computing actions of the rank, and when.
struct Life {
    traces::Work forward;
    int made = 0;
    int taken = -1; // -1: never
    int freed = -1; // by the backward, or by the W that keeps a part of it
    int begin = 0;  // in slots
    int end = 0;

    [[nodiscard]] int length() const { return end - begin; }
    // An action between the two for each copy. It is away from the one after its forward to the one before the RELOAD.
    [[nodiscard]] bool hasRoom() const { return taken - made >= 3; }
    [[nodiscard]] int awayUntil() const { return taken - 2; }
};

int slotsOf(ActionKind kind)
{
    switch (kind) {
    case ActionKind::Backward: return 2;
    case ActionKind::Overlap: return 3;
    default: return traces::isCompute(kind) && kind != ActionKind::Optimizer ? 1 : 0;
    }
}

// Every rank's activations in the order of their forwards.
std::optional<std::vector<std::vector<Life>>> livesOf(const Schedule& schedule)
{
    struct RankState {
        int clock = 0;
        int position = 0;
        std::map<std::tuple<Flow, Stage, MicroBatch>, std::size_t> at;
    };
    const ScheduleShape shape(schedule, hasCommunication(schedule));
    std::vector<int> done(kFactCount * shape.factSlots, 0);
    std::vector<RankState> ranks(schedule.order.size());
    std::vector<std::vector<Life>> lives(schedule.order.size());
    DryRun run(schedule, SendMode::Buffered);
    run.execute([&](Rank r, const Action& action) {
        RankState& rank = ranks[index(r)];
        const bool computes = traces::isCompute(action.kind());
        int begin = computes ? rank.clock : 0;
        forEachWork(action, [&](const traces::Work& work) {
            everyNeed(shape, work, [&](const Milestone& need) {
                begin = std::max(begin, done[slot(shape, need)]);
                return true;
            });
        });
        const int end = begin + slotsOf(action.kind());
        forEachWork(action, [&](const traces::Work& work) {
            if (const std::optional<Milestone> gain = gainOf(work)) done[slot(shape, *gain)] = end;
            const std::tuple key{work.flow, work.stage, work.microbatch};
            if (work.kind == ActionKind::Forward) {
                rank.at[key] = lives[index(r)].size();
                lives[index(r)].push_back({work, rank.position, -1, -1, end, end});
            } else if (takesActivations(work.kind)) {
                Life& life = lives[index(r)][rank.at.at(key)];
                life.taken = life.freed = rank.position;
                life.end = begin;
            } else if (work.kind == ActionKind::WeightGrad) {
                lives[index(r)][rank.at.at(key)].freed = rank.position;
            }
        });
        if (!computes) return;
        rank.clock = end;
        ++rank.position;
    });
    return run.complete() ? std::optional(std::move(lives)) : std::nullopt;
}

// Which lives a rank sends away so that it never holds more than so many, as few as can be: where it would hold more, of those that
// could be away the one that is needed last (the greedy cover of points by intervals). Nothing where they do not suffice.
std::optional<std::vector<std::size_t>> pickedFor(const std::vector<Life>& lives, const std::vector<int>& held, int most)
{
    const auto neededLater = [&](std::size_t a, std::size_t b) { return lives[a].taken < lives[b].taken; };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(neededLater)> canGo(neededLater);
    std::vector<int> back(held.size() + 1, 0); // how many are away no more, by position
    std::vector<std::size_t> picked;
    std::size_t next = 0; // of the lives, which come in the order of their forwards
    int away = 0;
    for (std::size_t at = 0; at < held.size(); ++at) {
        const int position = static_cast<int>(at);
        away -= back[at];
        for (; next < lives.size() && lives[next].made < position; ++next)
            if (lives[next].hasRoom()) canGo.push(next);
        for (; held[at] - away > most; ++away) {
            if (canGo.empty() || lives[canGo.top()].awayUntil() < position) return std::nullopt;
            picked.push_back(canGo.top());
            ++back[static_cast<std::size_t>(lives[canGo.top()].awayUntil()) + 1];
            canGo.pop();
        }
    }
    return picked;
}

// How many a rank holds during each of its computing actions.
std::vector<int> heldDuring(const std::vector<Life>& lives)
{
    int last = -1;
    for (const Life& life : lives) last = std::max({last, life.made, life.freed});
    std::vector<int> held(static_cast<std::size_t>(last + 1), 0);
    for (const Life& life : lives)
        for (int at = life.made; at <= (life.freed < 0 ? last : life.freed); ++at) ++held[static_cast<std::size_t>(at)];
    return held;
}

// Which of the lives go away: those that lower the peak as far as so many can, and then those that wait longest.
std::vector<std::size_t> chosen(const std::vector<Life>& lives, double share)
{
    const auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(lives.size()) + 1e-9));
    const std::vector<int> held = heldDuring(lives);
    std::vector<std::size_t> picked;
    int above = -1;                                                              // they do not suffice for that
    int within = held.empty() ? 0 : *std::max_element(held.begin(), held.end()); // but for that
    while (within - above > 1) {
        const int most = above + (within - above) / 2;
        std::optional<std::vector<std::size_t>> enough = pickedFor(lives, held, most);
        if (enough && enough->size() <= wanted) {
            within = most;
            picked = std::move(*enough);
        } else {
            above = most;
        }
    }
    std::vector<bool> goes(lives.size(), false);
    for (const std::size_t k : picked) goes[k] = true;
    std::vector<std::size_t> byLength;
    for (std::size_t k = 0; k < lives.size(); ++k)
        if (lives[k].hasRoom() && !goes[k]) byLength.push_back(k);
    std::stable_sort(byLength.begin(), byLength.end(), [&](std::size_t a, std::size_t b) { return lives[a].length() > lives[b].length(); });
    byLength.resize(std::min(byLength.size(), wanted - picked.size()));
    picked.insert(picked.end(), byLength.begin(), byLength.end());
    return picked;
}

std::vector<Action> orderWithOffload(const std::vector<Action>& order, const std::vector<Life>& lives, double share)
{
    std::vector<std::vector<Action>> before(order.size() + 1); // by position among the computing actions
    std::vector<std::vector<Action>> after(order.size() + 1);
    std::vector<std::size_t> picked = chosen(lives, share);
    std::sort(picked.begin(), picked.end(), [&](std::size_t a, std::size_t b) { return lives[a].taken < lives[b].taken; });
    const auto action = [](ActionKind kind, const Life& life) {
        return traces::makeAction(kind, life.forward.stage, life.forward.microbatch, life.forward.flow);
    };
    for (const std::size_t k : picked) {
        after[static_cast<std::size_t>(lives[k].made)].push_back(action(ActionKind::Offload, lives[k]));
        before[static_cast<std::size_t>(lives[k].taken) - 1].push_back(action(ActionKind::Reload, lives[k]));
    }
    std::vector<Action> result;
    result.reserve(order.size() + 2 * picked.size());
    std::size_t position = 0;
    for (const Action& each : order) {
        if (!traces::isCompute(each.kind())) {
            result.push_back(each);
            continue;
        }
        result.insert(result.end(), before[position].begin(), before[position].end());
        result.push_back(each);
        result.insert(result.end(), after[position].begin(), after[position].end());
        ++position;
    }
    return result;
}

} // namespace

bool hasOffload(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& a) { return isCopy(a.kind()); });
    });
}

std::string_view copyLaneText(int depth)
{
    constexpr std::array<std::string_view, 4> kTexts{"offloads", "reloads", "keeps", "gives back"};
    return kTexts[static_cast<std::size_t>(depth)];
}

Expected<Schedule> withOffload(Schedule schedule, double share)
{
    if (!(share >= 0 && share <= 1)) return Error{fmt::format("offload: a share of {:g} is not allowed; 0 to 1", share)};
    if (share == 0) return schedule;
    if (hasOffload(schedule))
        return Error{fmt::format("schedule {}: it moves activations itself; leave the share to offload out", schedule.name)};
    const bool comesBack = std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& action) {
            return takesActivations(action.kind()) || action.kind() == ActionKind::Overlap;
        });
    });
    if (!comesBack)
        return Error{fmt::format("schedule {}: it keeps no activations for a backward; leave the share to offload out", schedule.name)};
    const std::optional<std::vector<std::vector<Life>>> lives = livesOf(schedule);
    if (!lives)
        return Error{fmt::format("schedule {}: it cannot be executed, so that nothing tells how long activations wait; validate it first", schedule.name)};
    for (std::size_t r = 0; r < schedule.order.size(); ++r) schedule.order[r] = orderWithOffload(schedule.order[r], (*lives)[r], share);
    schedule.offloadTo = OffloadTo::Host;
    return schedule;
}

} // namespace stagecraft::engine
