// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/statistics_model.h"

#include "ui/bridge/text.h"

#include <QPainter>
#include <QPixmap>

#include <algorithm>
#include <array>
#include <utility>

namespace stagecraft::ui {

using traces::ActionKind;
using traces::ActionStatistics;
using traces::DurationRow;
using traces::Flow;
using traces::formatDuration;

namespace {

bool sameActions(const DurationRow& a, const DurationRow& b)
{
    return a.statistics.stage == b.statistics.stage && a.statistics.flow == b.statistics.flow && a.statistics.kind == b.statistics.kind;
}

// With three digits: the table is narrow, and its tooltips say more.
QString shortDuration(traces::TimeNs time)
{
    constexpr std::array<std::pair<double, const char*>, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
    const auto ns = static_cast<double>(time);
    for (const auto& [size, unit] : kUnits)
        if (ns >= 0.9995 * size || size == 1) // what would be rounded up to 1000 is told in the next unit
            return QStringLiteral("%1 %2").arg(ns / size, 0, 'g', ns >= 999.5 * size ? 4 : 3).arg(QString::fromUtf8(unit));
    return {};
}

// One unit for both ends where that is the same: "50.1–53 ms".
QString rangeText(traces::TimeNs from, traces::TimeNs to)
{
    const QString first = shortDuration(from);
    const QString last = shortDuration(to);
    if (first == last) return first;
    const qsizetype unit = last.lastIndexOf(' ');
    const bool same = unit > 0 && first.endsWith(last.mid(unit));
    return QStringLiteral("%1–%2").arg(same ? first.chopped(last.size() - unit) : first + ' ', same ? last : ' ' + last);
}

} // namespace

QString actionText(const ActionStatistics& statistics)
{
    const QString direction = statistics.flow == Flow::Down ? QStringLiteral("d") : statistics.flow == Flow::Up ? QStringLiteral("u") : QString();
    const QString kind = statistics.kind == ActionKind::Overlap      ? QStringLiteral("F+B")
                         : statistics.kind == ActionKind::Optimizer ? StatisticsModel::tr(" optim.")
                         : statistics.kind == ActionKind::Recompute ? StatisticsModel::tr(" recomp.")
                                                                    : toQt(kindText(statistics.kind));
    return direction + QString::number(statistics.stage.value) + kind;
}

QString actionName(const DurationRow& row)
{
    QString name = StatisticsModel::tr("%1 of stage %2").arg(toQt(kindName(row.statistics.kind))).arg(row.statistics.stage.value);
    if (row.statistics.flow != Flow::Single) name += row.statistics.flow == Flow::Down ? StatisticsModel::tr(", downwards") : StatisticsModel::tr(", upwards");
    if (row.place) name += StatisticsModel::tr(", rank %1, chunk %2").arg(row.place->rank.value).arg(row.place->chunk);
    return name;
}

namespace {

// With an outline, for a selected row may have the colour itself.
QPixmap swatchOf(const QColor& colour)
{
    constexpr int kSize = 10;
    constexpr int kRatio = 2; // sharp where a point has several pixels
    QPixmap swatch(kSize * kRatio, kSize * kRatio);
    swatch.setDevicePixelRatio(kRatio);
    swatch.fill(QColor(0, 0, 0, 150));
    QPainter(&swatch).fillRect(QRectF(1, 1, kSize - 2, kSize - 2), colour);
    return swatch;
}

} // namespace

void StatisticsModel::setTheme(const Theme& theme)
{
    theme_ = theme;
    if (!rows_.empty()) emit dataChanged(index(0, ActionColumn), index(rowCount() - 1, ActionColumn));
}

// While a run goes on the same rows get other numbers: whoever reads in them stays where they are.
void StatisticsModel::setRows(std::vector<DurationRow> rows)
{
    const bool same = std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(), sameActions);
    if (!same) beginResetModel();
    rows_ = std::move(rows);
    if (!same) endResetModel();
    else if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int StatisticsModel::rowOf(traces::Stage stage, Flow flow, ActionKind kind) const
{
    const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const DurationRow& row) {
        return row.statistics.stage == stage && row.statistics.flow == flow && row.statistics.kind == kind;
    });
    return at == rows_.end() ? -1 : static_cast<int>(at - rows_.begin());
}

QColor StatisticsModel::colourOf(int row) const
{
    const DurationRow& actions = rows_[static_cast<std::size_t>(row)];
    return theme_.block(traces::paintClass(actions.statistics.kind), actions.place ? actions.place->chunk : 0);
}

int StatisticsModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int StatisticsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant StatisticsModel::sortKey(int row, int column) const
{
    const DurationRow& actions = rows_[static_cast<std::size_t>(row)];
    const ActionStatistics& s = actions.statistics;
    switch (column) {
    case Count: return QVariant::fromValue<qulonglong>(s.count);
    case Median: return QVariant::fromValue<qlonglong>(s.median);
    case MiddleHalf: return QVariant::fromValue<qlonglong>(s.upperQuartile - s.lowerQuartile); // by its width
    case Longest: return QVariant::fromValue<qlonglong>(s.most);
    case Share: return actions.share.value_or(-1);
    default: return row;
    }
}

QVariant StatisticsModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const DurationRow& row = rows_[static_cast<std::size_t>(index.row())];
    const ActionStatistics& s = row.statistics;
    if (role == kSortRole) return sortKey(index.row(), index.column());
    if (role == Qt::TextAlignmentRole) return QVariant((index.column() == ActionColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::DecorationRole && index.column() == ActionColumn) return swatchOf(colourOf(index.row()));
    if (role == Qt::AccessibleTextRole && index.column() == ActionColumn) return actionName(row);
    if (role == Qt::ToolTipRole)
        return tr("%1: %2, median %3, middle half %4 to %5, 95 % within %6, shortest %7, longest %8, together %9")
            .arg(actionName(row))
            .arg(s.count)
            .arg(toQt(formatDuration(s.median)), toQt(formatDuration(s.lowerQuartile)), toQt(formatDuration(s.upperQuartile)), toQt(formatDuration(s.p95)),
                 toQt(formatDuration(s.least)), toQt(formatDuration(s.most)), toQt(formatDuration(row.total)));
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
    case ActionColumn: return actionText(s);
    case Count: return QVariant::fromValue<qulonglong>(s.count);
    case Median: return shortDuration(s.median);
    case MiddleHalf: return rangeText(s.lowerQuartile, s.upperQuartile);
    case Longest: return shortDuration(s.most);
    case Share: return row.share ? QStringLiteral("%1 %").arg(*row.share * 100, 0, 'f', 1) : QStringLiteral("–");
    default: return {};
    }
}

QVariant StatisticsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return role == Qt::DisplayRole ? QVariant(section) : QVariant();
    if (role == Qt::TextAlignmentRole) return QVariant((section == ActionColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    static const char* const kTitles[] = {"Of", "n", "Median", "Middle half", "Longest", "Busy"};
    static const char* const kTips[] = {"Stage and kind of action, as schedules write them: 0F is the forward of stage 0; d and u before it are the two directions.",
                                        "How many there are.",
                                        "Half of them took as long or less.",
                                        "From the lower to the upper quartile: the half in the middle took so long.",
                                        "The longest of them.",
                                        "Their share of the time in which any rank is busy."};
    if (role == Qt::DisplayRole) return tr(kTitles[section]);
    if (role == Qt::ToolTipRole) return tr(kTips[section]);
    return {};
}

} // namespace stagecraft::ui
