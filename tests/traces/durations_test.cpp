// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/durations.h"

#include "tests/traces/staircase.h"

#include <gmock/gmock.h>

#include <numeric>

namespace stagecraft::traces {
namespace {

using test::staircase;

constexpr std::size_t kIntervals = 12;

// 1F1B's end on two ranks: forwards of 1 µs, backwards of 2 µs.
TEST(Durations, TellWhatOfTheBusyTimeEachKindTakes)
{
    const Trace trace = staircase({"0F0 0F1 . . 0B0 - . 0B1 -", ". 1F0 1B0 - 1F1 1B1 -"});
    const Durations durations = durationsOf(trace, kIntervals);
    ASSERT_EQ(durations.rows.size(), 4U);
    double sum = 0;
    for (const DurationRow& row : durations.rows) {
        EXPECT_EQ(row.statistics.count, 2U);
        EXPECT_EQ(row.total, row.statistics.kind == ActionKind::Forward ? 2000 : 4000);
        EXPECT_DOUBLE_EQ(row.share.value(), row.statistics.kind == ActionKind::Forward ? 2.0 / 12 : 4.0 / 12);
        EXPECT_EQ(std::accumulate(row.histogram.counts.begin(), row.histogram.counts.end(), std::size_t{0}), 2U);
        sum += *row.share;
    }
    EXPECT_DOUBLE_EQ(sum, 1);
    EXPECT_FALSE(durations.firstLeftOut);
    EXPECT_TRUE(durationsOf(Trace{}, kIntervals).rows.empty());
}

// A send between a rank's actions waits, and does not compute.
TEST(Durations, CountNoCommunicationAsBusy)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    trace.append(lane, {.begin = 0, .end = 100, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(lane, {.begin = 100, .end = 400, .action = makeAction(ActionKind::SendForward, Stage{0}, MicroBatch{0})});
    const Durations durations = durationsOf(trace, kIntervals);
    ASSERT_EQ(durations.rows.size(), 2U);
    EXPECT_EQ(durations.rows[0].share, 1.0);
    EXPECT_EQ(durations.rows[1].share, std::nullopt);
    EXPECT_EQ(durations.rows[1].total, 300);
}

TEST(Durations, LeaveOutTheFirstOfThreeSteps)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = "rank 0"});
    TimeNs at = 0;
    for (int step = 0; step < 3; ++step) {
        const TimeNs time = step == 0 ? 9000 : 100;
        trace.append(lane, {.begin = at, .end = at + time, .action = forward(Stage{0}, MicroBatch{0}), .step = Step{step}});
        trace.addStep({.step = Step{step}, .span = {at, at + time}, .loss = {}});
        at += time;
    }
    const Durations durations = durationsOf(trace, kIntervals);
    EXPECT_TRUE(durations.firstLeftOut);
    EXPECT_EQ(durations.rows[0].statistics.count, 2U);
    EXPECT_EQ(durations.rows[0].statistics.most, 100);
}

TEST(Durations, FindTheRankAndTheChunkOfAStage)
{
    TraceInfo info;
    info.stageToRank = {Rank{0}, Rank{1}, Rank{1}, Rank{0}}; // a V
    info.upStageToRank = {Rank{1}, Rank{0}};
    EXPECT_EQ(placeOf(info, Stage{2}, Flow::Single), (StagePlace{Rank{1}, 1}));
    EXPECT_EQ(placeOf(info, Stage{3}, Flow::Down), (StagePlace{Rank{0}, 1}));
    EXPECT_EQ(placeOf(info, Stage{0}, Flow::Up), (StagePlace{Rank{1}, 0}));
    EXPECT_EQ(placeOf(info, Stage{4}, Flow::Single), std::nullopt);
}

} // namespace
} // namespace stagecraft::traces
