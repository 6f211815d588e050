// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/window_parts.h"

#include <QFormLayout>
#include <QSplitter>
#include <QVBoxLayout>

namespace stagecraft::ui {

QFormLayout* newControlForm()
{
    auto* form = new QFormLayout;
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    return form;
}

QWidget* controlColumn(QFormLayout* form, std::initializer_list<QWidget*> below)
{
    auto* box = new QWidget;
    auto* layout = new QVBoxLayout(box);
    layout->setContentsMargins(0, 0, 8, 0);
    layout->addLayout(form, 1);
    for (QWidget* widget : below) layout->addWidget(widget);
    return box;
}

QSplitter* besideControls(QWidget* controls, QWidget* result, int controlsWidth)
{
    auto* columns = new QSplitter(Qt::Horizontal);
    columns->addWidget(controls);
    columns->addWidget(result);
    columns->setStretchFactor(1, 1);
    columns->setChildrenCollapsible(false);
    columns->setSizes({controlsWidth, 850}); // the second is made to fit
    return columns;
}

QSplitter* aboveTable(QWidget* timeline, QWidget* table)
{
    auto* rows = new QSplitter(Qt::Vertical);
    rows->addWidget(timeline);
    rows->addWidget(table);
    rows->setStretchFactor(0, 1);
    rows->setChildrenCollapsible(false);
    rows->setSizes({430, 270});
    return rows;
}

} // namespace stagecraft::ui
