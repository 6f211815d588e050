// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/result_notes.h"

#include "traces/base/units.h"
#include "ui/bridge/text.h"

#include <QCoreApplication>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr std::size_t kMostTold = 16; // stages, or ranks, in one line

QString tr(const char* text) { return QCoreApplication::translate("ResultNotes", text); }

QString sized(traces::Bytes bytes) { return toQt(traces::formatSize(bytes)); }

// tell(i) for each of `count`, joined.
template <class Tell>
QString listed(std::size_t count, Tell tell)
{
    QStringList parts;
    for (std::size_t i = 0; i < std::min(count, kMostTold); ++i) parts << tell(i);
    if (count > kMostTold) parts << tr("and %1 more").arg(count - kMostTold);
    return parts.join(QStringLiteral(", "));
}

// On one line: a line end is a token like any other, and shown as one.
QString written(std::string_view text)
{
    QString line = toQt(text);
    return line.replace('\n', QStringLiteral("⏎"));
}

} // namespace

QStringList resultNotes(const engine::RunResult& result)
{
    QStringList notes;
    if (result.text) {
        notes << tr("Before the run the model wrote: %1").arg(written(result.text->before)) << tr("After it: %1").arg(written(result.text->after));
        notes << tr("A loss of %1 is that of whoever knows only how often each token comes.").arg(result.text->entropy, 0, 'g', 4);
    }
    if (!result.stageActivations.empty()) {
        notes << tr("Saved by autograd of a micro-batch: %1.").arg(listed(result.stageActivations.size(), [&](std::size_t s) {
            const engine::StageActivations& stage = result.stageActivations[s];
            return tr("stage %1 %2 (%3 of it until its weight gradient, %4 by the allocator)").arg(s).arg(sized(stage.saved), sized(stage.forWeights), sized(stage.booked));
        }));
        notes << tr("Most of it in flight: %1.").arg(listed(result.rankActivations.size(), [&](std::size_t r) {
            const engine::RankActivations& rank = result.rankActivations[r];
            return rank.predicted ? tr("rank %1 %2 (by the schedule %3)").arg(r).arg(sized(rank.peak), sized(*rank.predicted))
                                  : tr("rank %1 %2").arg(r).arg(sized(rank.peak));
        }));
    }
    return notes;
}

} // namespace stagecraft::ui
