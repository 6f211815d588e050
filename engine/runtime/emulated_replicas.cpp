// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/emulated_replicas.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

void EmulatedReplicas::give(const Turn& turn, traces::Step step, TimeNs at, std::vector<std::span<float>> values)
{
    given_.push_back({turn, step, at, std::move(values)});
}

void EmulatedReplicas::settle(const Record& record)
{
    for (Given& each : std::exchange(given_, {})) {
        State& state = states_[each.turn.collective];
        if (state.step != each.step) state = {each.step, -1, {}, -1};
        if (each.at > state.ready) {
            state.ready = each.at;
            state.last = each.turn.collective->members()[each.turn.member].rank;
        }
        if (each.turn.collective->give(each.turn.member, std::move(each.values))) make(*each.turn.collective, state, record);
    }
}

void EmulatedReplicas::make(const Collective& collective, State& state, const Record& record)
{
    const std::vector<Collective::Member>& members = collective.members();
    TimeNs begin = state.ready;
    for (std::size_t m = 0; m < members.size(); ++m) {
        collective.work(m);
        begin = std::max(begin, freeAt(members[m].rank));
    }
    const auto count = static_cast<TimeNs>(members.size());
    const int passes = collective.kind().action == traces::ActionKind::AllReduce ? 2 : 1;
    const TimeNs time = (count - 1) * machine_.replica.latency + machine_.replica.occupied(collective.kind().bytes) * (count - 1) / count;
    state.doneAt = begin + passes * time;
    for (std::size_t m = 0; m < members.size(); ++m) {
        occupy(members[m].rank, state.doneAt);
        record(collective, m, {state.step, begin, state.doneAt, state.ready, state.last});
    }
}

std::optional<TimeNs> EmulatedReplicas::doneAt(const std::vector<Turn>& turns, traces::Step step) const
{
    TimeNs done = 0;
    for (const Turn& turn : turns) {
        const auto state = states_.find(turn.collective);
        if (state == states_.end() || state->second.step != step || state->second.doneAt < 0) return std::nullopt;
        done = std::max(done, state->second.doneAt);
    }
    return done;
}

} // namespace stagecraft::runtime
