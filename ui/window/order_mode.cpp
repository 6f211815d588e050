// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/order_mode.h"

#include "ui/lab/plan_document.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/file_controller.h"
#include "ui/window/log_panel.h"
#include "ui/window/order_bar.h"
#include "ui/window/order_editor.h"
#include "ui/window/window_actions.h"

namespace stagecraft::ui {

OrderMode::OrderMode(const Parts& parts, QObject* parent) : QObject(parent)
{
    parts.timeline.setMover(&parts.editor);
    connect(&parts.timeline, &TimelineWidget::movingChanged, this, [parts](bool moving) {
        parts.actions.editOrder->setChecked(moving);
        parts.bar.setVisible(moving);
        parts.bar.say({});
    });
    connect(parts.actions.editOrder, &QAction::toggled, &parts.timeline, &TimelineWidget::setMoving);
    connect(&parts.bar, &OrderBar::done, this, [parts] {
        parts.timeline.setMoving(false);
        parts.timeline.setFocus(Qt::OtherFocusReason);
    });
    connect(&parts.bar, &OrderBar::saveWanted, this, [parts] { parts.files.saveSchedule(); });
    connect(parts.actions.saveSchedule, &QAction::triggered, this, [parts] { parts.files.saveSchedule(); });
    connect(&parts.editor, &OrderEditor::refused, this, [parts](const QString& text) {
        parts.log.warn(text);
        parts.bar.say(text);
    });
    connect(&parts.document, &PlanDocument::changed, this, [parts] { parts.bar.say({}); });
}

} // namespace stagecraft::ui
