// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_picture.h"

#include <algorithm>

namespace stagecraft::ui {

using traces::GapCause;

Stretch freePart(const Bubble& bubble, const std::vector<SweepBlock>& blocks)
{
    Stretch widest{bubble.left, bubble.left};
    double from = bubble.left;
    const auto upTo = [&](double to) {
        if (to - from > widest.right - widest.left) widest = {from, to};
    };
    auto block = std::ranges::lower_bound(blocks, bubble.left, {}, &SweepBlock::right);
    for (; block != blocks.end() && block->left < bubble.right; ++block) {
        upTo(std::min(block->left, bubble.right));
        from = std::max(from, block->right);
    }
    upTo(bubble.right);
    return widest;
}

QString causeText(GapCause cause, traces::Stage stage)
{
    const auto word = traces::gapCauseText(cause);
    QString text = QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size()));
    if (cause == GapCause::WaitForStage) text += QStringLiteral(" %1").arg(stage.value);
    if (cause == GapCause::Transfer) text += QStringLiteral(" from stage %1").arg(stage.value);
    return text;
}

QString causeText(const Bubble& bubble)
{
    if (bubble.gap) return causeText(*bubble.gap);
    return bubble.cause ? QString::fromStdString(*bubble.cause) : QStringLiteral("waiting for rank %1").arg(bubble.waitsFor->value);
}

QString shortCauseText(GapCause cause, traces::Stage stage)
{
    return cause == GapCause::WaitForStage ? QStringLiteral("stage %1").arg(stage.value) : causeText(cause, stage);
}

} // namespace stagecraft::ui
