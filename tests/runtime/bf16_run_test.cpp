// SPDX-License-Identifier: Apache-2.0
//
// Runs in bfloat16 beside those in float32. That every schedule has the sequential model's gradients in bfloat16 too, every model, and what
// is held, are cases of the suites for float32; here is what is of bfloat16 alone.
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/runtime/runnable.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using traces::test::TemporaryFolder;

Plan inBf16(const std::string& schedule, int ranks, int chunks, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.run.precision = Precision::Bf16;
    return plan;
}

RunResult resultOf(const Plan& plan)
{
    const Outcome outcome = runPlan(plan);
    EXPECT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    return outcome.result.value_or(RunResult{});
}

// The same weights but for their rounding, the same data. The bound is half a percent of the loss at every one of 60 steps, in which it
// falls to less than half.
TEST(Bf16Run, LearnsAsFloat32Does)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    plan.run.steps = 60;
    plan.run.check = CheckMode::Off;
    plan.run.learningRate = 3e-3;
    const std::vector<double> fine = resultOf(plan).loss;
    plan.run.precision = Precision::Bf16;
    const std::vector<double> coarse = resultOf(plan).loss;
    ASSERT_EQ(coarse.size(), fine.size());
    EXPECT_NE(coarse, fine);
    EXPECT_LT(fine.back(), 0.5 * fine.front());
    for (std::size_t step = 0; step < fine.size(); ++step) EXPECT_NEAR(coarse[step], fine[step], 0.005 * fine.front()) << "step " << step;
}

// As float32: what a checkpoint has under each name.
std::map<std::string, std::vector<float>> valuesOf(const TensorFile& file)
{
    std::map<std::string, std::vector<float>> all;
    for (const auto& [name, entry] : file.tensors()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(entry.end - entry.begin));
        EXPECT_TRUE(file.read(name, bytes).ok());
        const bool coarse = entry.info.type == TensorType::BF16;
        for (std::size_t at = 0; at < bytes.size(); at += coarse ? 2 : 4) {
            std::uint32_t bits = 0;
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), coarse ? 2 : 4, reinterpret_cast<std::byte*>(&bits));
            all[name].push_back(std::bit_cast<float>(coarse ? bits << 16 : bits));
        }
    }
    return all;
}

// To the nearest, of two as near the even one.
float rounded(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000);
}

// Adam moves each weight by about the learning rate in its first steps, here a thousandth of what bfloat16 can tell of most weights.
TEST(Bf16Run, AddsUpStepsThatAreTooSmallForItsWeights)
{
    const TemporaryFolder folder;
    Plan plan = inBf16("1f1b", 2, 1, RunMode::Emulated);
    plan.run.learningRate = 1e-6;
    plan.run.weightDecay = 0;
    plan.run.steps = 8;
    plan.run.checkpoint = folder.file("run");
    plan.run.checkpointEvery = 1;
    resultOf(plan);
    const Checkpoint first = openCheckpoint(folder.file("run/step-0000001")).value();
    const Checkpoint last = openCheckpoint(folder.file("run/step-0000008")).value();
    const auto weights = valuesOf(last.weights);
    const auto kept = valuesOf(last.optimizer);
    const auto keptBefore = valuesOf(first.optimizer);
    std::size_t moved = 0;
    std::size_t all = 0;
    for (const auto& [name, values] : weights) {
        const std::vector<float>& main = kept.at(name + ".fp32_param");
        const std::vector<float>& before = keptBefore.at(name + ".fp32_param");
        ASSERT_EQ(main.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(values[i], rounded(main[i])) << name << " " << i;
            moved += main[i] != before[i] ? 1 : 0;
        }
        all += values.size();
    }
    EXPECT_GT(moved, all / 2); // norms' factors are 1, where a float32 tells 6e-8
    const std::string qkv = "layers.1.qkv.weight";
    EXPECT_EQ(valuesOf(first.weights).at("layers.1.norm1.weight"), weights.at("layers.1.norm1.weight")); // still 1
    const auto far = [&](const std::vector<float>& main, const std::vector<float>& from) {
        double sum = 0;
        for (std::size_t i = 0; i < main.size(); ++i) sum += std::abs(static_cast<double>(main[i]) - from[i]);
        return sum / static_cast<double>(main.size());
    };
    EXPECT_NEAR(far(kept.at(qkv + ".fp32_param"), keptBefore.at(qkv + ".fp32_param")), 7e-6, 3e-6); // seven steps, nearly all one way
}

TEST(Bf16Run, KeepsWeightsInBfloat16AndWhatIsUpdatedInFloat32)
{
    const TemporaryFolder folder;
    Plan plan = inBf16("1f1b", 2, 1, RunMode::Threads);
    plan.run.checkpoint = folder.file("run");
    resultOf(plan);
    const Checkpoint checkpoint = openCheckpoint(folder.file("run")).value();
    EXPECT_EQ(checkpoint.weights.tensors().at("layers.2.qkv.weight").info, (TensorInfo{"layers.2.qkv.weight", TensorType::BF16, {96, 32}}));
    for (const auto& [name, entry] : checkpoint.weights.tensors()) EXPECT_EQ(entry.info.type, TensorType::BF16) << name;
    for (const auto& [name, entry] : checkpoint.optimizer.tensors()) EXPECT_EQ(entry.info.type, TensorType::F32) << name;
    EXPECT_EQ(checkpoint.optimizer.tensors().size(), 4 * checkpoint.weights.tensors().size()); // main copy, two moments, number of steps

    // and another precision cannot go on from it
    plan.run.resume = folder.file("run");
    plan.run.steps = 9;
    EXPECT_TRUE(makeRunnable(plan, {}).ok());
    plan.run.precision = Precision::Fp32;
    const auto refused = makeRunnable(plan, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("has weights of bf16, and the run takes fp32; take the same"));
}

// Sums of gradients of bfloat16 are float32, so replicas lose nothing.
TEST(Bf16Run, TrainsInReplicasWithTheGradientsOfTheWholeBatch)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const auto& [schedule, ranks, chunks] : {std::tuple{"1f1b", 2, 1}, {"zb-h1", 2, 1}, {"interleaved", 2, 2}, {"dualpipe", 4, 1}}) {
            Plan plan = inBf16(schedule, ranks, chunks, mode);
            plan.pipeline.microbatches = 8;
            plan.machine.replicas = 2;
            plan.machine.bucketBytes = 16 << 10;
            plan.run.steps = 2;
            EXPECT_EQ(resultOf(plan).gradientCheck, GradientCheck::Bitwise) << schedule;
        }
}

TEST(Bf16Run, TiesEmbeddingsAlikeWhereverTheTwoEndsLie)
{
    std::vector<double> expected;
    for (const int ranks : {1, 2, 4})
        for (const char* schedule : {"1f1b", "zb-h1"}) {
            Plan plan = inBf16(schedule, ranks, 1, RunMode::Threads);
            plan.model.tiedEmbeddings = true;
            const RunResult result = resultOf(plan);
            EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise) << schedule << " on " << ranks;
            if (expected.empty()) expected = result.loss;
            EXPECT_EQ(result.loss, expected) << schedule << " on " << ranks;
        }
}

// bfloat16 has the exponents of float32: a power of two changes no bit here either.
TEST(Bf16Run, ClipsAndScalesAsFloat32Does)
{
    for (const char* schedule : {"1f1b", "zb-h1", "gpipe"}) {
        Plan plan = inBf16(schedule, 2, 1, RunMode::Emulated);
        plan.run.clipNorm = 0.05;
        const RunResult plain = resultOf(plan);
        EXPECT_EQ(plain.gradientCheck, GradientCheck::Bitwise) << schedule;
        plan.run.lossScale = 1024;
        const RunResult scaled = resultOf(plan);
        EXPECT_EQ(scaled.gradientCheck, GradientCheck::Bitwise) << schedule;
        EXPECT_EQ(scaled.loss, plain.loss) << schedule;
    }
}

// Slices and halves of micro-batches round by themselves, as they do in float32, and more of it shows.
TEST(Bf16Run, TrainsOnPartsOfMicroBatchesUpToRounding)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan slices = inBf16("seq1f1b", 2, 1, mode);
        slices.pipeline.slices = 3;
        Plan halves = inBf16("chimera", 4, 1, mode);
        halves.pipeline.microbatches = 8;
        halves.pipeline.concatenation = Concatenation::Halving;
        for (const Plan& plan : {slices, halves}) EXPECT_EQ(resultOf(plan).gradientCheck, GradientCheck::Tolerance) << plan.pipeline.schedule;
    }
}

// A gradient that is wrong is found, coarse as the numbers are.
TEST(Bf16Run, FindsAWrongGradient)
{
    LocalSessionOptions options;
    options.fault = InjectedFault{InjectedFault::Kind::WrongGradient, traces::ActionKind::Backward, traces::Stage{0}, traces::MicroBatch{1},
                                  traces::Step{0}, 1};
    const Outcome outcome = runPlan(inBf16("1f1b", 2, 1, RunMode::Threads), options);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("gradient check failed in step 0"));
}

TEST(Bf16Run, LearnsFromFilesAndWritesASample)
{
    Plan plan = preset("gpt-text");
    plan.run.steps = 1;
    plan.run.precision = Precision::Bf16;
    const RunResult result = resultOf(plan);
    EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise);
    ASSERT_TRUE(result.text);
    EXPECT_FALSE(result.text->after.empty());
}

} // namespace
} // namespace stagecraft::runtime
