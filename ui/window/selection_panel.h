// SPDX-License-Identifier: GPL-3.0-or-later
//
// Details of the selected block or bubble; without one, how to select. Scrolls what does not fit.
#pragma once

#include "ui/timeline/item_details.h"

#include <QScrollArea>

class QLabel;

namespace stagecraft::ui {

class SelectionPanel : public QScrollArea {
    Q_OBJECT
public:
    explicit SelectionPanel(QWidget* parent = nullptr);

    void showDetails(const ItemDetails& details);
    [[nodiscard]] QString title() const;
    QSize sizeHint() const override;

private:
    QLabel* title_;
    QLabel* lines_;
};

} // namespace stagecraft::ui
