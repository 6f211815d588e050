// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/slack.h"

#include "tests/traces/staircase.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/step_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;

constexpr Step kStep{0};

std::vector<TimeNs> slackOfLane(const Trace& trace, int lane)
{
    const StepSlack slack = slackOf(trace, StepIndex(trace), kStep).value();
    std::vector<TimeNs> all;
    for (std::uint32_t i = 0; i < trace.lane(LaneId{lane}).size(); ++i) all.push_back(slack.of({LaneId{lane}, i}).value_or(-1));
    return all;
}

TEST(Slack, IsWhatAnActionMayBeDelayed)
{
    const Trace trace = staircase({"0F0 0F1 .   0B0 .   0B1", //
                                   ".   1F0 1B0 1F1 1B1 .  "});
    EXPECT_THAT(slackOfLane(trace, 0), ElementsAre(0, 1000, 1000, 0));
    EXPECT_THAT(slackOfLane(trace, 1), ElementsAre(0, 0, 0, 0));
}

TEST(Slack, ReckonsWithTheWayOfTheData)
{
    const Trace trace = staircase({"0F0 0F1 0F2 .   .   .   0B0", //
                                   ".   .   1F0 1F1 1B0 .   .  "},
                                  {.latency = 400});
    // 0F0 was there 600 before 1F0 began, which nothing else kept: what held it up stays as it is
    EXPECT_THAT(slackOfLane(trace, 0), ElementsAre(0, 600, 2400, 0));
}

TEST(Slack, IsNoneOnTheCriticalPathWhateverElseActionsWaitedFor)
{
    const Trace trace = staircase({"0F0 .   0F1 .   .   .   0B0 .   0B1", //
                                   ".   1F0 -   .   1B0 1F1 .   1B1 .  "});
    const StepSlack slack = slackOf(trace, StepIndex(trace), kStep).value();
    for (const SliceRef on : criticalPath(trace, kStep).value().slices()) EXPECT_EQ(slack.of(on), 0) << trace.sliceName(on);
}

TEST(Slack, KeepsTheGradientsInTime)
{
    Trace trace = staircase({"0F0 0B0 .   . ", //
                             "5F0 5B0 5F1 - "});
    // summed right behind the backward: no edge says so
    const LaneId sums = trace.addLane({Rank{0}, LaneKind::Collective, 0, "sums"});
    trace.append(sums, {2000, 3500, makeAction(ActionKind::AllReduce, Stage{0}, kNoMicroBatch), kStep, {}});
    EXPECT_THAT(slackOfLane(trace, 0), ElementsAre(500, 500));
    EXPECT_THAT(slackOfLane(trace, 2), ElementsAre(500));
}

TEST(Slack, LeavesPausesOut)
{
    Trace trace = staircase({"0F0 0F1 .   0B0 .   0B1", //
                             ".   1F0 1B0 1F1 1B1 .  "});
    trace.addPause({2200, 2500});
    EXPECT_THAT(slackOfLane(trace, 0), ElementsAre(0, 700, 1000, 0));
}

TEST(Slack, TellsNothingOfOtherStepsAndOfCircles)
{
    Trace trace;
    const LaneId lane = trace.addLane({Rank{0}, LaneKind::Compute, 0, "rank 0"});
    const LaneId other = trace.addLane({Rank{1}, LaneKind::Compute, 0, "rank 1"});
    trace.append(lane, {0, 0, makeAction(ActionKind::Forward, Stage{0}, MicroBatch{0}), kStep, {}});
    trace.append(other, {0, 0, makeAction(ActionKind::Forward, Stage{1}, MicroBatch{0}), kStep, {}});
    trace.append(other, {0, 10, makeAction(ActionKind::Forward, Stage{1}, MicroBatch{1}), Step{1}, {}});
    trace.addEdge({EdgeKind::Data, {other, 0}, {lane, 0}, 0});
    trace.addEdge({EdgeKind::Data, {lane, 0}, {other, 0}, 0});
    const StepSlack slack = slackOf(trace, StepIndex(trace), kStep).value();
    EXPECT_FALSE(slack.of({lane, 0}));
    EXPECT_FALSE(slack.of({other, 1}));
    EXPECT_FALSE(slackOf(trace, StepIndex(trace), Step{7}).ok());
}

} // namespace
} // namespace stagecraft::traces
