// SPDX-License-Identifier: GPL-3.0-or-later
//
// The kernels beneath the selected block.
#include "tests/ui/support/traces.h"
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/timeline_widget.h"

#include <QTableWidget>

namespace stagecraft::ui {
namespace {

using support::kMs;
using traces::LaneId;
using traces::SliceRef;

// Two ranks of which the first is on a GPU; see tests/ui/support/traces.h for its blocks.
class MainWindowKernelsTest : public MainWindowTest {
protected:
    MainWindowKernelsTest()
    {
        const std::shared_ptr<traces::Trace> trace = support::twoRanks({.label = traces::TraceLabel::Measured});
        stream = trace->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Stream, .depth = 0, .name = "GPU 0 stream 7"});
        const auto kernel = [&](const char* name, traces::TimeNs from, traces::TimeNs to) {
            return trace->append(stream, {.begin = from, .end = to, .action = {}, .step = traces::Step{0}, .text = trace->intern(name)});
        };
        kernel("relu", 0, kMs / 10);
        kernel("void gemm<128, 64>", kMs / 10, 4 * kMs / 10);
        longest = kernel("void gemm<128, 64>", 4 * kMs / 10, 9 * kMs / 10);
        kernel("adam", 3 * kMs, 3 * kMs + 1000); // between two blocks
        EXPECT_TRUE(window->workbench().showTrace(*trace, "gpu.strace").ok());
        window->resize(1920, 1080);
    }
    void select(SliceRef slice)
    {
        window->timeline().select({.kind = TimelineItem::Kind::Slice, .source = window->workbench().otherSource().value(), .segment = 0, .slice = slice, .gap = {}});
    }
    QTableWidget& table() { return the<QTableWidget>("kernelTable"); }
    std::string row(int at)
    {
        QStringList texts;
        for (int column = 0; column < table().columnCount(); ++column) texts << table().item(at, column)->text();
        return texts.join(" | ").toStdString();
    }

    const SliceRef forward{LaneId{0}, 0}; // 0F0
    LaneId stream{};
    SliceRef longest{};
};

TEST_F(MainWindowKernelsTest, AreListedByNameBelowTheSelection)
{
    EXPECT_FALSE(table().isVisible());
    select(forward);
    ASSERT_TRUE(table().isVisible());
    ASSERT_EQ(table().rowCount(), 2);
    EXPECT_EQ(row(0), "void gemm<128, 64> | 2 | 800 µs | 88.9 % | 500 µs");
    EXPECT_EQ(row(1), "relu | 1 | 100 µs | 11.1 % | 100 µs");
    EXPECT_EQ(the<QLabel>("kernelTitle").text(), "Kernels of 0F0: 3, 900 µs together");
    select({LaneId{0}, 1}); // 0F1 has none
    EXPECT_FALSE(table().isVisible());
}

TEST_F(MainWindowKernelsTest, LeadToTheLongestOfAName)
{
    select(forward);
    ASSERT_TRUE(table().isVisible());
    QCoreApplication::processEvents(); // layouts
    QTest::mouseClick(table().viewport(), Qt::LeftButton, {}, table().visualItemRect(table().item(0, 1)).center());
    EXPECT_EQ(window->timeline().selection().slice, longest);
    EXPECT_TRUE(the<QLabel>("selectionTitle").text().contains("gemm"));
    EXPECT_TRUE(table().isVisible()) << "the next one may be wanted too";
    EXPECT_EQ(the<QLabel>("kernelTitle").text(), "Kernels of 0F0: 3, 900 µs together");
    EXPECT_EQ(table().currentRow(), 0);
    select({stream, 3});
    EXPECT_FALSE(table().isVisible()) << "it is of no block";
}

} // namespace
} // namespace stagecraft::ui
