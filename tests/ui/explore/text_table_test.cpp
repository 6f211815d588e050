// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/text_table.h"

#include <QHeaderView>
#include <QSignalSpy>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

const std::vector<QStringList> kTexts{{"figure", "1F1B", "GPipe"}, {"step", "30 ms", "33 ms"}, {"bubble", "20 %", "27 %"}};

TEST(TextTable, NamesItsRowsAside)
{
    TextTable table("figures", {.namesAside = true});
    table.setTexts(kTexts);
    EXPECT_EQ(table.rowCount(), 2);
    EXPECT_EQ(table.columnCount(), 2);
    EXPECT_EQ(table.horizontalHeaderItem(1)->text(), "GPipe");
    EXPECT_EQ(table.verticalHeaderItem(1)->text(), "bubble");
    EXPECT_EQ(table.item(1, 1)->text(), "27 %");
    EXPECT_TRUE(table.item(1, 1)->textAlignment() & Qt::AlignRight);
}

TEST(TextTable, SetsWordsOnTheLeftAndTellsOfNoSelectionWhileItIsFilled)
{
    TextTable table("figures", {.leftColumns = 1});
    table.setTexts(kTexts);
    EXPECT_EQ(table.columnCount(), 3);
    EXPECT_TRUE(table.verticalHeader()->isHidden());
    EXPECT_EQ(table.item(0, 0)->text(), "step");
    EXPECT_TRUE(table.item(0, 0)->textAlignment() & Qt::AlignLeft);
    EXPECT_TRUE(table.item(0, 1)->textAlignment() & Qt::AlignRight);
    table.selectRow(1);
    QSignalSpy selected(&table, &QTableWidget::itemSelectionChanged);
    table.setTexts({kTexts[0]});
    EXPECT_EQ(table.rowCount(), 0);
    EXPECT_EQ(selected.size(), 0);
}

} // namespace
} // namespace stagecraft::ui
