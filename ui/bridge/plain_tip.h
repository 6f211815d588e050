// SPDX-License-Identifier: GPL-3.0-or-later
//
// A tooltip that shows text as it is. Qt takes a tip for HTML where it looks like it, and what a plan or a trace holds may.
//
//   label->setToolTip(plainTip(toQt(plan.description)));
#pragma once

#include <QString>
#include <QTextDocument>

namespace stagecraft::ui {

inline QString plainTip(const QString& text)
{
    return Qt::mightBeRichText(text) ? Qt::convertFromPlainText(text, Qt::WhiteSpaceNormal) : text;
}

} // namespace stagecraft::ui
