// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/statistics.h"

#include "tests/traces/staircase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;

constexpr Step kStep{0};

// Forwards of stage 0, one after the other.
Trace forwardsOf(const std::vector<TimeNs>& durations)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    TimeNs at = 0;
    for (std::size_t i = 0; i < durations.size(); ++i) {
        trace.append(lane, {.begin = at, .end = at + durations[i], .action = makeAction(ActionKind::Forward, Stage{0}, MicroBatch{static_cast<int>(i)}), .step = Step{0}});
        at += durations[i];
    }
    return trace;
}

TEST(ActionStatistics, GiveMediansByStageAndKind)
{
    Trace trace = staircase({"0F0 - - - - 0F1 0F2 - 0B0 - 0B1 - - -"});
    test::addStaircase(trace, {"0F0 - - - - - - - - -"}, {.origin = 90'000, .step = Step{-1}}); // left out below
    trace.addPause({90'000, 91'000});
    const auto stats = actionStatistics(trace, {.from = kStep});
    EXPECT_THAT(stats, ElementsAre(ActionStatistics{Stage{0}, Flow::Single, ActionKind::Forward, 3, 2000, 1000, 5000, 5000, 1000, 5000},
                                   ActionStatistics{Stage{0}, Flow::Single, ActionKind::Backward, 2, 3000, 2000, 4000, 4000, 2000, 4000}));
    EXPECT_EQ(actionStatistics(trace)[0].most, 9000) << "the pause does not count";
    EXPECT_TRUE(actionStatistics(Trace{}).empty());
}

// Nearest rank: of 20 values 19 are at most the 19th, of 21 the 20th is the first with 95 % (19.95) at or below it.
TEST(ActionStatistics, TakeTheNearestRankForThe95thPercentile)
{
    for (const auto& [count, p95] : {std::pair{20, 19}, {21, 20}, {1, 1}, {100, 95}}) {
        Trace trace;
        const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
        TimeNs at = 0;
        for (int i = 1; i <= count; ++i) {
            trace.append(lane, {.begin = at, .end = at + i, .action = makeAction(ActionKind::Forward, Stage{0}, MicroBatch{i}), .step = Step{0}});
            at += i;
        }
        EXPECT_EQ(actionStatistics(trace).front().p95, p95) << count;
    }
}

// Of 8 values the quartiles are the 2nd and the 6th: 102 and 106, so what is longer than 106 + 3 * 4 is far out.
TEST(ActionStatistics, NameWhatIsFarOutTheLongestFirst)
{
    const ActionStatistics s = actionStatistics(forwardsOf({105, 119, 101, 102, 900, 103, 104, 106})).front();
    EXPECT_EQ(s.lowerQuartile, 102);
    EXPECT_EQ(s.upperQuartile, 106);
    EXPECT_EQ(s.outlierFrom(), 118);
    EXPECT_THAT(s.outliers, ElementsAre(SliceRef{LaneId{0}, 4}, SliceRef{LaneId{0}, 1}));
    EXPECT_TRUE(actionStatistics(forwardsOf({100, 100, 100})).front().outliers.empty());
}

// Twice the distance of the quartiles, 2 * 4, over the cube root of 8.
TEST(Histogram, HasIntervalsByTheRuleOfFreedmanAndDiaconis)
{
    const Trace trace = forwardsOf({101, 102, 103, 104, 105, 106, 107, 109});
    const Histogram histogram = histogramOf(actionTimes(trace).front().times);
    EXPECT_EQ(histogram, (Histogram{.from = 101, .width = 4, .counts = {4, 4}})) << "109 ends the last interval";
    EXPECT_TRUE(actionTimes(Trace{}).empty());
    EXPECT_EQ(histogramOf({7, 7, 7}), (Histogram{.from = 7, .width = 1, .counts = {3}}));
    EXPECT_TRUE(histogramOf({}).counts.empty());
    // The rule says 8 (quartiles 1 and 9, eight values); 1 to 10 are two of 5 rather than one that ends behind them.
    EXPECT_EQ(histogramOf({1, 1, 2, 2, 3, 9, 9, 10}), (Histogram{.from = 1, .width = 5, .counts = {5, 3}}));
}

TEST(Histogram, CountsEveryValueOnceWithinItsInterval)
{
    std::mt19937_64 random(7);
    for (int round = 0; round < 300; ++round) {
        const std::size_t most = 1 + random() % 50;
        std::vector<TimeNs> values(1 + random() % 200);
        const TimeNs scale = TimeNs{1} << (random() % 40);
        for (TimeNs& value : values) value = static_cast<TimeNs>(random() % 1000) * scale / 500;
        const Histogram histogram = histogramOf(values, most);
        ASSERT_LE(histogram.counts.size(), most);
        ASSERT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::size_t{0}), values.size());
        for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
            const TimeNs from = histogram.from + static_cast<TimeNs>(i) * histogram.width;
            const bool last = i + 1 == histogram.counts.size();
            const auto inside = std::count_if(values.begin(), values.end(), [&](TimeNs value) {
                return value >= from && (value < from + histogram.width || (last && value == from + histogram.width));
            });
            ASSERT_EQ(histogram.counts[i], static_cast<std::size_t>(inside)) << round << ", interval " << i;
        }
    }
}

TEST(HandOff, IsTheMedianOverEdgesBetweenRanks)
{
    EXPECT_EQ(medianHandOff(staircase({"0F0 . . 0B0", ". 1F0 1B0"}, {.latency = 70})), 70);
    EXPECT_EQ(medianHandOff(staircase({"0F0 1F0 1B0 0B0"}, {.latency = 70, .chunks = 2})), std::nullopt) << "on one rank";
    EXPECT_EQ(medianHandOff(Trace{}), std::nullopt);
}

} // namespace
} // namespace stagecraft::traces
