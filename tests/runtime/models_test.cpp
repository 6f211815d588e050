// SPDX-License-Identifier: Apache-2.0
//
// Whole runs of every kind of model under schedules of every kind: with the gradients of the sequential model, to the bit.
#include "tests/runtime/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;

std::string scripted(int stage) { return std::string(STAGECRAFT_TEST_DATA) + "/torchscript/stage_" + std::to_string(stage) + ".pt"; }

// Each has four layers, or more.
ModelSpec modelNamed(const std::string& name)
{
    if (name == "resnet")
        return {.layers = {Convolution{.in = 1, .out = 8}, ResidualBlock{.in = 8, .out = 8}, ResidualBlock{.in = 8, .out = 16, .stride = 2},
                           PooledHead{16, 5}},
                .image = ImageSize{1, 8, 8},
                .loss = Loss::CrossEntropy,
                .microbatchRows = 2};
    if (name == "dropout")
        return {.layers = {Linear{12, 12, Activation::Gelu}, Dropout{0.3}, Linear{12, 12}, Dropout{0.6}, Linear{12, 5}}, .microbatchRows = 4};
    if (name == "random_script")
        return {.layers = {TorchScript{.file = scripted(2), .in = {6}, .out = {8}, .parameters = 56}, Linear{8, 8}, Linear{8, 8}, Linear{8, 4}},
                .microbatchRows = 4};
    if (name == "torchscript")
        return {.layers = {TorchScript{.file = scripted(0), .in = {6}, .out = {8}, .parameters = 136}, Linear{8, 8, Activation::Gelu}, Linear{8, 8},
                           TorchScript{.file = scripted(1), .in = {8}, .out = {4}, .parameters = 52}},
                .microbatchRows = 3};
    if (name == "synthetic")
        return {.layers = {Synthetic{.in = 9, .out = 20, .flops = 1e5, .activationBytes = 3000, .parameters = 500},
                           Synthetic{.in = 20, .out = 20, .flops = 2e5, .activationBytes = 100, .parameters = 50}, Synthetic{.in = 20, .out = 6},
                           Synthetic{.in = 6, .out = 6, .parameters = 6}},
                .microbatchRows = 2};
    TransformerBlock block{.dim = 32, .heads = 4, .ffn = 40, .keyValueHeads = 2, .positions = Positions::Rotary, .feedForward = FeedForward::SwiGlu};
    return {.layers = {Embedding{50, 12, 32, Positions::Rotary}, block, block, Head{32, 50}}, .loss = Loss::CrossEntropy, .microbatchRows = 2};
}

Plan planOf(const std::string& model, const std::string& schedule, RunMode mode)
{
    Plan plan;
    plan.name = model;
    plan.model = modelNamed(model);
    const ScheduleFamily* family = findFamily(schedule);
    const int chunks = family->minChunks;
    plan.pipeline = {.schedule = schedule, .ranks = chunks == 2 ? 2 : 4, .chunks = chunks, .microbatches = 8, .customSchedule = {}};
    plan.costs.source = CostSource::Model;
    plan.run = {.mode = mode, .steps = 2, .check = CheckMode::All, .learningRate = 0.01};
    return plan;
}

class EveryModel : public testing::TestWithParam<std::tuple<std::string, std::string, Precision>> {};

TEST_P(EveryModel, TrainsWithTheGradientsOfTheSequentialModel)
{
    const auto& [model, schedule, precision] = GetParam();
    std::vector<double> losses;
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
            Plan plan = planOf(model, schedule, mode);
            plan.pipeline.recompute = recompute;
            plan.run.precision = precision;
            const Outcome outcome = runPlan(plan);
            ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
            EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
            if (model != "random_script" && model != "dropout") { // what drops out in a step weighs more there than what was learnt in the one before
                EXPECT_LT(outcome.result->loss[1], outcome.result->loss[0]);
            }
            if (losses.empty()) losses = outcome.result->loss;
            EXPECT_EQ(outcome.result->loss, losses);
            EXPECT_EQ(outcome.result->outputs.front(), outputShape(plan.model, plan.model.microbatchRows * plan.pipeline.microbatches));
            for (const traces::MemorySeries& series : outcome.trace.memory())
                if (series.memory == traces::MemoryClass::Activations || series.memory == traces::MemoryClass::Gradients) {
                    EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
                }
        }
}

INSTANTIATE_TEST_SUITE_P(Runtime, EveryModel,
                         testing::Combine(testing::Values("resnet", "torchscript", "synthetic", "gpt", "dropout", "random_script"),
                                          testing::Values("1f1b", "zb-h1", "interleaved-zb", "zb-v", "dualpipe-v", "dualpipe", "pipedream"),
                                          testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto& each) {
                             std::string name = std::get<0>(each.param) + "_" + std::get<1>(each.param);
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name + (std::get<2>(each.param) == Precision::Bf16 ? "_bf16" : "");
                         });

// A replica's gradients may be sent as soon as they are whole, which with a split graph is in W.
TEST(Models, TrainInReplicasThatSplitTheirGraphs)
{
    for (const char* schedule : {"zb-h1", "interleaved-zb"}) {
        Plan plan = planOf("resnet", schedule, RunMode::Threads);
        plan.machine.replicas = 2;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    }
}

// Rotary positions and grouped queries go with slices: each turns by its place in the whole sequence.
TEST(Models, TrainOnSlicesWithRotaryPositions)
{
    Plan plan = planOf("gpt", "seq1f1b", RunMode::Threads);
    plan.pipeline.slices = 3;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Tolerance);
    EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-6);
}

TEST(Models, SayWhatCannotBeCutIntoSlices)
{
    Plan plan = planOf("gpt", "seq1f1b", RunMode::Threads);
    plan.pipeline.slices = 2;
    plan.model.layers[1] = TorchScript{.file = "block.pt", .in = {12, 32}, .out = {12, 32}, .parameters = 5};
    const auto refused = makeLocalSession()->start(plan);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, testing::HasSubstr("and TorchScript block.pt takes them whole: take 1 slice"));
}

// A stage may have nothing but dropout: it has no weights, and its actions are like those of others.
TEST(Models, TrainWithAStageThatHasNoWeights)
{
    for (const char* schedule : {"1f1b", "zb-h1"}) {
        Plan plan = planOf("dropout", schedule, RunMode::Threads);
        plan.pipeline.ranks = 5;
        plan.pipeline.microbatches = 10;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    }
}

// What drops out follows from the data's place alone: slices, halves, replicas and every schedule train alike.
TEST(Models, DropOutAlikeInEveryPipeline)
{
    Plan plan = planOf("gpt", "1f1b", RunMode::Threads);
    plan.model.layers.insert(plan.model.layers.begin() + 2, Dropout{0.4});
    plan.model.microbatchRows = 4;
    const std::vector<double> expected = runPlan(plan).result->loss;
    const auto expectNear = [&](const Plan& other, GradientCheck check) {
        const Outcome outcome = runPlan(other);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_LE(outcome.result->gradientCheck, check);
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(outcome.result->loss[i], expected[i], 1e-4);
    };
    Plan other = plan;
    other.pipeline.schedule = "seq1f1b";
    other.pipeline.slices = 3;
    expectNear(other, GradientCheck::Tolerance);
    other.pipeline.recompute = Recompute::Full;
    expectNear(other, GradientCheck::Tolerance);
    other = plan;
    other.pipeline.schedule = "chimera";
    other.pipeline.concatenation = Concatenation::Halving;
    expectNear(other, GradientCheck::Tolerance);
    other = plan;
    other.machine.replicas = 2;
    other.pipeline.microbatches = 4;
    other.run.mode = RunMode::Emulated;
    expectNear(other, GradientCheck::Bitwise);
    other = plan;
    other.pipeline.schedule = "zb-v";
    other.pipeline.chunks = 2;
    other.pipeline.ranks = 2;
    expectNear(other, GradientCheck::Bitwise);
}

// A module from a file draws for whole micro-batches.
TEST(Models, SayWhenAFileCannotDrawForHalves)
{
    Plan plan = planOf("random_script", "chimera", RunMode::Threads);
    plan.pipeline.concatenation = Concatenation::Halving;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("for a half of a micro-batch it would draw otherwise than for the whole"));
}

TEST(Models, NameAFileThatCannotBeLoaded)
{
    Plan plan = planOf("torchscript", "1f1b", RunMode::Threads);
    std::get<TorchScript>(plan.model.layers[3]).file = "/nowhere/stage_3.pt";
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("/nowhere/stage_3.pt: there is no such file"));
}

} // namespace
} // namespace stagecraft::runtime
