// SPDX-License-Identifier: Apache-2.0
//
// Whole runs through each kind of hand-off, with room enough and with too little.
#include "tests/runtime/run_plan.h"

#include "engine/plan/plan_words.h"
#include "traces/analysis/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::Rank;

Plan small(const std::string& schedule, int ranks, int chunks, int microbatches)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{16, 16, Activation::Relu});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = schedule, .ranks = ranks, .chunks = chunks, .microbatches = microbatches, .customSchedule = {}};
    plan.run.steps = 2;
    return plan;
}

std::vector<Plan> everyFamily()
{
    std::vector<Plan> plans;
    for (const ScheduleFamily& family : scheduleFamilies()) {
        const bool two = family.name == "dualpipe" || family.name == "chimera";
        Plan plan = small(family.name, two ? 4 : 2, family.minChunks, two ? 8 : 5);
        while (!checkRequest(requestOf(plan.pipeline)).ok()) ++plan.pipeline.microbatches;
        plans.push_back(std::move(plan));
    }
    return plans;
}

class EveryFamilyThrough : public testing::TestWithParam<HandoffKind> {};

TEST_P(EveryFamilyThrough, TrainsAsThroughBoxes)
{
    for (Plan plan : everyFamily()) {
        const Outcome boxes = runPlan(plan);
        ASSERT_TRUE(boxes.result) << plan.pipeline.schedule;
        plan.run.handoff = GetParam();
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << plan.pipeline.schedule << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << plan.pipeline.schedule;
        EXPECT_EQ(outcome.result->loss, boxes.result->loss) << plan.pipeline.schedule;
        // with room for all nobody waits to send, and each rank waits at the end of each step
        for (const Lane& lane : outcome.trace.lanes())
            for (std::size_t i = 0; i < lane.size(); ++i)
                if (lane.info().kind == LaneKind::Compute) {
                    EXPECT_FALSE(traces::isTransfer(lane.action(i).kind()));
                }
        const Lane& together = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Collective));
        EXPECT_EQ(outcome.trace.text(together.text(together.size() - 1)), "flush: waits for the other ranks");
    }
}

// Every tensor of a step may wait for its turn: the deepest that any schedule needs is one for each micro-batch, and few need more than p.
TEST_P(EveryFamilyThrough, TrainsWithAPlaceForEachRank)
{
    for (const char* schedule : {"1f1b", "zb-h1", "gpipe"}) {
        Plan plan = small(schedule, 4, 1, 8);
        plan.run.handoff = GetParam();
        plan.run.handoffDepth = 4;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << schedule << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << schedule;
    }
}

// A slow receiver keeps its sender waiting: in a send between two of its actions.
TEST_P(EveryFamilyThrough, ShowsWhereASenderWaitsForRoom)
{
    Plan plan = small("gpipe", 2, 1, 8);
    plan.model.layers.assign(2, Linear{64, 64, Activation::Relu});
    plan.model.microbatchRows = 64;
    plan.run.slowdown = {1, 20};
    plan.run.handoff = GetParam();
    plan.run.handoffDepth = 1;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    const Lane& lane = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Compute));
    int waits = 0;
    for (std::size_t i = 1; i < lane.size(); ++i) {
        if (lane.action(i).kind() != ActionKind::SendForward) continue;
        ++waits;
        EXPECT_EQ(lane.action(i - 1).kind(), ActionKind::Forward);
        EXPECT_EQ(lane.action(i - 1).microbatch(), lane.action(i).microbatch());
        EXPECT_GE(lane.begin(i), lane.end(i - 1));
    }
    EXPECT_GT(waits, 0);
    const traces::StepFigures figures = traces::stepFigures(outcome.trace, traces::Step{1}).value();
    traces::TimeNs sum = 0;
    for (const traces::TimeNs part : figures.ranks[0].idleByCause) sum += part;
    EXPECT_EQ(sum, figures.ranks[0].idle); // a wait is idle time with a cause
}

// Rank 0 sends all its forwards first, rank 1 answers each at once: with one place each way both come to wait for room, and a place more
// only puts that off. The order is legal, and with room for all it runs.
TEST_P(EveryFamilyThrough, EndsADeadlockOfTooLittleRoomWithItsCircle)
{
    Plan plan = small("1f1b", 2, 1, 6);
    plan = withCustomSchedule(plan, "0F0,0F1,0F2,0F3,0F4,0F5,0B0,0B1,0B2,0B3,0B4,0B5\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3,1F4,1B4,1F5,1B5\n").value();
    plan.run.handoff = GetParam();
    for (const int depth : {1, 2}) {
        plan.run.handoffDepth = depth;
        const Outcome outcome = runPlan(plan);
        EXPECT_EQ(outcome.last, SessionState::Failed) << depth;
        ASSERT_TRUE(outcome.failure) << depth;
        EXPECT_THAT(outcome.failure->text, HasSubstr("the run came to a deadlock: "));
        EXPECT_THAT(outcome.failure->text, HasSubstr("for rank 1 to take from the way to stage 1, which is full"));
        EXPECT_THAT(outcome.failure->text, HasSubstr("for rank 0 to take from the way to stage 0, which is full"));
        EXPECT_THAT(outcome.failure->text, HasSubstr("Take a larger handoff_depth than " + std::to_string(depth)));
        EXPECT_GT(outcome.trace.sliceCount(), 4U); // what ran until then is kept
    }
    for (const int depth : {3, 0}) {
        plan.run.handoffDepth = depth;
        EXPECT_TRUE(runPlan(plan).result) << depth;
    }
}

INSTANTIATE_TEST_SUITE_P(Runtime, EveryFamilyThrough, testing::Values(HandoffKind::Mutex, HandoffKind::Ring, HandoffKind::Semaphore),
                         [](const auto& each) { return std::string(wordOf(kHandoffWords, each.param)); });

TEST(Handoff, SaysThatAnEmulationHasItsOwn)
{
    Plan plan = small("1f1b", 2, 1, 2);
    plan.run.mode = RunMode::Emulated;
    plan.run.handoff = HandoffKind::Ring;
    const Outcome outcome = runPlan(plan, {.cpuClock = &monotonicClock()});
    ASSERT_EQ(outcome.trace.notes().size(), 1U);
    EXPECT_THAT(outcome.trace.notes()[0], HasSubstr("run.handoff ring is of mode threads"));
}

} // namespace
} // namespace stagecraft::runtime
