// SPDX-License-Identifier: GPL-3.0-or-later
//
// A table of texts that are there to be read: the first of its rows has the heads of the columns.
//
//   auto* table = new TextTable(tr("Figures"), {.namesAside = true});
//   table->setTexts({{"", "1F1B", "GPipe"}, {"Makespan", "30 ms", "33 ms"}});
#pragma once

#include <QStringList>
#include <QTableWidget>

#include <vector>

namespace stagecraft::ui {

struct TextTableShape {
    bool namesAside = false; // the first text of a row names it, beside the table
    int leftColumns = 0;     // so many hold words; the others numbers, which stand on the right
    int leastWidth = 0;      // of a column
};

class TextTable : public QTableWidget {
    Q_OBJECT
public:
    TextTable(const QString& accessibleName, const TextTableShape& shape, QWidget* parent = nullptr);

    void setTexts(const std::vector<QStringList>& rows); // tells nobody of a change of selection

private:
    TextTableShape shape_;
};

} // namespace stagecraft::ui
