// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/rank_figures_model.h"

#include "ui/bridge/text.h"
#include "ui/timeline/lane_picture.h"

#include <algorithm>
#include <tuple>

namespace stagecraft::ui {

using traces::formatDuration;
using traces::formatPercent;

namespace {

QString textOf(traces::GapCause cause, std::optional<traces::Stage> stage, QString (*text)(traces::GapCause, traces::Stage))
{
    return stage ? text(cause, *stage) : toQt(gapCauseText(cause));
}

} // namespace

std::vector<IdleShare> RankFiguresModel::idleOf(const traces::RankFigures& rank, std::span<const IdleShare> shares)
{
    std::vector<IdleShare> idle;
    for (const IdleShare& share : shares)
        if (share.rank == rank.rank) idle.push_back(share);
    if (idle.empty())
        for (std::size_t cause = 0; cause < traces::kGapCauseCount; ++cause)
            if (const traces::TimeNs time = rank.idleByCause[cause]; time > 0)
                idle.push_back({rank.rank, static_cast<traces::GapCause>(cause), std::nullopt, time});
    std::stable_sort(idle.begin(), idle.end(), [](const IdleShare& a, const IdleShare& b) {
        return a.time != b.time ? a.time > b.time : std::tie(a.cause, a.stage) < std::tie(b.cause, b.stage);
    });
    return idle;
}

void RankFiguresModel::setFigures(const traces::StepFigures* figures, std::span<const IdleShare> shares)
{
    const std::size_t rows = figures ? figures->ranks.size() : 0;
    const bool sameRows = rows == ranks_.size();
    if (!sameRows) beginResetModel();
    ranks_ = figures ? figures->ranks : std::vector<traces::RankFigures>{};
    makespan_ = figures ? figures->makespan : 0;
    idle_.clear();
    for (const traces::RankFigures& rank : ranks_) idle_.push_back(idleOf(rank, shares));
    if (!sameRows) endResetModel();
    else if (rows > 0) emit dataChanged(index(0, 0), index(static_cast<int>(rows) - 1, ColumnCount - 1));
}

int RankFiguresModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(ranks_.size()); }
int RankFiguresModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant RankFiguresModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const traces::RankFigures& rank = ranks_[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == Cause ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        QString tip = tr("Rank %1: busy %2, idle %3").arg(rank.rank.value).arg(toQt(formatDuration(rank.busy)), toQt(formatDuration(rank.idle)));
        for (const IdleShare& idle : idle_[static_cast<std::size_t>(index.row())])
            tip += QStringLiteral("\n%1: %2").arg(textOf(idle.cause, idle.stage, causeText), toQt(formatDuration(idle.time)));
        return tip;
    }
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
    case RankColumn: return rank.rank.value;
    case Busy:
        return makespan_ > 0 ? toQt(formatPercent(static_cast<double>(rank.busy) / static_cast<double>(makespan_))) : QString();
    case Activations: return QString::number(rank.peakActivations, 'g', 4);
    case Memory: return rank.peakMemory > 0 ? toQt(traces::formatSize(rank.peakMemory)) : QStringLiteral("–");
    case Cause: {
        const std::vector<IdleShare>& idle = idle_[static_cast<std::size_t>(index.row())];
        return idle.empty() ? QStringLiteral("\u2013") : textOf(idle.front().cause, idle.front().stage, shortCauseText);
    }
    default: return {};
    }
}

QVariant RankFiguresModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return role == Qt::DisplayRole ? QVariant(section) : QVariant();
    static const char* const kTitles[] = {"Rank", "Busy", "Live", "Memory", "Idle for"};
    static const char* const kTips[] = {"The device.", "Share of the makespan in which it computes.",
                                        "Most micro-batches whose activations it holds.", "Most bytes that it holds.",
                                        "The cause of most of its idle time; point at a row for all of them."};
    if (role == Qt::DisplayRole) return tr(kTitles[section]);
    if (role == Qt::ToolTipRole) return tr(kTips[section]);
    return {};
}

} // namespace stagecraft::ui
