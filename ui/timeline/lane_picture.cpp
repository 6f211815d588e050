// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_picture.h"

namespace stagecraft::ui {

QString causeText(const traces::Gap& gap)
{
    const auto text = traces::gapCauseText(gap.cause);
    QString cause = QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
    if (gap.cause == traces::GapCause::WaitForStage) cause += QStringLiteral(" %1").arg(gap.stage.value);
    if (gap.cause == traces::GapCause::Transfer) cause += QStringLiteral(" from stage %1").arg(gap.stage.value);
    return cause;
}

} // namespace stagecraft::ui
