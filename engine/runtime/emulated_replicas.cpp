// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/emulated_replicas.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

void EmulatedReplicas::give(const Turn& turn, traces::Step step, TimeNs at, std::vector<Collective::Values> values)
{
    given_.push_back({turn, step, at, std::move(values)});
}

void EmulatedReplicas::settle(const Record& record)
{
    for (Given& each : std::exchange(given_, {})) {
        State& state = states_[each.turn.collective];
        if (state.given++ == 0) {
            state.step = each.step;
            state.ready = -1;
            state.doneAt.resize(each.turn.collective->members().size(), -1);
        }
        state.doneAt[each.turn.member] = -1;
        if (each.at > state.ready) {
            state.ready = each.at;
            state.last = each.turn.collective->members()[each.turn.member].rank;
        }
        if (each.turn.collective->give(each.turn.member, std::move(each.values))) make(*each.turn.collective, state, record);
    }
}

// What it really takes is nobody's time.
void EmulatedReplicas::makeForReal(const Collective& collective)
{
    const Record nowhere = [](const Collective&, std::size_t, const CollectiveSpan&) {};
    for (int round = 0; round < work_.rounds(); ++round)
        for (std::size_t m = 0; m < collective.members().size(); ++m) work_.work(collective, m, round);
    for (std::size_t m = 0; m < collective.members().size(); ++m) {
        work_.end(collective, m, {}, nowhere);
        work_.settle(collective.members()[m].rank, nowhere);
    }
}

void EmulatedReplicas::make(const Collective& collective, State& state, const Record& record)
{
    const std::vector<Collective::Member>& members = collective.members();
    makeForReal(collective);
    TimeNs begin = state.ready;
    for (const Collective::Member& member : members) begin = std::max(begin, freeAt(member.rank));
    const auto count = static_cast<TimeNs>(members.size());
    const int passes = collective.sums() && collective.kind().result == Collective::Result::All ? 2 : 1;
    const TimeNs time = (count - 1) * machine_.replica.latency + machine_.replica.occupied(collective.kind().bytes) * (count - 1) / count;
    const TimeNs end = begin + passes * time;
    state.given = 0;
    state.doneAt.assign(members.size(), end);
    for (std::size_t m = 0; m < members.size(); ++m) {
        occupy(members[m].rank, end);
        record(collective, m, {state.step, begin, end, state.ready, state.last});
    }
    if (collective.sums()) ends_.emplace(end, &collective);
}

std::optional<TimeNs> EmulatedReplicas::doneAt(const std::vector<Turn>& turns) const
{
    TimeNs done = 0;
    for (const Turn& turn : turns) {
        const auto state = states_.find(turn.collective);
        if (state == states_.end() || state->second.doneAt[turn.member] < 0) return std::nullopt;
        done = std::max(done, state->second.doneAt[turn.member]);
    }
    return done;
}

void EmulatedReplicas::endUntil(TimeNs time, const Ended& ended)
{
    while (!ends_.empty() && ends_.begin()->first <= time) {
        const auto next = ends_.extract(ends_.begin());
        ended(*next.mapped(), next.key());
    }
}

} // namespace stagecraft::runtime
