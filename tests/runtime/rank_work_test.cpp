// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using engine::generate;
using engine::parseSchedule;
using ::testing::ElementsAre;
using traces::Rank;

std::vector<std::string> workOf(const Schedule& schedule, int rank)
{
    std::vector<std::string> names;
    for (const Action& action : rankWork(schedule, Rank{rank})) names.push_back(toText(action));
    return names;
}

TEST(RankWork, EndsWithTheUpdatesOfTheStagesThatARankHolds)
{
    const Schedule schedule = generate({.name = "interleaved", .ranks = 2, .chunks = 2, .microbatches = 2}).value();
    EXPECT_THAT(workOf(schedule, 1), ElementsAre("1F0", "1F1", "3F0", "3B0", "3F1", "3B1", "1B0", "1B1", "1OPTIMIZER", "3OPTIMIZER"));
}

TEST(RankWork, LeavesTransfersAndWhatTheScheduleSaysAlone)
{
    EXPECT_THAT(workOf(parseSchedule("0F0,0SEND_F0,0RECV_B0,0B0,0OPTIMIZER\n1RECV_F0,1F0,1B0,1SEND_B0\n").value(), 0),
                ElementsAre("0F0", "0B0", "0OPTIMIZER"));
    EXPECT_THAT(workOf(generate({.name = "forward-only", .ranks = 2, .microbatches = 2}).value(), 1), ElementsAre("1F0", "1F1"));
}

// In ascending order of stages on every rank, so that the two that meet come to it in the same order.
TEST(RankWork, AddsUpTheGradientsOfTwoCopiesBeforeTheUpdate)
{
    const Schedule schedule = generate({.name = "chimera", .ranks = 2, .microbatches = 2}).value();
    for (const int rank : {0, 1}) {
        const std::vector<std::string> work = workOf(schedule, rank);
        const std::vector<std::string> end(work.end() - 4, work.end());
        const char* own = rank == 0 ? "d" : "u"; // of stage 0
        const char* other = rank == 0 ? "u" : "d";
        EXPECT_THAT(end, ElementsAre(std::string(own) + "0ALL_REDUCE", std::string(own) + "0OPTIMIZER", std::string(other) + "1ALL_REDUCE",
                                     std::string(other) + "1OPTIMIZER"));
    }
}

// All sums, then all ranks together, then the updates.
TEST(RankWork, LetsUpdatesWaitForTheNormWhereGradientsAreClipped)
{
    const Schedule schedule = generate({.name = "chimera", .ranks = 2, .microbatches = 2}).value();
    const std::vector<Action> work = rankWork(schedule, Rank{0}, Ends::Apart, Clipping::On);
    std::vector<std::string> end;
    for (auto action = work.end() - 5; action != work.end(); ++action) end.push_back(toText(Action{action->work, {}}) + (sharesNorm(*action) ? " of all" : ""));
    EXPECT_THAT(end, ElementsAre("d0ALL_REDUCE", "u1ALL_REDUCE", "d0ALL_REDUCE of all", "d0OPTIMIZER", "u1OPTIMIZER"));
}

std::vector<std::string> sumsOf(const Schedule& schedule, int rank)
{
    std::vector<std::string> names;
    for (const Action& action : rankWork(schedule, Rank{rank}, Ends::Tied))
        if (action.kind() == traces::ActionKind::AllReduce)
            names.push_back(toText(action) + " with " + toText(Action{action.partner, {}}));
        else if (action.kind() == traces::ActionKind::Optimizer) names.push_back(toText(action));
    return names;
}

TEST(RankWork, AddsUpATiedTableBetweenTheTwoEnds)
{
    const Schedule plain = generate({.name = "1f1b", .ranks = 3, .microbatches = 3}).value();
    EXPECT_THAT(sumsOf(plain, 0), ElementsAre("0ALL_REDUCE with 2ALL_REDUCE", "0OPTIMIZER"));
    EXPECT_THAT(sumsOf(plain, 1), ElementsAre("1OPTIMIZER"));
    EXPECT_THAT(sumsOf(plain, 2), ElementsAre("2ALL_REDUCE with 0ALL_REDUCE", "2OPTIMIZER"));
    EXPECT_THAT(sumsOf(generate({.name = "1f1b", .ranks = 1, .microbatches = 3}).value(), 0), ElementsAre("0OPTIMIZER"));
    // both on one rank: one sum for the two
    EXPECT_THAT(sumsOf(generate({.name = "zb-v", .ranks = 2, .chunks = 2, .microbatches = 4}).value(), 0),
                ElementsAre("0ALL_REDUCE with 3ALL_REDUCE", "0OPTIMIZER", "3OPTIMIZER"));
    // the directions first, then the ends by direction: on both ranks in the same order
    const Schedule two = generate({.name = "chimera", .ranks = 2, .microbatches = 2}).value();
    EXPECT_THAT(sumsOf(two, 0), ElementsAre("d0ALL_REDUCE with u0ALL_REDUCE", "u1ALL_REDUCE with d1ALL_REDUCE", "d0ALL_REDUCE with d1ALL_REDUCE",
                                            "u1ALL_REDUCE with u0ALL_REDUCE", "d0OPTIMIZER", "u1OPTIMIZER"));
    EXPECT_THAT(sumsOf(two, 1), ElementsAre("u0ALL_REDUCE with d0ALL_REDUCE", "d1ALL_REDUCE with u1ALL_REDUCE", "d1ALL_REDUCE with d0ALL_REDUCE",
                                            "u0ALL_REDUCE with u1ALL_REDUCE", "d1OPTIMIZER", "u0OPTIMIZER"));
}

TEST(RankWork, TellsWhatAStageHasToBePreparedFor)
{
    const Schedule split = generate({.name = "zb-h1", .ranks = 2, .microbatches = 3}).value();
    EXPECT_TRUE(dutiesOf(split, {Flow::Single, Stage{0}}).splits);
    EXPECT_THAT(dutiesOf(split, {Flow::Single, Stage{0}}).gradientOrder, ElementsAre(0, 1, 2));
    const Schedule again = parseSchedule("0F0,0F1,0RECOMPUTE1,0B1,0B0\n").value();
    EXPECT_THAT(dutiesOf(again, {Flow::Single, Stage{0}}).recomputed, ElementsAre(false, true));
    EXPECT_THAT(dutiesOf(again, {Flow::Single, Stage{0}}).gradientOrder, ElementsAre(1, 0));
    EXPECT_TRUE(dutiesOf(generate({.name = "forward-only", .ranks = 2, .microbatches = 2}).value(), {Flow::Single, Stage{1}}).inference);
}

// Five micro-batches in updates of two: the last takes the rest (arXiv 2006.09503: group k goes by version k-1).
TEST(RankWork, TellsTheVersionsOfAnAsynchronousSchedule)
{
    const Schedule schedule = generate({.name = "pipedream-2bw", .ranks = 2, .microbatches = 5, .group = 2}).value();
    const StageDuties duties = dutiesOf(schedule, {Flow::Single, Stage{1}});
    EXPECT_TRUE(duties.asynchronous());
    EXPECT_EQ(duties.updates, 3);
    EXPECT_THAT(duties.group, ElementsAre(2, 2, 2, 2, 1));
    EXPECT_THAT(duties.update, ElementsAre(1, 1, 2, 2, 3));
    EXPECT_THAT(duties.version, ElementsAre(0, 0, 0, 0, 1));
}

} // namespace
} // namespace stagecraft::runtime
