// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_picture.h"

namespace stagecraft::ui {

using traces::GapCause;

QString causeText(GapCause cause, traces::Stage stage)
{
    const auto word = traces::gapCauseText(cause);
    QString text = QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size()));
    if (cause == GapCause::WaitForStage) text += QStringLiteral(" %1").arg(stage.value);
    if (cause == GapCause::Transfer) text += QStringLiteral(" from stage %1").arg(stage.value);
    return text;
}

QString shortCauseText(GapCause cause, traces::Stage stage)
{
    return cause == GapCause::WaitForStage ? QStringLiteral("stage %1").arg(stage.value) : causeText(cause, stage);
}

} // namespace stagecraft::ui
