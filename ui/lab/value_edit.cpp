// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/value_edit.h"

#include <QKeyEvent>
#include <QStyle>

namespace stagecraft::ui {

ValueEditBase::ValueEditBase(QWidget* parent) : QLineEdit(parent)
{
    setProperty("complains", false);
    connect(this, &QLineEdit::textEdited, this, [this] { setComplaint(readText()); });
    connect(this, &QLineEdit::returnPressed, this, [this] {
        if (complaint_.isEmpty()) restore();
    });
}

void ValueEditBase::setComplaint(const QString& why)
{
    if (why == complaint_) return;
    complaint_ = why;
    setProperty("complains", !why.isEmpty()); // the theme's style sheet frames it
    style()->unpolish(this);
    style()->polish(this);
    emit complained(why);
}

void ValueEditBase::focusOutEvent(QFocusEvent* event)
{
    QLineEdit::focusOutEvent(event);
    // A text that cannot be read stays, with its reason; one that can takes its usual form.
    if (complaint_.isEmpty()) restore();
}

void ValueEditBase::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape && isModified()) {
        restore();
        return;
    }
    QLineEdit::keyPressEvent(event);
}

} // namespace stagecraft::ui
