// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the device did in the selected block: how its time splits (traces::DeviceTime), and its kernels, or on the CPU its operators,
// grouped by name, with the most time first, and what was asked of the driver's memory for it; a click or Enter goes to the longest of a name. Hidden where the block has none. While a kernel is selected it shows those of its
// block.
//
//   table.showItem(scene, item);
//   connect(&table, &KernelTable::wanted, timeline, &TimelineWidget::goTo);
#pragma once

#include "traces/analysis/kernel_groups.h"
#include "ui/timeline/timeline_item.h"
#include "ui/timeline/timeline_scene.h"

#include <QStringList>
#include <QWidget>

#include <vector>

class QLabel;

namespace stagecraft::ui {

class TextTable;

class KernelTable : public QWidget {
    Q_OBJECT
public:
    explicit KernelTable(QWidget* parent = nullptr);

    void showItem(const TimelineScene& scene, const TimelineItem& item);

signals:
    void wanted(const stagecraft::ui::TimelineItem& item); // a kernel to go to

private:
    void goTo(int row);

    TimelineItem block_; // where its kernels are
    std::vector<traces::KernelGroup> groups_;
    std::vector<QStringList> rows_; // as they are shown
    QLabel* time_;
    QLabel* title_;
    QLabel* memory_;
    TextTable* table_;
};

} // namespace stagecraft::ui
