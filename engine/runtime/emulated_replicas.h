// SPDX-License-Identifier: Apache-2.0
//
// The collectives of an emulation with replicas. They are really made, right after the action that gives the last of what they need,
// and are given the time that their ring takes on the way between the replicas (machine_update.cpp has the formulas): the network's
// work, which no core does. A rank has one at a time. Private to the runtime.
//
//   collectives.give(turn, step, at, memory);              // while an action runs
//   collectives.settle(record);                            // after it
//   std::optional<TimeNs> since = collectives.doneAt(turns);
//   collectives.endUntil(now, ended);                      // before an action that begins now
#pragma once

#include "engine/runtime/collective_work.h"
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
    using Record = CollectiveWork::Record; // a member's slice
    using Ended = std::function<void(const Collective&, TimeNs)>;

    EmulatedReplicas(const engine::MachineModel& machine, int ranks, CollectiveWork& work)
        : machine_(machine), work_(work), free_(static_cast<std::size_t>(ranks), 0)
    {
    }

    void give(const Turn& turn, traces::Step step, TimeNs at, std::vector<Collective::Values> values);
    void settle(const Record& record);
    // Of those that the members gave to last. Nothing while some of them is not made.
    [[nodiscard]] std::optional<TimeNs> doneAt(const std::vector<Turn>& turns) const;
    // Sums that are over by then, in the order of time, each once.
    void endUntil(TimeNs time, const Ended& ended);
    // A rank's last collective ends, and from when on it has another one that is made elsewhere.
    [[nodiscard]] TimeNs freeAt(Rank rank) const { return free_[traces::index(rank)]; }
    void occupy(Rank rank, TimeNs until) { free_[traces::index(rank)] = until; }

private:
    struct Given {
        Turn turn;
        traces::Step step{};
        TimeNs at = 0;
        std::vector<Collective::Values> values;
    };
    struct State {
        traces::Step step{};
        std::size_t given = 0; // members, to the one that is to be made next
        TimeNs ready = 0;
        Rank last{};
        std::vector<TimeNs> doneAt; // by member, of the last one it gave to; -1 while that is not made
    };
    void make(const Collective& collective, State& state, const Record& record);

    void makeForReal(const Collective& collective);

    const engine::MachineModel& machine_;
    CollectiveWork& work_;
    std::vector<TimeNs> free_; // by rank
    std::vector<Given> given_; // by the action that runs
    std::map<const Collective*, State> states_;
    std::multimap<TimeNs, const Collective*> ends_; // of sums
};

} // namespace stagecraft::runtime
