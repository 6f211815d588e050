// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/handoff.h"

namespace stagecraft::engine {
namespace {

std::optional<Handoff> between(const Schedule& schedule, const traces::Work& work, Stage from, Stage to)
{
    if (from.value < 0 || to.value < 0 || from.value >= schedule.stages() || to.value >= schedule.stages()) return std::nullopt;
    const Rank sender = schedule.rankOf(work.flow, from);
    const Rank receiver = schedule.rankOf(work.flow, to);
    if (sender == receiver) return std::nullopt;
    const bool back = isBackward(work.kind);
    return Handoff{traces::makeAction(back ? ActionKind::SendBackward : ActionKind::SendForward, from, work.microbatch, work.flow),
                   traces::makeAction(back ? ActionKind::RecvBackward : ActionKind::RecvForward, to, work.microbatch, work.flow), sender,
                   receiver};
}

// Towards the end of the pipeline for a forward, towards its beginning for a backward.
std::optional<Stage> neighbour(const traces::Work& work, int steps)
{
    if (work.kind == ActionKind::Forward) return Stage{work.stage.value + steps};
    if (isBackward(work.kind)) return Stage{work.stage.value - steps};
    return std::nullopt;
}

} // namespace

traces::Work handedOver(const traces::Work& transfer)
{
    traces::Work made = transfer;
    const bool ahead = transfer.kind == ActionKind::SendForward || transfer.kind == ActionKind::RecvForward;
    made.kind = ahead ? ActionKind::Forward : ActionKind::Backward;
    if (receives(transfer.kind)) made.stage = Stage{transfer.stage.value + (ahead ? -1 : 1)};
    return made;
}

std::optional<Handoff> outputOf(const Schedule& schedule, const traces::Work& work)
{
    const std::optional<Stage> next = neighbour(work, 1);
    return next ? between(schedule, work, work.stage, *next) : std::nullopt;
}

std::optional<Handoff> inputOf(const Schedule& schedule, const traces::Work& work)
{
    const std::optional<Stage> before = neighbour(work, -1);
    return before ? between(schedule, work, *before, work.stage) : std::nullopt;
}

} // namespace stagecraft::engine
