// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/traffic.h"

#include "engine/schedule/milestones.h"
#include "engine/simulate/action_time.h"
#include "engine/simulate/handed_bytes.h"

#include <map>
#include <utility>

namespace stagecraft::engine {

std::vector<LinkTraffic> trafficOf(const Schedule& schedule, const CostTable& costs)
{
    std::map<std::pair<Rank, Rank>, LinkTraffic> links;
    const auto add = [&](const traces::Work& work, TimeNs time) {
        const std::optional<Handoff> handoff = outputOf(schedule, work);
        if (!handoff) return;
        const auto& [send, recv, from, to] = *handoff;
        const Bytes bytes = handedBytes(costs, *handoff);
        LinkTraffic& link = links[{from, to}];
        link.from = from;
        link.to = to;
        link.betweenNodes = costs.machine.nodeOf(from.value) != costs.machine.nodeOf(to.value);
        ++link.messages;
        link.bytes += bytes;
        if (time > 0) link.requiredBytesPerSecond = std::max(link.requiredBytesPerSecond, static_cast<double>(bytes) * 1e9 / static_cast<double>(time));
    };
    CostTable even = costs;
    even.jitter = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r]) {
            if (!traces::isCompute(action.kind())) continue;
            const auto time = static_cast<TimeNs>(static_cast<double>(actionTime(even, action, 0)) * costs.machine.scaleOf(r));
            forEachWork(action, [&](const traces::Work& work) { add(work, time); });
        }
    std::vector<LinkTraffic> list;
    for (const auto& [ends, link] : links) list.push_back(link);
    return list;
}

} // namespace stagecraft::engine
