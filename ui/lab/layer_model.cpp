// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/layer_model.h"

#include "ui/bridge/text.h"
#include "ui/lab/quantities.h"

namespace stagecraft::ui {

void LayerModel::setPlan(const engine::Plan& plan)
{
    engine::Expected<engine::Partition> inUse =
        plan.model.empty() ? engine::Expected<engine::Partition>(engine::Partition{}) : partitionOf(plan);
    engine::Partition partition = inUse.ok() ? std::move(inUse).value() : engine::Partition{};
    const engine::Precision precision = plan.run.precision;
    if (plan.model == model_ && partition == partition_ && precision == precision_) return;
    beginResetModel();
    model_ = plan.model;
    partition_ = std::move(partition);
    precision_ = precision;
    counts_ = model_.empty() || !engine::checkModel(model_).ok() ? std::vector<engine::LayerCounts>{} : engine::layerCounts(model_, precision_);
    stages_.clear();
    for (std::size_t stage = 0; stage < partition_.size(); ++stage)
        stages_.insert(stages_.end(), static_cast<std::size_t>(partition_[stage]), static_cast<int>(stage));
    endResetModel();
}

int LayerModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(counts_.size()); }
int LayerModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant LayerModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const auto row = static_cast<std::size_t>(index.row());
    const engine::LayerCounts& layer = counts_[row];
    if (role == Qt::TextAlignmentRole && index.column() != Name) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return tr("%1: %2 forward, keeps %3 of each micro-batch from forward to backward, hands on %4")
            .arg(toQt(layer.name), toQt(showFlops(layer.forwardFlops)), toQt(traces::formatSize(layer.activationBytes)),
                 toQt(traces::formatSize(layer.outputBytes)));
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
    case Name: return toQt(layer.name);
    case StageOf: return row < stages_.size() ? QString::number(stages_[row]) : QStringLiteral("–");
    case Parameters: return toQt(showCount(static_cast<double>(layer.parameters)));
    default: return {};
    }
}

QVariant LayerModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return role == Qt::DisplayRole ? QVariant(section) : QVariant();
    static const char* const kTitles[] = {"Layer", "Stage", "Params"};
    static const char* const kTips[] = {"What the layer does.", "The stage that holds it.", "Trained values."};
    if (role == Qt::DisplayRole) return tr(kTitles[section]);
    if (role == Qt::ToolTipRole) return tr(kTips[section]);
    return {};
}

} // namespace stagecraft::ui
