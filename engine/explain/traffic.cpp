// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/traffic.h"

#include "engine/schedule/milestones.h"
#include "engine/simulate/action_time.h"

#include <map>
#include <utility>

namespace stagecraft::engine {

std::vector<LinkTraffic> trafficOf(const Schedule& schedule, const CostTable& costs)
{
    std::map<std::pair<Rank, Rank>, LinkTraffic> links;
    const int perNode = costs.machine.ranksPerNode;
    const auto add = [&](const traces::Work& work, TimeNs time) {
        const bool ahead = work.kind == ActionKind::Forward;
        if (!ahead && work.kind != ActionKind::Backward && work.kind != ActionKind::InputGrad) return;
        const Stage neighbour{work.stage.value + (ahead ? 1 : -1)};
        if (neighbour.value < 0 || neighbour.value >= schedule.stages()) return;
        const Rank from = schedule.rankOf(work.flow, work.stage);
        const Rank to = schedule.rankOf(work.flow, neighbour);
        if (from == to) return;
        const Bytes bytes = costs.stages[index(ahead ? work.stage : neighbour)].outputBytes;
        LinkTraffic& link = links[{from, to}];
        link.from = from;
        link.to = to;
        link.betweenNodes = perNode > 0 && from.value / perNode != to.value / perNode;
        ++link.messages;
        link.bytes += bytes;
        if (time > 0) link.requiredBytesPerSecond = std::max(link.requiredBytesPerSecond, static_cast<double>(bytes) * 1e9 / static_cast<double>(time));
    };
    CostTable even = costs;
    even.jitter = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r]) {
            if (!traces::isCompute(action.kind())) continue;
            const double scale = r < costs.machine.rankScale.size() ? costs.machine.rankScale[r] : 1;
            const auto time = static_cast<TimeNs>(static_cast<double>(actionTime(even, action, 0)) * scale);
            forEachWork(action, [&](const traces::Work& work) { add(work, time); });
        }
    std::vector<LinkTraffic> list;
    for (const auto& [ends, link] : links) list.push_back(link);
    return list;
}

} // namespace stagecraft::engine
