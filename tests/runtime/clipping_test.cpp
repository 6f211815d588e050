// SPDX-License-Identifier: Apache-2.0
//
// What happens to gradients between the last backward and the update: a scaled loss, and the norm of all of them together.
#include "engine/runtime/clip_norm.h"
#include "engine/runtime/runnable.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using traces::Lane;
using traces::LaneKind;
using traces::Rank;

TEST(ClipFactor, IsPyTorchs)
{
    EXPECT_DOUBLE_EQ(clipFactor({9, 16}, 1), 1 / (5 + 1e-6));
    EXPECT_EQ(clipFactor({9, 16}, 5), 5 / (5 + 1e-6)); // below 1 by the 1e-6, as there
    EXPECT_EQ(clipFactor({9, 16}, 6), 1);
    EXPECT_EQ(clipFactor({}, 1), 1);
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_EQ(firstDiverged({1, 2}), -1);
    EXPECT_EQ(firstDiverged({1, infinite, NAN}), 1);
}

Plan littlePlan(const std::string& schedule, int ranks, int chunks, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.run.steps = 4;
    plan.run.optimizer = OptimizerKind::Sgd; // which Adam would hide: it divides by the size of the gradients
    plan.run.learningRate = 0.5;
    return plan;
}

RunResult resultOf(const Plan& plan)
{
    const Outcome outcome = runPlan(plan);
    EXPECT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");
    return outcome.result.value_or(RunResult{});
}

TEST(Clipping, GivesTheSameBitsInEveryShapeAndMode)
{
    Plan plan = littlePlan("1f1b", 2, 1, RunMode::Threads);
    const std::vector<double> unclipped = resultOf(plan).loss;
    plan.run.clipNorm = 0.1;
    const std::vector<double> clipped = resultOf(plan).loss;
    EXPECT_EQ(clipped[0], unclipped[0]);
    EXPECT_GT(clipped[1], unclipped[1]); // a shorter way down
    struct Shape {
        const char* schedule;
        int ranks, chunks;
        RunMode mode;
    };
    for (const Shape& shape : {Shape{"naive", 1, 1, RunMode::Threads}, Shape{"gpipe", 4, 1, RunMode::Threads}, Shape{"1f1b", 4, 1, RunMode::Emulated},
                               Shape{"interleaved", 2, 2, RunMode::Threads}, Shape{"zb-h1", 2, 1, RunMode::Emulated}, Shape{"1f1b-v", 2, 2, RunMode::Emulated}}) {
        Plan other = littlePlan(shape.schedule, shape.ranks, shape.chunks, shape.mode);
        other.run.clipNorm = 0.1;
        const RunResult result = resultOf(other);
        EXPECT_EQ(result.loss, clipped) << shape.schedule;
        EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise) << shape.schedule;
    }
}

TEST(Clipping, ALargeNormChangesNothing)
{
    Plan plan = littlePlan("1f1b", 2, 1, RunMode::Emulated);
    const std::vector<double> unclipped = resultOf(plan).loss;
    plan.run.clipNorm = 1e6;
    EXPECT_EQ(resultOf(plan).loss, unclipped);
}

// Of two copies of a layer one counts: the reference, which has but one, finds the same gradients.
TEST(Clipping, CountsTheLayersOfTwoDirectionsOnce)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const auto& [name, ranks] : {std::pair("dualpipe", 2), std::pair("chimera", 4)}) {
            Plan plan = littlePlan(name, ranks, 1, mode);
            plan.run.clipNorm = 0.1;
            EXPECT_EQ(resultOf(plan).gradientCheck, GradientCheck::Bitwise) << name;
        }
}

// A table with two uses counts once, wherever its copies are.
TEST(Clipping, CountsATiedTableOnce)
{
    std::vector<double> losses;
    for (const auto& [ranks, mode] : {std::pair(1, RunMode::Threads), std::pair(4, RunMode::Threads), std::pair(2, RunMode::Emulated)}) {
        Plan plan = littlePlan("1f1b", ranks, 1, mode);
        plan.model.tiedEmbeddings = true;
        plan.run.clipNorm = 0.1;
        plan.run.lossScale = 8;
        const RunResult result = resultOf(plan);
        EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise) << ranks;
        if (losses.empty()) losses = result.loss;
        EXPECT_EQ(result.loss, losses) << ranks;
    }
}

const Lane& collectives(const Outcome& outcome, int rank) { return outcome.trace.lane(*outcome.trace.findLane(Rank{rank}, LaneKind::Collective)); }

// All ranks meet for it: on virtual clocks it ends everywhere at one moment, and no update begins before.
TEST(Clipping, IsACollectiveOfAllRanksOnTheTimeline)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = littlePlan("1f1b", 4, 1, mode);
        plan.run.clipNorm = 0.1;
        const Outcome outcome = runPlan(plan);
        ASSERT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");
        for (int rank = 0; rank < 4; ++rank) {
            ASSERT_EQ(collectives(outcome, rank).size(), 4U); // one a step
            const Lane& compute = outcome.trace.lane(*outcome.trace.findLane(Rank{rank}, LaneKind::Compute));
            std::size_t step = 0;
            for (std::size_t i = 0; i < compute.size(); ++i) {
                if (compute.action(i).kind() != traces::ActionKind::Optimizer) continue;
                EXPECT_GE(compute.slice(i).begin, collectives(outcome, rank).slice(step).end);
                if (mode == RunMode::Emulated) {
                    EXPECT_EQ(collectives(outcome, rank).slice(step).end, collectives(outcome, 0).slice(step).end);
                }
                ++step;
            }
            EXPECT_EQ(step, 4U);
        }
        // every step, three of the four waited for the one that came last
        int waits = 0;
        for (std::size_t lane = 0; lane < outcome.trace.laneCount(); ++lane)
            for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{lane})) {
                if (outcome.trace.lane(edge.to.lane).action(edge.to.index).kind() != traces::ActionKind::Optimizer) continue;
                EXPECT_NE(outcome.trace.lane(edge.from.lane).info().rank, outcome.trace.lane(edge.to.lane).info().rank);
                EXPECT_LE(edge.ready, outcome.trace.slice(edge.to).begin);
                ++waits;
            }
        EXPECT_EQ(waits, 3 * 4);
    }
}

std::string refusalOf(const Plan& plan)
{
    const auto started = makeLocalSession()->start(plan);
    return started.ok() ? "started" : started.error().message;
}

TEST(Clipping, IsRefusedWhereWeightsChangeWithinAStep)
{
    for (const char* name : {"pipedream", "pipedream-2bw"}) {
        Plan plan = littlePlan(name, 2, 1, RunMode::Threads);
        plan.run.clipNorm = 1;
        EXPECT_THAT(refusalOf(plan), HasSubstr("run.clip_norm: schedule " + std::string(name) + " updates"));
    }
    Plan own = littlePlan("custom", 2, 1, RunMode::Threads);
    own.pipeline.microbatches = 1;
    own.pipeline.customSchedule = "0F0,0B0,0OPTIMIZER\n1F0,1B0,1OPTIMIZER\n";
    own.run.clipNorm = 1;
    EXPECT_THAT(refusalOf(own), HasSubstr("run.clip_norm: schedule custom updates"));
}

TEST(Clipping, ANormThatIsNoNumberEndsTheRun)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = preset("hello");
        plan.run.mode = mode;
        plan.run.steps = 10;
        plan.run.optimizer = OptimizerKind::Sgd;
        plan.run.learningRate = 1e9; // a loss that is still a number, of gradients whose squares are none
        plan.run.clipNorm = 1;
        const Outcome outcome = runPlan(plan);
        EXPECT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, HasSubstr("the norm of the gradients of layer "));
        EXPECT_EQ(outcome.failure->step, 1);
    }
}

TEST(LossScale, PowersOfTwoChangeNoBit)
{
    for (const char* schedule : {"1f1b", "zb-h1", "pipedream", "dualpipe"}) {
        Plan plan = littlePlan(schedule, 2, 1, RunMode::Emulated);
        plan.run.clipNorm = schedule == std::string("1f1b") ? 0.1 : 0;
        const std::vector<double> plain = resultOf(plan).loss;
        for (const double scale : {65536.0, 0x1p30}) {
            plan.run.lossScale = scale;
            const RunResult result = resultOf(plan);
            EXPECT_EQ(result.loss, plain) << schedule << " " << scale;
            EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise) << schedule << " " << scale; // the reference scales nothing
        }
    }
}

// Gradients of the first of very many layers are smaller than the smallest float with all its bits: a scaled loss keeps more of them than
// the reference does, which is no fault of the run.
TEST(LossScale, MayKeepMoreOfWhatIsNearlyNothing)
{
    Plan plan;
    plan.model.layers.assign(120, Linear{2, 2});
    plan.model.microbatchRows = 4;
    plan.costs.source = CostSource::Model;
    plan.pipeline = {.schedule = "1f1b", .ranks = 2, .microbatches = 4, .customSchedule = {}};
    plan.run = {.mode = RunMode::Emulated, .steps = 1, .check = CheckMode::All, .optimizer = OptimizerKind::Sgd, .learningRate = 1e-6, .lossScale = 1024};
    const RunResult result = resultOf(plan);
    EXPECT_EQ(result.gradientCheck, GradientCheck::Tolerance);
    EXPECT_GT(result.gradientMaxAbsDiff, 0);
    EXPECT_LT(result.gradientMaxAbsDiff, std::numeric_limits<float>::min());
}

// A stage of dropout alone has no gradient: nothing to scale back, to clip, to sum or to update.
TEST(StageWithoutParameters, GoesThroughAllThatIsDoneToGradients)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const char* schedule : {"1f1b", "zb-h1", "pipedream", "pipedream-2bw"})
            for (const OptimizerKind optimizer : {OptimizerKind::Sgd, OptimizerKind::AdamW})
                for (const auto& [replicas, sharding] : {std::pair{1, Sharding::None}, {2, Sharding::None}, {2, Sharding::Zero1}, {2, Sharding::Zero3}}) {
                    Plan plan = littlePlan(schedule, 3, 1, mode);
                    plan.model.layers.insert(plan.model.layers.begin() + 2, Dropout{0.3});
                    plan.partition = {2, 1, 2};
                    plan.run.optimizer = optimizer;
                    plan.run.steps = 2;
                    plan.run.learningRate = 0.01;
                    plan.run.lossScale = 1024;
                    plan.machine.replicas = replicas;
                    plan.pipeline.sharding = sharding;
                    if (!checkPlan(plan).ok() || !makeRunnable(plan, {}).ok()) continue; // replicas of asynchronous ones
                    for (const double norm : {0.0, 0.1}) {
                        if (norm > 0 && findFamily(schedule)->asynchronous) continue;
                        plan.run.clipNorm = norm;
                        EXPECT_EQ(resultOf(plan).gradientCheck, GradientCheck::Bitwise) << writePlan(plan);
                    }
                }
}

TEST(LossScale, AGradientThatOverflowsEndsTheRun)
{
    Plan plan = preset("hello");
    plan.run.steps = 10;
    plan.run.optimizer = OptimizerKind::Sgd;
    plan.run.learningRate = 1e4; // large gradients in the second step
    plan.run.lossScale = 0x1p120;
    const Outcome outcome = runPlan(plan);
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("is no finite number: scaled by 1.32923e+36 it is too large for 32 bits"));
    EXPECT_THAT(outcome.failure->text, HasSubstr("the gradient of layers."));
    EXPECT_TRUE(outcome.failure->rank);
}

} // namespace
} // namespace stagecraft::runtime
