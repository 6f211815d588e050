// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/stage_cost_model.h"

#include "engine/schedule/placement.h"
#include "ui/bridge/text.h"
#include "ui/lab/quantities.h"

#include <algorithm>

namespace stagecraft::ui {
namespace {

std::vector<traces::Rank> placementIn(const engine::Plan& plan)
{
    const engine::PipelineSpec& pipeline = plan.pipeline;
    if (pipeline.schedule == "custom")
        if (const auto own = engine::parseSchedule(pipeline.customSchedule); own.ok() && own.value().stages() == plan.stages())
            return own.value().stageToRank;
    return engine::placementOf(pipeline.schedule, pipeline.ranks, pipeline.chunks);
}

} // namespace

void StageCostModel::setPlan(const engine::Plan& plan)
{
    // A schedule that is written out has to be read for it: not again at every edit of a cost.
    std::vector<int> ranks = ranks_;
    if (placed_ != plan.pipeline) {
        ranks.clear();
        for (const traces::Rank rank : placementIn(plan)) ranks.push_back(rank.value);
        placed_ = plan.pipeline;
    }
    const engine::Expected<engine::CostTable> table = costsOf(plan);
    const std::vector<engine::StageCosts> costs = table.ok() ? table.value().stages : std::vector<engine::StageCosts>{};
    const int stages = plan.stages();

    // A reset closes an open editor and forgets the selection: only where the rows change.
    const bool sameRows = stages == stages_;
    if (!sameRows) beginResetModel();
    editable_ = plan.costs.source == engine::CostSource::Assumed;
    factors_ = plan.costs.stageScale;
    ranks_ = std::move(ranks);
    costs_ = costs;
    stages_ = stages;
    if (!sameRows) endResetModel();
    else if (stages_ > 0) emit dataChanged(index(0, 0), index(stages_ - 1, ColumnCount - 1));
}

int StageCostModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : stages_; }
int StageCostModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

double StageCostModel::factor(std::size_t stage) const { return stage < factors_.size() ? factors_[stage] : 1; }

QVariant StageCostModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const auto stage = static_cast<std::size_t>(index.row());
    if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::EditRole) return {};
    switch (index.column()) {
    case StageColumn: return index.row();
    case RankColumn: return stage < ranks_.size() ? QVariant(ranks_[stage]) : QVariant();
    case Factor: return editable_ ? QVariant(toQt(showNumber(factor(stage)))) : QVariant(QStringLiteral("–"));
    case Forward: return stage < costs_.size() ? toQt(traces::formatDuration(costs_[stage].forward)) : QString();
    case Backward: return stage < costs_.size() ? toQt(traces::formatDuration(costs_[stage].backward)) : QString();
    default: return {};
    }
}

bool StageCostModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    if (role != Qt::EditRole || index.column() != Factor || !editable_) return false;
    const traces::Expected<double> factor = parsePositive(value.toString().toStdString());
    if (!factor.ok()) return false;
    std::vector<double> factors = factors_;
    factors.resize(static_cast<std::size_t>(stages_), 1.0);
    factors[static_cast<std::size_t>(index.row())] = factor.value();
    if (std::all_of(factors.begin(), factors.end(), [](double f) { return f == 1.0; })) factors.clear();
    emit factorsEdited(factors);
    return true;
}

Qt::ItemFlags StageCostModel::flags(const QModelIndex& index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (index.column() == Factor && editable_) flags |= Qt::ItemIsEditable;
    return flags;
}

QVariant StageCostModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return role == Qt::DisplayRole ? QVariant(section) : QVariant();
    static const char* const kTitles[] = {"Stage", "Rank", "×", "Forward", "Backward"};
    static const char* const kTips[] = {"The stage, from the input on.", "The rank that holds it.",
                                        "The factor: how much longer than the others this stage computes; press F2 or double-click to change it.",
                                        "Time of one forward of one micro-batch on this stage.",
                                        "Time of one full backward of one micro-batch on this stage."};
    if (role == Qt::DisplayRole) return tr(kTitles[section]);
    if (role == Qt::ToolTipRole) return tr(kTips[section]);
    return {};
}

} // namespace stagecraft::ui
