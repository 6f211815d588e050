// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wait_edges.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

WaitEdge inputEdge(const engine::Schedule& schedule, const BoxAddress& box)
{
    const traces::Stage maker = senderOf(box);
    const traces::Rank other = schedule.rankOf(box.flow, maker);
    const auto kind = box.direction == Direction::Forward ? traces::ActionKind::Forward : traces::ActionKind::Backward;
    return {schedule.rankOf(box.flow, box.receiver), other,
            fmt::format("{} of rank {}", traces::toText(traces::makeAction(kind, maker, box.microbatch, box.flow)), other.value)};
}

WaitEdge roomEdge(const engine::Schedule& schedule, const BoxAddress& box, std::size_t depth)
{
    const traces::Rank other = schedule.rankOf(box.flow, box.receiver);
    return {schedule.rankOf(box.flow, senderOf(box)), other,
            fmt::format("rank {} to take from the way to stage {}, which is full (hand-off depth {})", other.value, box.receiver.value, depth)};
}

WaitEdge copyEdge(const engine::Schedule& schedule, const BoxAddress& box)
{
    const bool directions = box.direction == Direction::Forward; // else the two ends of one direction, which share a table
    const traces::Flow flow = !directions ? box.flow : box.flow == traces::Flow::Up ? traces::Flow::Down : traces::Flow::Up;
    const traces::Stage stage = directions ? box.receiver : traces::Stage{box.receiver.value == 0 ? schedule.stages() - 1 : 0};
    const traces::Rank other = schedule.rankOf(flow, stage);
    return {schedule.rankOf(box.flow, box.receiver), other, fmt::format("the gradients of stage {} of rank {}", stage.value, other.value)};
}

} // namespace stagecraft::runtime
