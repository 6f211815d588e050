// SPDX-License-Identifier: GPL-3.0-or-later
//
// The kernels beneath the selected block.
#include "tests/ui/support/traces.h"
#include "tests/ui/window/main_window_fixture.h"

#include "traces/analysis/memory_operations.h"
#include "traces/analysis/stream_lanes.h"
#include "ui/timeline/timeline_widget.h"

#include <QAction>
#include <QRegularExpression>
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
        gaps = trace->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Stream, .depth = 1, .name = "GPU 0 stream 7, gaps"});
        const auto gap = [&](traces::StreamGapCause cause, traces::TimeNs from, traces::TimeNs to) {
            trace->append(gaps, {.begin = from, .end = to, .action = {}, .step = traces::Step{0}, .text = trace->intern(traces::streamGapText(cause))});
        };
        gap(traces::StreamGapCause::Host, 9 * kMs / 10, 96 * kMs / 100);
        gap(traces::StreamGapCause::Launch, 96 * kMs / 100, kMs);
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
    LaneId gaps{};
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

// 900 µs of kernels in a block of 1 ms; what comes before the next kernel is known from the lane of gaps.
TEST_F(MainWindowKernelsTest, AreToldWithHowTheBlocksTimeSplits)
{
    select(forward);
    const auto text = [&] { return the<QLabel>("deviceTime").text().remove(QRegularExpression("<[^>]*>")).toStdString(); };
    EXPECT_EQ(text(), "On the deviceKernels900 µs90.0 %Gaps: host had not launched60 µs6.0 %Gaps: launch on its way40 µs4.0 %");
    select({gaps, 0});
    EXPECT_EQ(the<QLabel>("selectionTitle").text(), "Gap: host had not launched");
    EXPECT_TRUE(the<QLabel>("selectionLines").text().contains("GPU 0 stream 7"));
    EXPECT_EQ(the<QLabel>("kernelTitle").text(), "Kernels of 0F0: 3, 900 µs together") << "it is in that block";
}

TEST_F(MainWindowKernelsTest, ComeWithWhatTheDriverWasAskedForInTheirBlock)
{
    select(forward);
    EXPECT_FALSE(the<QLabel>("driverMemory").isVisible());
    const std::shared_ptr<traces::Trace> trace = support::twoRanks({.label = traces::TraceLabel::Measured});
    const auto lane = [&](const std::string& name) { return trace->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Stream, .depth = 0, .name = name}); };
    const auto put = [&](LaneId on, traces::TimeNs begin, traces::TimeNs end, const char* text) {
        trace->append(on, {.begin = begin, .end = end, .action = {}, .step = traces::Step{0}, .text = trace->intern(text)});
    };
    put(lane("GPU 0 stream 7"), 0, kMs / 2, "gemm");
    const LaneId calls = lane(traces::memoryOperationsLaneName(0));
    put(calls, 0, kMs / 10, "allocate 20 MiB for 0F0");
    put(calls, kMs / 10, kMs / 5, "allocate 2 MiB for 0F0");
    put(calls, kMs / 4, kMs / 3, "release 2 MiB for 0F1");
    ASSERT_TRUE(window->workbench().showTrace(*trace, "calls.strace").ok());
    select(forward);
    ASSERT_TRUE(the<QLabel>("driverMemory").isVisible());
    EXPECT_EQ(the<QLabel>("driverMemory").text(), "Of the driver's memory: 2 allocations, 22 MiB; 200 µs in calls");
}

// Of a run on the CPU.
TEST_F(MainWindowKernelsTest, AreOperatorsWhereThoseAreRecorded)
{
    const std::shared_ptr<traces::Trace> trace = support::twoRanks({.label = traces::TraceLabel::Measured});
    const LaneId lane = trace->addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Stream, .depth = 0, .name = traces::operatorsLaneName("rank 0", 0)});
    trace->append(lane, {.begin = 0, .end = kMs / 2, .action = {}, .step = traces::Step{0}, .text = trace->intern("aten::linear")});
    ASSERT_TRUE(window->workbench().showTrace(*trace, "cpu.strace").ok());
    select(forward);
    ASSERT_TRUE(table().isVisible());
    EXPECT_EQ(the<QLabel>("kernelTitle").text(), "Operators of 0F0: 1, 500 µs together");
    EXPECT_EQ(table().horizontalHeaderItem(0)->text(), "Operator");
    EXPECT_FALSE(the<QLabel>("deviceTime").isVisible()) << "nothing is known of a device";
}

TEST_F(MainWindowKernelsTest, AreSummedUpByRankInTheStatistics)
{
    window->actions().statistics->trigger();
    ASSERT_TRUE(QTest::qWaitFor([&] { return the<QTableWidget>("deviceTable").isVisible(); }));
    QTableWidget& devices = the<QTableWidget>("deviceTable");
    ASSERT_EQ(devices.rowCount(), 1) << "rank 1 has no kernels";
    QStringList texts;
    for (int column = 0; column < devices.columnCount(); ++column) texts << devices.item(0, column)->text();
    EXPECT_EQ(texts.join(' ').toStdString(), "0 15.0 0.0 1.0 0.7 0.0 0.0 83.3 ") << "of the 6 ms of its blocks";
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
