// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/line_inbox.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

TEST(LineInbox, PutsLinesTogetherHoweverTheStreamIsSplit)
{
    LineInbox inbox;
    EXPECT_FALSE(inbox.push("fir"));
    EXPECT_TRUE(inbox.push("st\nsecond\n\nthi")) << "there is something to take";
    EXPECT_FALSE(inbox.push("rd\n")) << "nobody took yet: told already";
    EXPECT_EQ(inbox.take().lines, (QStringList{"first", "second", "third"}));
    EXPECT_FALSE(inbox.push("last"));
    EXPECT_TRUE(inbox.finish());
    EXPECT_EQ(inbox.take().lines, QStringList{"last"});
    EXPECT_FALSE(inbox.finish());
}

TEST(LineInbox, KeepsTheFirstLinesAndCountsTheOthers)
{
    LineInbox inbox;
    for (int i = 0; i < 1000; ++i) inbox.push(QByteArray::number(i) + '\n');
    const LineInbox::Contents contents = inbox.take();
    EXPECT_EQ(contents.lines.size(), LineInbox::kLines);
    EXPECT_EQ(contents.lines.front(), "0");
    EXPECT_EQ(contents.leftOut, 1000 - LineInbox::kLines);
    inbox.push("again\n");
    EXPECT_EQ(inbox.take().leftOut, 0);
}

TEST(LineInbox, CutsALineThatDoesNotEnd)
{
    LineInbox inbox;
    for (int i = 0; i < 100; ++i) inbox.push(QByteArray(1000, 'x'));
    inbox.push("\nnext\n");
    const LineInbox::Contents contents = inbox.take();
    ASSERT_EQ(contents.lines.size(), 2);
    EXPECT_EQ(contents.lines[0].count('x'), LineInbox::kLineBytes);
    EXPECT_TRUE(contents.lines[0].contains("98000 more bytes")) << contents.lines[0].right(40).toStdString();
    EXPECT_EQ(contents.lines[1], "next");
}

} // namespace
} // namespace stagecraft::ui
