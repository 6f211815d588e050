// SPDX-License-Identifier: Apache-2.0
//
// The ways between ranks: when a transfer that is asked for begins, and when it is there. Who asks does so in the order of time,
// for a way that is shared serves whoever came first. Not thread-safe.
//
//   Links links(costs, schedule.ranks);
//   const Interval hop = links.send(Rank{0}, Rank{1}, bytes, now);   // hop.end: the other side has it
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"

#include <map>
#include <utility>
#include <vector>

namespace stagecraft::engine {

class Links {
public:
    Links(const CostTable& costs, int ranks);

    // Latency, and the time for which `bytes` occupy the way. Bytes that are not known take what the cost table says of a hop.
    struct Hop {
        TimeNs latency = 0;
        TimeNs occupied = 0;
    };
    [[nodiscard]] Hop hop(Rank from, Rank to, Bytes bytes) const;

    traces::Interval send(Rank from, Rank to, Bytes bytes, TimeNs at);

private:
    const CostTable& costs_;
    std::vector<TimeNs> laneFree_;                  // by sending rank
    std::map<std::pair<int, int>, TimeNs> wayFree_; // by ranks inside a node, by nodes between them; nodes count from -1 downwards
    std::map<std::pair<int, int>, TimeNs> arrived_; // the last message of a channel, by ranks
};

} // namespace stagecraft::engine
