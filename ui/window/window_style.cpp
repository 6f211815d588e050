// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/window_style.h"

namespace stagecraft::ui {

QString windowStyle(const Theme& theme)
{
    return QStringLiteral(R"(
QLabel[tone="hint"] { color: %1; }
QLabel[tone="small"] { color: %1; font-size: 8pt; padding-bottom: 5px; }
QLabel[tone="figure"]:focus { background: %5; color: %6; }
QLabel[tone="problem"] { color: %2; }
QLabel[tone="banner"] { background: %2; color: %3; padding: 5px 10px; }
stagecraft--ui--LabPanel QHeaderView::section, stagecraft--ui--StatisticsPanel QHeaderView::section { padding: 4px 4px; }
QLineEdit[complains="true"] { border: 1px solid %2; border-radius: 2px; }
QToolButton[foldHeader="true"] { border: none; border-top: 1px solid %4; padding: 5px 2px; text-align: left; }
QToolButton[foldHeader="true"]:focus { color: %5; }
)")
        .arg(theme.mutedText.name(), theme.error.name(), theme.base.name(), theme.line.name(), theme.accent.name(),
             theme.accentText.name());
}

} // namespace stagecraft::ui
