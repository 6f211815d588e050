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
    // By their sender, which has few receivers: this is done for every action of millions.
    std::vector<std::vector<LinkTraffic>> links(schedule.order.size());
    const auto linkOf = [&](Rank from, Rank to) -> LinkTraffic& {
        std::vector<LinkTraffic>& sent = links[index(from)];
        if (const auto known = std::ranges::find(sent, to, &LinkTraffic::to); known != sent.end()) return *known;
        LinkTraffic& link = sent.emplace_back();
        link.from = from;
        link.to = to;
        link.betweenNodes = costs.machine.nodeOf(from.value) != costs.machine.nodeOf(to.value);
        return link;
    };
    const auto add = [&](Rank from, Rank to, Bytes bytes, TimeNs time) -> LinkTraffic& {
        LinkTraffic& link = linkOf(from, to);
        ++link.messages;
        link.bytes += bytes;
        if (time > 0) link.requiredBytesPerSecond = std::max(link.requiredBytesPerSecond, static_cast<double>(bytes) * 1e9 / static_cast<double>(time));
        return link;
    };
    CostTable even = costs;
    even.jitter = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r]) {
            const auto timeOf = [&](const Action& made) {
                return static_cast<TimeNs>(static_cast<double>(actionTime(even, made, 0)) * costs.machine.scaleOf(r));
            };
            const Rank own{r};
            const traces::Work& work = action.work;
            const bool leaves = work.kind == ActionKind::Offload;
            if (leaves || work.kind == ActionKind::Reload) { // as often as the forward or backward that it belongs to
                if (schedule.offloadTo != OffloadTo::Partner) continue;
                const Rank partner = schedule.partnerOf(own);
                const Bytes bytes = partOf(costs.sliceSize, costs.stages[index(work.stage)].activationBytes, work.microbatch);
                const ActionKind paired = leaves ? ActionKind::Forward : ActionKind::Backward;
                LinkTraffic& way = add(leaves ? own : partner, leaves ? partner : own, bytes,
                                       timeOf(traces::makeAction(paired, work.stage, work.microbatch, work.flow)));
                ++way.copies;
                way.copiedBytes += bytes;
            }
            if (!traces::isCompute(action.kind())) continue;
            forEachWork(action, [&](const traces::Work& part) {
                const std::optional<Handoff> handoff = outputOf(schedule, part);
                if (handoff)
                    add(handoff->from, handoff->to, partOf(costs.sliceSize, handedBytes(costs, *handoff), part.microbatch), timeOf(action));
            });
        }
    std::vector<LinkTraffic> list;
    for (std::vector<LinkTraffic>& sent : links) {
        std::ranges::sort(sent, {}, &LinkTraffic::to);
        list.insert(list.end(), sent.begin(), sent.end());
    }
    return list;
}

} // namespace stagecraft::engine
