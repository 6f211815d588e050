// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/lower.h"

#include "engine/schedule/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

// The SEND that follows a work at once and the RECV on the other rank; nothing where the neighbour is on the same rank.
struct Handoff {
    Action send;
    Action recv;
    Rank to{};
};

std::optional<Handoff> handoffOf(const Schedule& schedule, const traces::Work& work)
{
    const bool ahead = work.kind == ActionKind::Forward;
    if (!ahead && work.kind != ActionKind::Backward && work.kind != ActionKind::InputGrad) return std::nullopt;
    const Stage neighbour{work.stage.value + (ahead ? 1 : -1)};
    if (neighbour.value < 0 || neighbour.value >= schedule.stages()) return std::nullopt;
    const Rank to = schedule.rankOf(work.flow, neighbour);
    if (to == schedule.rankOf(work.flow, work.stage)) return std::nullopt;
    return Handoff{
        traces::makeAction(ahead ? ActionKind::SendForward : ActionKind::SendBackward, work.stage, work.microbatch, work.flow),
        traces::makeAction(ahead ? ActionKind::RecvForward : ActionKind::RecvBackward, neighbour, work.microbatch, work.flow), to};
}

} // namespace

bool hasCommunication(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& a) { return traces::isTransfer(a.kind()); });
    });
}

Schedule withoutCommunication(Schedule schedule)
{
    for (std::vector<Action>& list : schedule.order)
        std::erase_if(list, [](const Action& action) { return traces::isTransfer(action.kind()); });
    return schedule;
}

Expected<Schedule> lowerCommunication(const Schedule& schedule)
{
    if (hasCommunication(schedule))
        return Error{fmt::format("schedule {}: it has SEND and RECV actions already", schedule.name)};
    Schedule lowered = schedule;
    for (std::vector<Action>& list : lowered.order) list.clear();
    DryRun run(schedule, SendMode::Buffered);
    run.execute([&](Rank rank, const Action& action) {
        lowered.order[index(rank)].push_back(action);
        forEachWork(action, [&](const traces::Work& work) {
            const std::optional<Handoff> handoff = handoffOf(schedule, work);
            if (!handoff) return;
            lowered.order[index(rank)].push_back(handoff->send);
            lowered.order[index(handoff->to)].push_back(handoff->recv);
        });
    });
    if (!run.complete()) {
        const WaitingRank waiting = run.circle().front();
        return Error{fmt::format("schedule {}: it cannot be executed, rank {} waits at position {} ({}) for {}", schedule.name,
                                 waiting.rank.value, waiting.position, waiting.action, waiting.waitsFor)};
    }
    return lowered;
}

} // namespace stagecraft::engine
