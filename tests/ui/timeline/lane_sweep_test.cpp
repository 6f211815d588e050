// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_sweep.h"

#include <gtest/gtest.h>

#include <random>

namespace stagecraft::ui {
namespace {

using namespace traces;

constexpr int kColumns = 400;
const Segment kWhole{{0, 1'000'000'000'000}, 0};

// Random slices, with a long break after every 997th.
Lane randomLane(std::size_t count)
{
    constexpr std::array kKinds{ActionKind::Forward, ActionKind::Backward, ActionKind::WeightGrad};
    Lane lane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    std::mt19937 random(3);
    TimeNs t = 0;
    for (std::size_t i = 0; i < count; ++i) {
        t += random() % 300 + (i % 997 == 996 ? 2'000'000 : 0);
        const TimeNs end = t + 100 + random() % 900;
        lane.append({.begin = t, .end = end, .action = makeAction(kKinds[random() % 3], Stage{0}, MicroBatch{0}), .step = {}, .text = {}});
        t = end;
    }
    return lane;
}

LaneStyle style() { return {Theme::of(ThemeKind::Light), {}}; }

// Busy share of each column, counted slice by slice.
std::vector<double> exactCover(const Lane& lane, const TimeMapping& map)
{
    std::vector<double> cover(kColumns, 0);
    for (std::size_t i = 0; i < lane.size(); ++i) {
        const double left = std::max(0.0, map.x(lane.begin(i)));
        const double right = std::min<double>(kColumns, map.x(lane.end(i)));
        for (double x = left; x < right;) {
            const double next = std::min(right, std::floor(x) + 1);
            cover[static_cast<std::size_t>(x)] += next - x;
            x = next;
        }
    }
    return cover;
}

// The same from a sweep: its columns and its blocks.
std::vector<double> sweptCover(const LaneSweep& sweep)
{
    std::vector<double> cover;
    for (const SweepColumn& column : sweep.columns()) cover.push_back(column.cover);
    for (const SweepBlock& block : sweep.blocks()) {
        const double right = std::min<double>(kColumns, block.right);
        for (double x = std::max(0.0, block.left); x < right;) {
            const double next = std::min(right, std::floor(x) + 1);
            cover[static_cast<std::size_t>(x)] += next - x;
            x = next;
        }
    }
    return cover;
}

struct View {
    double share; // of the lane that is seen
    const char* name;
};

class LaneSweepAt : public ::testing::TestWithParam<View> {};
INSTANTIATE_TEST_SUITE_P(Views, LaneSweepAt,
                         ::testing::Values(View{1.0, "All"}, View{0.3, "Third"}, View{0.05, "Twentieth"}, View{0.01, "Hundredth"},
                                           View{0.002, "FewSlicesAColumn"}, View{0.0003, "AboutASliceAColumn"}, View{0.00003, "Blocks"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LaneSweepAt, CountsEveryNanosecondOnce)
{
    const Lane lane = randomLane(120'000);
    for (const double start : {0.0, 0.213, 0.77}) {
        const double length = static_cast<double>(lane.lastEnd()) * GetParam().share;
        const TimeMapping map({0, static_cast<double>(lane.lastEnd()) * start * (1 - GetParam().share), length}, 0, kColumns);
        LaneSweep sweep;
        sweep.clear(kColumns);
        sweep.run(lane, kWhole, map, style());
        const std::vector<double> exact = exactCover(lane, map);
        const std::vector<double> swept = sweptCover(sweep);
        double exactSum = 0;
        double sweptSum = 0;
        for (int x = 0; x < kColumns; ++x) {
            const auto at = static_cast<std::size_t>(x);
            EXPECT_LE(swept[at], 1.02) << "column " << x;
            exactSum += exact[at];
            sweptSum += swept[at];
            // Blocks of the index may be spread over up to 2.5 columns: sums over a few columns must agree all the same.
            EXPECT_NEAR(sweptSum, exactSum, 2.5) << "column " << x << " of a view from " << start;
        }
        EXPECT_NEAR(sweptSum, exactSum, 0.75 + 0.002 * exactSum);
    }
}

TEST(LaneSweep, IsExactWhereSlicesAreFew)
{
    const Lane lane = randomLane(3000);
    const TimeMapping map({0, 0, 400'000}, 0, kColumns); // about two slices a column
    LaneSweep sweep;
    sweep.clear(kColumns);
    sweep.run(lane, kWhole, map, style());
    const std::vector<double> exact = exactCover(lane, map);
    const std::vector<double> swept = sweptCover(sweep);
    for (std::size_t x = 0; x < exact.size(); ++x) EXPECT_NEAR(swept[x], exact[x], 1e-4) << x;
}

TEST(LaneSweep, KeepsLongBreaksEmpty)
{
    const Lane lane = randomLane(120'000);
    const TimeMapping map({0, 0, static_cast<double>(lane.lastEnd())}, 0, 4000);
    LaneSweep sweep;
    sweep.clear(4000);
    sweep.run(lane, kWhole, map, style());
    // 120 breaks of 2 ms in about 306 ms: each is about 25 columns wide.
    int empty = 0;
    for (const SweepColumn& column : sweep.columns()) empty += column.cover < 0.01F;
    EXPECT_NEAR(empty, 120.0 * 2'000'000 / map.nsPerPixel(), 120 * 4);
}

TEST(LaneSweep, MixesTheColoursOfAColumn)
{
    Lane lane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    // Each 100 ns: 25 of forward, 25 of backward, 50 idle.
    for (TimeNs t = 0; t < 4'000'000; t += 100) {
        lane.append({.begin = t, .end = t + 25, .action = forward(Stage{0}, MicroBatch{0}), .step = {}, .text = {}});
        lane.append({.begin = t + 25, .end = t + 50, .action = backward(Stage{0}, MicroBatch{0}), .step = {}, .text = {}});
    }
    LaneSweep sweep;
    sweep.clear(kColumns);
    sweep.run(lane, kWhole, {{0, 0, 4e6}, 0, kColumns}, style());
    const Theme theme = Theme::of(ThemeKind::Light);
    const QColor f = theme.block(PaintClass::Forward, 0);
    const QColor b = theme.block(PaintClass::Backward, 0);
    for (int x = 1; x < kColumns - 2; ++x) {
        const SweepColumn& column = sweep.columns()[static_cast<std::size_t>(x)];
        EXPECT_NEAR(column.cover, 0.5, 0.01) << x;
        EXPECT_NEAR(column.red, 0.25 * (f.red() + b.red()), 2) << x;
        EXPECT_NEAR(column.blue, 0.25 * (f.blue() + b.blue()), 2) << x;
    }
}

// The index counts copies with transfers: a lane of copies alone has their colour all the same.
TEST(LaneSweep, GivesALaneOfOneKindItsColourHoweverNarrow)
{
    const Theme theme = Theme::of(ThemeKind::Light);
    for (const auto& [kind, paint] : {std::pair(ActionKind::Offload, PaintClass::Copy), std::pair(ActionKind::ReduceGrad, PaintClass::Collective),
                                      std::pair(ActionKind::Recompute, PaintClass::Recompute)}) {
        Lane lane({.rank = Rank{0}, .kind = LaneKind::Copy, .depth = 0, .name = {}});
        for (TimeNs t = 0; t < 4'000'000; t += 100)
            lane.append({.begin = t, .end = t + 100, .action = makeAction(kind, Stage{0}, MicroBatch{0}), .step = {}, .text = {}});
        EXPECT_TRUE(lane.has(paint));
        EXPECT_FALSE(lane.has(PaintClass::Transfer));
        EXPECT_TRUE(Lane(lane).has(paint)); // a snapshot of a live run
        LaneSweep sweep;
        sweep.clear(kColumns);
        sweep.run(lane, kWhole, {{0, 0, 4e6}, 0, kColumns}, style());
        const SweepColumn& column = sweep.columns()[kColumns / 2];
        EXPECT_NEAR(column.red, theme.block(paint, 0).red(), 3);
        EXPECT_NEAR(column.blue, theme.block(paint, 0).blue(), 3);
    }
}

TEST(LaneSweep, ShowsOnlyItsSegment)
{
    Lane lane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    for (int i = 0; i < 10; ++i)
        lane.append({.begin = i * 100, .end = i * 100 + 100, .action = forward(Stage{0}, MicroBatch{i}), .step = {}, .text = {}});
    LaneSweep sweep;
    sweep.clear(kColumns);
    // Slices 2 and 3, moved to 500 .. 700.
    sweep.run(lane, {{200, 400}, 300}, {{0, 0, 1000}, 0, kColumns}, style());
    ASSERT_EQ(sweep.blocks().size(), 2U);
    EXPECT_EQ(sweep.blocks()[0].slice, 2U);
    EXPECT_DOUBLE_EQ(sweep.blocks()[0].left, 200);
    EXPECT_DOUBLE_EQ(sweep.blocks()[1].right, 280);
}

TEST(LaneIndex, FindsTheBlockOfAMoment)
{
    const Lane lane = randomLane(10'000);
    for (std::size_t k = 0; k < lane.blockCount(); ++k) {
        ASSERT_EQ(lane.blockBegin(k), lane.begin(k * Lane::kBlockSlices));
        ASSERT_EQ(lane.blockAt(lane.blockBegin(k), 0), k);
        ASSERT_EQ(lane.blockAt(lane.blockBegin(k) + 1, k), k);
        ASSERT_EQ(lane.blockAt(lane.blockBegin(k) - 1, 0), k == 0 ? 0 : k - 1);
        ASSERT_EQ(lane.busyBefore(k), lane.occupancyUntil(lane.blockBegin(k), k * Lane::kBlockSlices));
    }
}

TEST(LaneIndex, FindsAmongEveryNthBlock)
{
    const Lane lane = randomLane(10'000);
    for (const std::size_t stride : {1U, 2U, 3U, 8U, 64U, 1024U})
        for (std::size_t from = 0; from < lane.blockCount(); from += 7)
            for (TimeNs t = 0; t <= lane.lastEnd() + 1; t += lane.lastEnd() / 53) {
                std::size_t expected = from;
                for (std::size_t k = from; k < lane.blockCount(); k += stride)
                    if (lane.blockBegin(k) <= t) expected = k;
                ASSERT_EQ(lane.blockAt(t, from, stride), expected) << stride << ' ' << from << ' ' << t;
            }
}

TEST(LaneIndex, SumsAWholeLane)
{
    const Lane lane = randomLane(10'000);
    EXPECT_EQ(lane.busy(), lane.occupancyUntil(lane.lastEnd(), lane.size()));
    EXPECT_EQ(Lane({}).busy(), traces::Occupancy{});
}

TEST(LaneIndex, GivesColumnsUpToTheEndOfAChunk)
{
    const Lane lane = randomLane(5000);
    const Lane::Columns columns = lane.columnsFrom(100);
    EXPECT_EQ(columns.size, Lane::kChunkSlices - 100);
    EXPECT_EQ(columns.begin[7], lane.begin(107));
    EXPECT_EQ(columns.end[7], lane.end(107));
    EXPECT_EQ(columns.paint[7], paintClass(lane.action(107).kind()));
    EXPECT_EQ(lane.columnsFrom(Lane::kChunkSlices).size, 5000 - Lane::kChunkSlices);
    EXPECT_EQ(lane.columnsFrom(5000).size, 0U);
}

TEST(SweepColumn, IsSeenHoweverShortItIsBusy)
{
    const auto busyFor = [](float share) { return SweepColumn{200 * share, 100 * share, 0, share}; };
    const QRgb ground = qRgb(0, 0, 40);
    EXPECT_EQ(mixedOn(ground, busyFor(0.5F)), qRgb(100, 50, 20));
    EXPECT_EQ(mixedOn(ground, busyFor(1)), qRgb(200, 100, 0));
    EXPECT_EQ(mixedOn(ground, busyFor(1.01F)), qRgb(200, 100, 0)) << "rounding";
    for (const float little : {1e-6F, 0.1F, kLeastSeen}) EXPECT_EQ(mixedOn(ground, busyFor(little)), qRgb(70, 35, 26)) << little;
}

} // namespace
} // namespace stagecraft::ui
