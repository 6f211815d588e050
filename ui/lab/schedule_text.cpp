// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/schedule_text.h"

#include <QFontDatabase>
#include <QScopedValueRollback>

namespace stagecraft::ui {

ScheduleText::ScheduleText(QWidget* parent) : QPlainTextEdit(parent)
{
    setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    setLineWrapMode(QPlainTextEdit::NoWrap); // a line is a rank
    setTabChangesFocus(true);
    setUndoRedoEnabled(false); // the plan's own undo takes it back
    setFixedHeight(sizeHint().height());
    connect(this, &QPlainTextEdit::textChanged, this, [this] {
        if (!showing_) emit edited(toPlainText());
    });
}

QSize ScheduleText::sizeHint() const { return {240, 7 * fontMetrics().lineSpacing()}; }

void ScheduleText::setText(const QString& text)
{
    const QScopedValueRollback guard(showing_, true);
    const bool tooLong = text.size() > kMostShown;
    setReadOnly(tooLong);
    const QString shown = tooLong ? tr("# %L1 characters are too long to be shown here; change them in the file.").arg(text.size()) : text;
    if (shown != toPlainText()) setPlainText(shown);
}

} // namespace stagecraft::ui
