// SPDX-License-Identifier: Apache-2.0
//
// Runs that learn from files.
#include "tests/engine/array_files.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>

#include <fstream>
#include <numeric>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using testing::StartsWith;

// A small GPT on the text that ships.
Plan tinyText(const std::string& schedule, int ranks, int chunks = 1)
{
    Plan plan;
    plan.name = "tiny";
    plan.model.layers = {Embedding{64, 16, 16}, TransformerBlock{16, 2, 32}, TransformerBlock{16, 2, 32}, Head{16, 64}};
    plan.model.loss = Loss::CrossEntropy;
    plan.model.microbatchRows = 2;
    plan.pipeline = {schedule, ranks, chunks, 4, ""};
    plan.costs.source = CostSource::Model;
    plan.data.source = DataSource::Text;
    plan.run.steps = 4;
    plan.run.check = CheckMode::All;
    plan.run.learningRate = 1e-2;
    return plan;
}

RunResult resultOf(const Plan& plan)
{
    const Outcome outcome = runPlan(plan);
    EXPECT_FALSE(outcome.failure) << outcome.failure->text;
    EXPECT_TRUE(outcome.result);
    return outcome.result.value_or(RunResult{});
}

class EveryWay : public testing::TestWithParam<std::pair<const char*, RunMode>> {};

// The check compares every step with the sequential model on the batch of that step; the losses are the same to the bit on one rank.
TEST_P(EveryWay, TakesAnotherBatchInEveryStepAsItsCheckDoes)
{
    const auto& [schedule, mode] = GetParam();
    const bool pairs = std::string_view(schedule) == "zb-v";
    Plan plan = tinyText(schedule, 2, pairs ? 2 : 1);
    plan.run.mode = mode;
    const RunResult result = resultOf(plan);
    EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(result.loss, resultOf(tinyText("gpipe", 1)).loss);
    ASSERT_TRUE(result.text);
    EXPECT_NEAR(result.text->entropy, 2.9375, 1e-4); // counted over the file by another program
    EXPECT_THAT(result.text->before, StartsWith("THE LINE\n\nThere "));
    EXPECT_THAT(result.text->after, StartsWith("THE LINE\n\nThere "));
    EXPECT_NE(result.text->before, result.text->after);
    EXPECT_EQ(result.text->after.size(), 240U); // one byte for each of its characters
}

INSTANTIATE_TEST_SUITE_P(TextRun, EveryWay,
                         testing::Values(std::pair{"1f1b", RunMode::Threads}, std::pair{"gpipe", RunMode::Emulated}, std::pair{"zb-v", RunMode::Threads},
                                         std::pair{"zb-h1", RunMode::Emulated}),
                         [](const auto& test) {
                             std::string name = test.param.first;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name + "_" + std::string(runModeText(test.param.second));
                         });

TEST(TextRun, SamplesTheSameForTheSameWeightsWhateverTheSchedule)
{
    const RunResult one = resultOf(tinyText("gpipe", 1));
    const RunResult two = resultOf(tinyText("1f1b", 2));
    EXPECT_EQ(one.text, two.text);
    Plan seeded = tinyText("1f1b", 2);
    seeded.run.seed = 2;
    EXPECT_NE(resultOf(seeded).text->before, two.text->before);
}

// Asynchronous schedules are compared with a re-enactment that takes the same batches; two directions share one batch.
TEST(TextRun, GoesWithAsynchronousSchedulesAndTwoDirections)
{
    EXPECT_EQ(resultOf(tinyText("pipedream", 2)).gradientCheck, GradientCheck::Bitwise);
    EXPECT_NE(resultOf(tinyText("dualpipe", 2)).gradientCheck, GradientCheck::Failed);
}

// Two replicas take a part of the batch each, as two times as many micro-batches of one pipeline would.
TEST(TextRun, DividesTheBatchAmongReplicas)
{
    Plan two = tinyText("1f1b", 2);
    two.machine.replicas = 2;
    Plan one = tinyText("1f1b", 2);
    one.pipeline.microbatches *= 2;
    const RunResult replicated = resultOf(two);
    EXPECT_NE(replicated.gradientCheck, GradientCheck::Failed);
    EXPECT_DOUBLE_EQ(replicated.loss.front(), resultOf(one).loss.front());
}

// There is nothing to draw the next token from, and the reason is the loss.
TEST(TextRun, SaysThatItDivergedAndNotThatItCannotSample)
{
    Plan plan = tinyText("1f1b", 2);
    plan.run.learningRate = 1e30;
    plan.run.optimizer = OptimizerKind::Sgd;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("diverged"));
}

// Four steps, and two steps and two more from their checkpoint: the same batches, so the same losses to the bit.
TEST(TextRun, GoesOnAtItsPlaceInTheData)
{
    const traces::test::TemporaryFolder folder;
    const RunResult whole = resultOf(tinyText("1f1b", 2));
    Plan half = tinyText("1f1b", 2);
    half.run.steps = 2;
    half.run.checkpoint = folder.file("kept");
    resultOf(half);
    Plan rest = tinyText("gpipe", 1);
    rest.run.resume = folder.file("kept");
    const RunResult resumed = resultOf(rest);
    ASSERT_EQ(resumed.loss.size(), 2U);
    EXPECT_EQ(resumed.loss[0], whole.loss[2]);
    EXPECT_EQ(resumed.loss[1], whole.loss[3]);
    EXPECT_EQ(resumed.gradientCheck, GradientCheck::Bitwise);
}

TEST(TextRun, RefusesAModelThatKnowsTooFewTokens)
{
    Plan plan = tinyText("1f1b", 2);
    plan.model.layers.front() = Embedding{50, 16, 16};
    const auto started = makeLocalSession()->start(plan);
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, HasSubstr("the text has 58 different tokens, and the model an embedding for 50"));
}

// 64 samples of y = Wx with a fixed W: a linear model must learn it, and only from the files can it know.
TEST(ArrayRun, LearnsWhatTheFilesSay)
{
    const traces::test::TemporaryFolder folder;
    std::vector<float> in;
    std::vector<float> out;
    for (int i = 0; i < 64; ++i) {
        const float a = static_cast<float>(i % 8) / 4 - 1;
        const float b = static_cast<float>(i / 8) / 4 - 1;
        in.insert(in.end(), {a, b});
        out.insert(out.end(), {2 * a - b, a + 3 * b});
    }
    std::ofstream(folder.file("in.npy"), std::ios::binary) << stagecraft::test::npyOf("<f4", "(64, 2)", in);
    std::ofstream(folder.file("out.npy"), std::ios::binary) << stagecraft::test::npyOf("<f4", "(64, 2)", out);
    Plan plan;
    plan.name = "line";
    plan.model.layers = {Linear{2, 8}, Linear{8, 2}};
    plan.model.microbatchRows = 8;
    plan.pipeline = {"1f1b", 2, 1, 4, ""};
    plan.data = {.source = DataSource::Npy, .path = folder.file("in.npy"), .targets = folder.file("out.npy")};
    plan.run.steps = 120;
    plan.run.learningRate = 0.05;
    const RunResult result = resultOf(plan);
    EXPECT_GT(result.loss.front(), 1);
    EXPECT_LT(result.loss.back(), 0.01);
    EXPECT_FALSE(result.text);
}

// Images of four patterns in the files of MNIST's form, a byte for a pixel and one for a class: plain, upright stripes, lying ones, a
// chequerboard; brighter and darker, and shifted. A small ResNet in three stages tells them apart.
TEST(ArrayRun, ClassifiesImagesFromIdxFiles)
{
    const traces::test::TemporaryFolder folder;
    constexpr int kSide = 8;
    std::vector<std::uint8_t> pixels;
    std::vector<std::uint8_t> classes;
    for (int i = 0; i < 64; ++i) {
        const int pattern = i % 4;
        const int shift = i / 4 % 2;
        const int bright = 120 + i;
        classes.push_back(static_cast<std::uint8_t>(pattern));
        for (int y = 0; y < kSide; ++y)
            for (int x = 0; x < kSide; ++x) {
                const bool on = pattern == 0 || (((pattern & 1) * x + (pattern >> 1) * y + shift) % 2 == 0);
                pixels.push_back(static_cast<std::uint8_t>(on ? bright : 20));
            }
    }
    std::ofstream(folder.file("images.idx"), std::ios::binary) << stagecraft::test::idxOfBytes({64, kSide, kSide}, pixels);
    std::ofstream(folder.file("classes.idx"), std::ios::binary) << stagecraft::test::idxOfBytes({64}, classes);
    Plan plan;
    plan.model.layers = {Convolution{.in = 1, .out = 8}, ResidualBlock{.in = 8, .out = 8}, PooledHead{8, 4}};
    plan.model.image = ImageSize{1, kSide, kSide};
    plan.model.loss = Loss::CrossEntropy;
    plan.model.microbatchRows = 8;
    plan.pipeline = {"1f1b", 3, 1, 4, ""};
    plan.data = {.source = DataSource::Idx, .path = folder.file("images.idx"), .targets = folder.file("classes.idx")};
    plan.run.steps = 60;
    plan.run.learningRate = 0.02;
    const RunResult result = resultOf(plan);
    EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise);
    EXPECT_GT(result.loss.front(), 1); // ln 4 is chance
    EXPECT_LT(result.loss.back(), 0.1);
}

TEST(ArrayRun, NamesTheFileThatIsNotThere)
{
    Plan plan;
    plan.model.layers = {Linear{2, 8}, Linear{8, 2}};
    plan.pipeline = {"1f1b", 2, 1, 4, ""};
    plan.data = {.source = DataSource::Npy, .path = "/nowhere/in.npy", .targets = "/nowhere/out.npy"};
    const auto started = makeLocalSession()->start(plan);
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, HasSubstr("/nowhere/in.npy"));
}

} // namespace
} // namespace stagecraft::runtime
