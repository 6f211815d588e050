// SPDX-License-Identifier: Apache-2.0
//
// What a step sends over each way from one rank to another, and how fast a way must be to keep up.
//
//   for (const LinkTraffic& link : trafficOf(schedule, costs)) show(link.from, link.to, link.bytes, link.requiredBytesPerSecond);
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"

#include <vector>

namespace stagecraft::engine {

struct LinkTraffic {
    Rank from{};
    Rank to{};
    bool betweenNodes = false;
    std::int64_t messages = 0; // of one step: activations and gradients, and what goes to a partner to be kept and back (BPipe)
    Bytes bytes = 0;           // the same; 0 where the cost table does not know their sizes
    // Of these, what goes to a partner to be kept, and back.
    std::int64_t copies = 0;
    Bytes copiedBytes = 0;
    // So that every message is there before its sender has made the next of its kind: the largest of a message's bytes over the
    // time of the action that makes it. 0 where bytes or times are not known.
    double requiredBytesPerSecond = 0;
};

// By sender and receiver, those that send anything. Precondition: one entry of costs per stage.
std::vector<LinkTraffic> trafficOf(const Schedule& schedule, const CostTable& costs);

} // namespace stagecraft::engine
