// SPDX-License-Identifier: Apache-2.0
//
// The collectives of an emulation with replicas. They are really made, right after the action that gives the last of what they need,
// and are given the time that their ring takes on the way between the replicas (machine_update.cpp has the formulas): the network's
// work, which no core does. A rank has one at a time. Private to the runtime.
//
//   collectives.give(turn, rank, step, at, memory);        // while an action runs
//   collectives.settle(record);                            // after it
//   std::optional<TimeNs> since = collectives.doneAt(turns, step);
#pragma once

#include "engine/runtime/replica_sums.h"
#include "engine/simulate/machine_model.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace stagecraft::runtime {

class EmulatedReplicas {
public:
    // A member's slice.
    using Record = std::function<void(const Collective&, std::size_t member, const CollectiveSpan&)>;

    EmulatedReplicas(const engine::MachineModel& machine, int ranks) : machine_(machine), free_(static_cast<std::size_t>(ranks), 0) {}

    void give(const Turn& turn, traces::Step step, TimeNs at, std::vector<std::span<float>> values);
    void settle(const Record& record);
    // Nothing while some of them is not made.
    [[nodiscard]] std::optional<TimeNs> doneAt(const std::vector<Turn>& turns, traces::Step step) const;
    // A rank's last collective ends, and from when on it has another one that is made elsewhere.
    [[nodiscard]] TimeNs freeAt(Rank rank) const { return free_[traces::index(rank)]; }
    void occupy(Rank rank, TimeNs until) { free_[traces::index(rank)] = until; }

private:
    struct Given {
        Turn turn;
        traces::Step step{};
        TimeNs at = 0;
        std::vector<std::span<float>> values;
    };
    struct State {
        traces::Step step{-1}; // whose collective it was last
        TimeNs ready = 0;
        Rank last{};
        TimeNs doneAt = -1;
    };
    void make(const Collective& collective, State& state, const Record& record);

    const engine::MachineModel& machine_;
    std::vector<TimeNs> free_; // by rank
    std::vector<Given> given_; // by the action that runs
    std::map<const Collective*, State> states_;
};

} // namespace stagecraft::runtime
