// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/kernel_table.h"

#include "traces/base/units.h"
#include "ui/bridge/plain_tip.h"
#include "ui/bridge/text.h"
#include "ui/explore/text_table.h"
#include "ui/lab/form.h"

#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <optional>

namespace stagecraft::ui {

using traces::formatDuration;
using traces::KernelGroup;

namespace {

constexpr int kMostRows = 12; // seen at a time

} // namespace

KernelTable::KernelTable(QWidget* parent) : QWidget(parent), title_(new QLabel), table_(new TextTable(tr("Kernels"), {.leftColumns = 1}))
{
    title_->setObjectName("kernelTitle");
    title_->setTextFormat(Qt::PlainText);
    title_->setWordWrap(true);
    title_->setProperty("tone", "hint");
    title_->setToolTip(tr("Kernels and copies that began on the rank's streams while the block lasted; a share is of the time of all of them."));
    makeSelectable(*title_);
    table_->setObjectName("kernelTable");
    describe(*table_, tr("Kernels"), tr("What the device did in the block, by name; a click or Enter goes to the longest of a name."));
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideMiddle); // what tells the names of templates apart is often at their end
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
    connect(table_, &QTableWidget::cellClicked, this, [this](int row, int) { goTo(row); });
    connect(table_, &QTableWidget::cellActivated, this, [this](int row, int) { goTo(row); });
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 8, 0, 0);
    layout->setSpacing(4);
    layout->addWidget(title_);
    layout->addWidget(table_);
    hide();
}

void KernelTable::showItem(const TimelineScene& scene, const TimelineItem& item)
{
    const bool slice = item.kind == TimelineItem::Kind::Slice && item.source >= 0 && item.source < scene.sourceCount();
    const traces::Trace* trace = slice ? &scene.trace(item.source) : nullptr;
    const bool known = trace && index(item.slice.lane) < trace->laneCount() && item.slice.index < trace->lane(item.slice.lane).size();
    const std::optional<traces::SliceRef> block = known ? traces::blockOf(*trace, item.slice) : std::nullopt;
    groups_ = block ? traces::kernelsOf(*trace, *block) : std::vector<KernelGroup>{};
    setVisible(!groups_.empty());
    if (groups_.empty()) return;
    TimelineItem shown = item;
    shown.slice = *block;

    std::vector<QStringList> rows{{tr("Kernel"), tr("n"), tr("Total"), tr("Share"), tr("Longest")}};
    std::size_t count = 0;
    traces::TimeNs total = 0;
    for (const KernelGroup& group : groups_) {
        count += group.count;
        total += group.total;
        rows.push_back({toQt(trace->text(group.name)), QString::number(group.count), toQt(formatDuration(group.total)),
                        QString::number(100 * group.share, 'f', 1) + QStringLiteral(" %"), toQt(formatDuration(trace->slice(group.longest).duration()))});
    }
    if (shown == block_ && rows == rows_) return; // the chosen row stays
    block_ = shown;
    rows_ = rows;
    title_->setText(tr("Kernels of %1: %2, %3 together").arg(toQt(trace->sliceName(*block))).arg(count).arg(toQt(formatDuration(total))));
    table_->setTexts(rows);
    for (int row = 0; row < table_->rowCount(); ++row) table_->item(row, 0)->setToolTip(plainTip(rows[static_cast<std::size_t>(row) + 1].front()));
    table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch); // names are long, figures are to be seen
    table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() + std::min(table_->rowCount(), kMostRows) * table_->verticalHeader()->defaultSectionSize());
}

void KernelTable::goTo(int row)
{
    TimelineItem longest = block_;
    longest.slice = groups_[static_cast<std::size_t>(row)].longest;
    emit wanted(longest);
}

} // namespace stagecraft::ui
