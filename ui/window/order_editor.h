// SPDX-License-Identifier: GPL-3.0-or-later
//
// Edits the order of a rank on the timeline: a block of the simulated trace that is moved becomes another order of the plan, which
// is then written out as a custom schedule. Every move is a step of undo, and is simulated at once like any other edit.
//
//   OrderEditor editor(workbench);
//   timeline.setMover(&editor);
//   editor.setKeepsIllegal(true);   // orders that deadlock are kept, and shown as far as they run
#pragma once

#include "engine/schedule/schedule.h"
#include "ui/timeline/block_mover.h"
#include "ui/window/workbench.h"

#include <QObject>

#include <optional>

namespace stagecraft::ui {

class OrderEditor : public QObject, public BlockMover {
    Q_OBJECT
public:
    // More than that is not edited by hand, and takes longer to judge than a drag may.
    static constexpr std::size_t kMostActions = 200'000;

    // The workbench must outlive it.
    explicit OrderEditor(Workbench& workbench, QObject* parent = nullptr);

    [[nodiscard]] bool keepsIllegal() const { return keepsIllegal_; }
    void setKeepsIllegal(bool keeps);

    [[nodiscard]] bool mayMove(const TimelineItem& block) const override;
    [[nodiscard]] Verdict judge(const TimelineItem& block, std::uint32_t before) override;
    void move(const TimelineItem& block, std::uint32_t before) override;

signals:
    void refused(const QString& text); // the order stays as it is, and why
    void keepsIllegalChanged(bool keeps);

private:
    struct Move {
        traces::Rank rank{};
        std::size_t from = 0;
        std::size_t to = 0; // the place behind which nothing moves
        bool operator==(const Move&) const = default;
    };
    [[nodiscard]] const engine::Schedule* schedule() const; // null where the timeline shows another plan's
    [[nodiscard]] std::optional<Move> moveOf(const TimelineItem& block, std::uint32_t before) const;

    Workbench& workbench_;
    bool keepsIllegal_ = false;
};

// The order with one action of a rank taken out and put in front of what stood at `to`.
engine::Schedule withMoved(engine::Schedule schedule, traces::Rank rank, std::size_t from, std::size_t to);

} // namespace stagecraft::ui
