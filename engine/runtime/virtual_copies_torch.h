// SPDX-License-Identifier: Apache-2.0
//
// OFFLOAD and RELOAD of virtual ranks. A copy takes what the host link of the plan's machine says, or the way to the partner, for as many
// bytes as are really moved; it begins when the rank comes to it and its lane is free, and takes nothing of the rank. It is really made at
// the virtual moment at which it begins, and what it leaves is let go at the one at which it ends. Private to the runtime.
//
//   copies.ask(rank, work, rankClock, step);      // a rank of the execution's replica
//   if (!copies.runUntil(start)) return false;    // before an action that starts then
//   copies.reloaded(work)                         // its start is not before that
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/virtual_memory.h"
#include "engine/simulate/links.h"

#include <map>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

class VirtualCopies {
public:
    VirtualCopies(const Execution& run, VirtualMemory& memory);

    void beginStep(TimeNs at);
    void ask(traces::Rank rank, const traces::Work& work, TimeNs now, traces::Step step);
    // Does for real all that is due until then. False: it failed, which the control knows.
    bool runUntil(TimeNs time);
    // When what the action takes is back; -1 where it was never away.
    [[nodiscard]] TimeNs reloaded(const traces::Work& work) const;

private:
    struct Due {
        traces::Rank rank{};
        traces::Work work{};
        traces::Step step{};
        bool ends = false;
    };
    struct Lanes {
        TimeNs away = 0; // free from then on
        TimeNs back = 0;
    };
    using Unit = std::tuple<traces::Flow, traces::Stage, traces::MicroBatch>;
    static Unit unitOf(const traces::Work& work) { return {work.flow, work.stage, work.microbatch}; }

    [[nodiscard]] TimeNs timeOf(traces::Rank rank, const traces::Work& work);
    bool run(TimeNs time, const Due& due);

    const Execution& run_;
    VirtualMemory& memory_;
    engine::Links links_;
    std::vector<Lanes> lanes_; // by rank
    std::map<Unit, TimeNs> away_; // when the copy off the rank is over
    std::map<Unit, TimeNs> back_;
    std::multimap<TimeNs, Due> due_; // at one moment in the order in which they were asked for
};

} // namespace stagecraft::runtime
