// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/order_editor.h"

#include "engine/schedule/validate.h"
#include "ui/bridge/text.h"

#include <algorithm>

namespace stagecraft::ui {

OrderEditor::OrderEditor(Workbench& workbench, QObject* parent) : QObject(parent), workbench_(workbench) {}

void OrderEditor::setKeepsIllegal(bool keeps)
{
    if (keeps == keepsIllegal_) return;
    keepsIllegal_ = keeps;
    emit keepsIllegalChanged(keeps);
}

const engine::Schedule* OrderEditor::schedule() const
{
    const SimulationController& simulation = workbench_.simulation();
    if (simulation.busy() || !simulation.problem().isEmpty() || !workbench_.simulatedSource()) return nullptr;
    const engine::Schedule* schedule = simulation.simulation().schedule.get();
    return schedule && schedule->actionCount() <= kMostActions ? schedule : nullptr;
}

bool OrderEditor::mayMove(const TimelineItem& block) const { return moveOf(block, block.slice.index).has_value(); }

std::optional<OrderEditor::Move> OrderEditor::moveOf(const TimelineItem& block, std::uint32_t before) const
{
    const engine::Schedule* order = schedule();
    if (!order || block.kind != TimelineItem::Kind::Slice || workbench_.simulatedSource() != block.source) return std::nullopt;
    const traces::Lane& lane = workbench_.scene().trace(block.source).lane(block.slice.lane);
    if (lane.info().kind != traces::LaneKind::Compute || index(lane.info().rank) >= order->order.size()) return std::nullopt;
    const std::vector<engine::Action>& list = order->order[index(lane.info().rank)];
    // an action stands once in an order; an optimizer step that the simulator adds stands in none
    const auto placeOf = [&](std::uint32_t slice) {
        return static_cast<std::size_t>(std::find(list.begin(), list.end(), lane.action(slice)) - list.begin());
    };
    const std::size_t from = placeOf(block.slice.index);
    if (from == list.size()) return std::nullopt;
    std::size_t to = list.size();
    if (before < lane.size()) to = placeOf(before);
    else if (const std::size_t last = lane.empty() ? list.size() : placeOf(static_cast<std::uint32_t>(lane.size() - 1)); last < list.size())
        to = last + 1;
    return Move{lane.info().rank, from, to};
}

engine::Schedule withMoved(engine::Schedule schedule, traces::Rank rank, std::size_t from, std::size_t to)
{
    std::vector<engine::Action>& list = schedule.order[index(rank)];
    const auto at = [&](std::size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
    if (to > from) std::rotate(at(from), at(from + 1), at(to));
    else std::rotate(at(to), at(from), at(from + 1));
    return schedule;
}

BlockMover::Verdict OrderEditor::judge(const TimelineItem& block, std::uint32_t before)
{
    const std::optional<Move> move = moveOf(block, before);
    if (!move) return {false, false, tr("This block cannot be moved.")};
    const engine::Schedule moved = withMoved(*schedule(), move->rank, move->from, move->to);
    const engine::ValidationReport report = validate(moved, {.send = workbench_.simulation().simulation().costs.machine.send, .maxErrors = 1});
    if (report.legal()) return {true, true, tr("legal")};
    if (!report.errors.empty()) return {false, false, toQt(report.errors.front().message)};
    return {false, keepsIllegal_, deadlockText(report.deadlock)};
}

void OrderEditor::move(const TimelineItem& block, std::uint32_t before)
{
    const std::optional<Move> move = moveOf(block, before);
    if (!move) return;
    const Verdict verdict = judge(block, before);
    if (!verdict.taken) {
        const bool deadlock = verdict.message.startsWith(tr("Deadlock"));
        emit refused(deadlock ? tr("%1 The order stays as it was; \"Keep deadlocks\" would keep it.").arg(verdict.message)
                              : tr("The order stays as it was: %1.").arg(verdict.message));
        return;
    }
    const engine::Schedule moved = withMoved(*schedule(), move->rank, move->from, move->to);
    engine::Plan plan = workbench_.document().plan();
    plan.pipeline.schedule = "custom";
    plan.pipeline.customSchedule = toText(moved);
    workbench_.document().edit(std::move(plan), tr("the order of rank %1").arg(move->rank.value));
}

} // namespace stagecraft::ui
