// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/shard.h"
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::Sharding;
using ::testing::HasSubstr;

namespace {

engine::Schedule read(std::string_view text)
{
    traces::Expected<engine::Schedule> schedule = engine::parseSchedule(text);
    if (!schedule.ok()) throw std::runtime_error(schedule.error().message);
    return schedule.value();
}

std::vector<std::string> faultsOf(std::string_view text)
{
    std::vector<std::string> messages;
    for (const engine::ScheduleFault& fault : engine::validate(read(text)).errors) messages.push_back(fault.message);
    return messages;
}

// By hand from the rule: before each action the next two stages are there, and no others.
TEST(Sharding, KeepsTheWeightsThatAreUsedNext)
{
    const engine::Schedule plain = read("0F0,1F0,2F0,3F0,3B0,2B0,1B0,0B0\n");
    EXPECT_EQ(engine::toText(engine::addUnshardReshard(plain, 2)),
              "0UNSHARD,1UNSHARD,0F0,0RESHARD,2UNSHARD,1F0,1RESHARD,3UNSHARD,2F0,3F0,3B0,3RESHARD,1UNSHARD,2B0,"
              "2RESHARD,0UNSHARD,1B0,1RESHARD,0B0,0RESHARD\n");
    EXPECT_EQ(engine::toText(engine::addUnshardReshard(plain, 8)),
              "0UNSHARD,1UNSHARD,2UNSHARD,3UNSHARD,0F0,1F0,2F0,3F0,3B0,3RESHARD,2B0,2RESHARD,1B0,1RESHARD,0B0,0RESHARD\n");
}

// The two of an overlapped pair count both, also where only one place is left.
TEST(Sharding, GathersBothOfAnOverlappedPair)
{
    EXPECT_EQ(engine::toText(engine::addUnshardReshard(read("0F0,1F0,(0F1;1B0)OVERLAP_F_B,0B0,1F1,1B1,0B1\n"), 1)),
              "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,0UNSHARD,(0F1;1B0)OVERLAP_F_B,1RESHARD,0B0,0RESHARD,1UNSHARD,1F1,1B1,1RESHARD,0UNSHARD,"
              "0B1,0RESHARD\n");
}

TEST(Sharding, ReducesGradientsBehindTheLastOfAStage)
{
    EXPECT_EQ(engine::toText(engine::addReduceGrad(read("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1B0,1F1,1B1\n"))),
              "0F0,0F1,0I0,0I1,0W0,0W1,0REDUCE_GRAD\n1F0,1B0,1F1,1B1,1REDUCE_GRAD\n");
}

TEST(Sharding, AddsWhatEachLevelDivides)
{
    const engine::Schedule plain = made("looped-bfs", 2, 4, 2);
    EXPECT_EQ(engine::shard(plain, Sharding::None), plain);
    EXPECT_EQ(engine::shard(plain, Sharding::Zero1), plain);
    EXPECT_EQ(engine::shard(plain, Sharding::Zero2), engine::addReduceGrad(plain));
    EXPECT_EQ(engine::shard(plain, Sharding::Zero3), engine::addReduceGrad(engine::addUnshardReshard(plain)));
    const engine::Schedule own = engine::addUnshardReshard(plain, 1);
    EXPECT_EQ(engine::shard(own, Sharding::Zero3), own); // it says itself when
}

TEST(Sharding, IsLegalForEveryFamilyAndSurvivesItsText)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        if (family.asynchronous) continue; // its weights change while they are gathered; a plan refuses it
        const engine::Schedule plain = made(family.name, 4, 8, family.minChunks);
        const engine::Schedule sharded = engine::shard(plain, Sharding::Zero3);
        EXPECT_TRUE(engine::hasSharding(sharded));
        EXPECT_EQ(engine::withoutSharding(sharded), plain) << family.name;
        const engine::Schedule lowered = engine::lowerCommunication(sharded).value();
        for (const engine::Schedule* schedule : {&sharded, &lowered}) {
            EXPECT_TRUE(engine::validate(*schedule).legal()) << family.name;
            EXPECT_EQ(engine::parseSchedule(engine::toText(*schedule)).value().order, schedule->order) << family.name;
        }
    }
}

TEST(Sharding, WeightsAreUsedOnlyWhileTheyAreThere)
{
    EXPECT_THAT(faultsOf("0F0,0UNSHARD,0B0\n"),
                ::testing::ElementsAre("rank 0, position 0: 0F0 uses weights that are not gathered; put 0UNSHARD before it"));
    EXPECT_THAT(faultsOf("0UNSHARD,0F0,0RESHARD,0B0\n"),
                ::testing::ElementsAre("rank 0, position 3: 0B0 uses weights that were given up at position 2; put 0UNSHARD before it"));
    EXPECT_THAT(faultsOf("0UNSHARD,0F0,0UNSHARD,0B0,0RESHARD\n"),
                ::testing::ElementsAre("rank 0, position 2: 0UNSHARD gathers weights that are there since position 0; remove it"));
    EXPECT_THAT(faultsOf("0UNSHARD,0F0,0B0,0RESHARD,0RESHARD\n"),
                ::testing::ElementsAre("rank 0, position 4: 0RESHARD gives up weights that are gone since position 3; remove it"));
    EXPECT_THAT(faultsOf("0RESHARD,0UNSHARD,0F0,0B0\n"),
                ::testing::ElementsAre("rank 0, position 0: 0RESHARD gives up weights that were never gathered; remove it"));
    EXPECT_THAT(faultsOf("0UNSHARD,0F0,0RESHARD,0RECOMPUTE0,0UNSHARD,0B0\n"),
                ::testing::ElementsAre(HasSubstr("0RECOMPUTE0 uses weights that were given up at position 2")));
    // stage 1 is not divided
    EXPECT_THAT(faultsOf("0UNSHARD,0F0,1F0,1B0,0B0,0RESHARD\n"), ::testing::IsEmpty());
}

TEST(Sharding, GradientsAreReducedOnceWhenTheyAreComplete)
{
    EXPECT_THAT(faultsOf("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n"),
                ::testing::ElementsAre("rank 0, position 3: 0REDUCE_GRAD comes before position 4, the last to add to these gradients; move it behind"));
    EXPECT_THAT(faultsOf("0F0,0I0,0REDUCE_GRAD,0W0\n"), ::testing::ElementsAre(HasSubstr("comes before position 3")));
    EXPECT_THAT(faultsOf("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n"),
                ::testing::ElementsAre("rank 0, position 3: 0REDUCE_GRAD is there twice, first at position 2; gradients are reduced once"));
    EXPECT_THAT(faultsOf("0F0,0B0,0OPTIMIZER,0REDUCE_GRAD\n"),
                ::testing::ElementsAre("rank 0, position 3: 0REDUCE_GRAD comes after 0OPTIMIZER (position 2), which needs these gradients; move it before"));
    EXPECT_THAT(faultsOf("0F0,0B0,0REDUCE_GRAD,0OPTIMIZER\n"), ::testing::IsEmpty());
    EXPECT_THAT(faultsOf("0F0,0B0,0OPTIMIZER,0ALL_REDUCE\n"), ::testing::ElementsAre(HasSubstr("0ALL_REDUCE comes after 0OPTIMIZER (position 2)")));
    EXPECT_THAT(faultsOf("0F0,0ALL_REDUCE,0B0\n"), ::testing::ElementsAre(HasSubstr("comes before position 2, the last to add")));
    EXPECT_THAT(faultsOf("0F0,0B0,0REDUCE_GRAD,0ALL_REDUCE\n"), ::testing::ElementsAre(HasSubstr("gradients are reduced once")));
    EXPECT_THAT(faultsOf("0F0,0B0,0ALL_REDUCE,0OPTIMIZER\n1F0,1B0,1OPTIMIZER\n"), ::testing::IsEmpty()); // tied weights
    EXPECT_THAT(faultsOf("0F0,0B0,0REDUCE_GRAD\n1F0,1B0\n"),
                ::testing::ElementsAre("rank 1: 1REDUCE_GRAD is missing; gradients of other stages are reduced"));
}

// Asynchronous: the second micro-batch goes by the weights after the first update, and what was gathered before it is not those.
TEST(Sharding, WantsWeightsToBeGatheredAgainBehindAnUpdate)
{
    const std::string rule = "# updates 1 stashed\n";
    EXPECT_THAT(faultsOf(rule + "0UNSHARD,0F0,0B0,0RESHARD,0OPTIMIZER,0UNSHARD,0F1,0B1,0RESHARD,0OPTIMIZER\n"), ::testing::IsEmpty());
    EXPECT_THAT(faultsOf(rule + "0UNSHARD,0F0,0B0,0OPTIMIZER,0F1,0B1,0RESHARD,0OPTIMIZER\n"),
                ::testing::Contains(HasSubstr("0F1 uses weights as they were before the update at position 3; put 0RESHARD and 0UNSHARD before it")));
}

// Gathers and reductions that take no time change nothing of what is told of a step.
TEST(Sharding, ChangesNoFigureWhereItIsFree)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        if (family.asynchronous) continue;
        SCOPED_TRACE(family.name);
        const engine::Schedule plain = made(family.name, 4, 8, family.minChunks);
        if (plain.inference()) continue;
        engine::CostTable costs = slotCosts(plain.stages(), kSlot, 2 * kSlot);
        const traces::StepFigures without = figuresOf(plain, costs);
        costs.machine.replicas = 2;
        for (const Sharding level : {Sharding::Zero2, Sharding::Zero3}) {
            costs.sharding = level;
            const traces::StepFigures with = figuresOf(engine::shard(plain, level), costs);
            EXPECT_EQ(with.makespan, without.makespan);
            EXPECT_EQ(with.bubbleSpan, without.bubbleSpan);
            EXPECT_EQ(with.steady, without.steady);
            for (std::size_t r = 0; r < with.ranks.size(); ++r) {
                EXPECT_EQ(with.ranks[r].firstStart, without.ranks[r].firstStart);
                EXPECT_EQ(with.ranks[r].lastEnd, without.ranks[r].lastEnd);
                EXPECT_EQ(with.ranks[r].idleByCause, without.ranks[r].idleByCause);
            }
        }
    }
}

// Both ranks gather from 0 to 500 (half of 1000 bytes). Rank 0 waits for that, and computes from then on; rank 1 waits for rank 0.
TEST(Sharding, BeginsASpanWithComputingAndAStepWithTheGatherBeforeIt)
{
    const engine::Schedule schedule = read("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1F0,1B0,1REDUCE_GRAD,1RESHARD\n");
    engine::CostTable costs = slotCosts(2, 1000, 1000);
    for (engine::StageCosts& stage : costs.stages) stage.weightBytes = 1000;
    costs.machine.replicas = 2;
    costs.machine.replica = {.latency = 0, .bytesPerSecond = 1e9};
    const traces::StepFigures figures = figuresOf(schedule, costs);
    EXPECT_EQ(figures.makespan, 4500);
    EXPECT_EQ(figures.ranks[0].firstStart, 500);
    EXPECT_EQ(figures.ranks[1].firstStart, 1500);
    EXPECT_EQ(figures.maxSpan, 4000);
    const auto idle = [&](std::size_t rank, traces::GapCause cause) { return figures.ranks[rank].idleByCause[static_cast<std::size_t>(cause)]; };
    EXPECT_EQ(idle(0, traces::GapCause::Filling), 0);
    EXPECT_EQ(idle(0, traces::GapCause::Transfer), 500);
    EXPECT_EQ(idle(1, traces::GapCause::Filling), 1500);
    EXPECT_EQ(idle(1, traces::GapCause::Transfer), 0);
}

} // namespace
