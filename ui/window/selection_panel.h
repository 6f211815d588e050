// SPDX-License-Identifier: GPL-3.0-or-later
//
// Details of the selected block or bubble, and the kernels beneath a block; without one, how to select. Scrolls what does not fit.
#pragma once

#include "ui/timeline/item_details.h"

#include <QScrollArea>

class QLabel;

namespace stagecraft::ui {

class KernelTable;

class SelectionPanel : public QScrollArea {
    Q_OBJECT
public:
    explicit SelectionPanel(QWidget* parent = nullptr);

    void showDetails(const ItemDetails& details);
    void showItem(const TimelineScene& scene, const TimelineItem& item); // these, and its kernels
    [[nodiscard]] QString title() const;
    QSize sizeHint() const override;

signals:
    void wanted(const stagecraft::ui::TimelineItem& item); // a kernel to go to

private:
    QLabel* title_;
    QLabel* lines_;
    KernelTable* kernels_;
};

} // namespace stagecraft::ui
