// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/text_table.h"

#include <QHeaderView>
#include <QSignalBlocker>

namespace stagecraft::ui {

TextTable::TextTable(const QString& accessibleName, const TextTableShape& shape, QWidget* parent) : QTableWidget(parent), shape_(shape)
{
    setAccessibleName(accessibleName);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setFrameShape(QFrame::NoFrame);
    setAlternatingRowColors(true);
    setTabKeyNavigation(false);
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 9);
    verticalHeader()->setVisible(shape_.namesAside);
    if (shape_.leastWidth > 0) horizontalHeader()->setMinimumSectionSize(shape_.leastWidth);
}

void TextTable::setTexts(const std::vector<QStringList>& rows)
{
    const QSignalBlocker quiet(this);
    const int first = shape_.namesAside ? 1 : 0; // of a row's texts, that stands in the table
    clear();
    setRowCount(static_cast<int>(rows.size()) - 1);
    setColumnCount(static_cast<int>(rows.front().size()) - first);
    setHorizontalHeaderLabels(rows.front().mid(first));
    QStringList names;
    for (int row = 0; row < rowCount(); ++row) {
        const QStringList& texts = rows[static_cast<std::size_t>(row) + 1];
        names << texts.front();
        for (int column = 0; column < columnCount(); ++column) {
            auto* item = new QTableWidgetItem(texts[column + first]);
            item->setTextAlignment((column < shape_.leftColumns ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
            setItem(row, column, item);
        }
    }
    if (shape_.namesAside) setVerticalHeaderLabels(names);
    horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
}

} // namespace stagecraft::ui
