// SPDX-License-Identifier: Apache-2.0
//
// Runs that are cut in two by a checkpoint, and go on as another pipeline of the same model: as if nothing had been.
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/plan/plan_words.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/runnable.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <csignal>
#include <map>

#include <sys/resource.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using traces::test::TemporaryFolder;

constexpr int kSteps = 7;
constexpr int kCut = 3;

Plan trained(OptimizerKind optimizer = OptimizerKind::AdamW)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Emulated);
    plan.run.steps = kSteps;
    plan.run.optimizer = optimizer;
    plan.run.learningRate = 0.01;
    plan.run.rateCourse = RateCourse::Cosine; // of which a run that goes on must know where it is
    plan.run.warmupSteps = 2;
    return plan;
}

Plan shaped(Plan plan, const std::string& schedule, int ranks, int chunks, RunMode mode)
{
    plan.pipeline.schedule = schedule;
    plan.pipeline.ranks = ranks;
    plan.pipeline.chunks = chunks;
    plan.run.mode = mode;
    return plan;
}

Outcome finished(const Plan& plan)
{
    Outcome outcome = runPlan(plan);
    EXPECT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_TRUE(outcome.result);
    if (!outcome.result) outcome.result.emplace();
    return outcome;
}

using Tensors = std::map<std::string, std::vector<float>>;

// As float32, whatever they are kept in.
Tensors tensorsOf(const TensorFile& file)
{
    Tensors all;
    for (const auto& [name, entry] : file.tensors()) {
        std::vector<float>& values = all[name];
        const auto bytes = static_cast<std::size_t>(entry.end - entry.begin);
        if (entry.info.type == TensorType::BF16) {
            std::vector<std::uint16_t> coarse(bytes / sizeof(std::uint16_t));
            EXPECT_TRUE(file.read(name, std::as_writable_bytes(std::span(coarse))).ok());
            for (const std::uint32_t each : coarse) values.push_back(std::bit_cast<float>(each << 16));
            continue;
        }
        values.resize(bytes / sizeof(float));
        EXPECT_TRUE(file.read(name, std::as_writable_bytes(std::span(values))).ok());
    }
    return all;
}

struct End {
    std::vector<double> loss;
    Tensors weights, optimizer; // after the last step
};

// A run that leaves its end in a folder.
End endOf(Plan plan, const std::filesystem::path& folder)
{
    plan.run.checkpoint = folder;
    const Outcome outcome = finished(plan);
    const Expected<Checkpoint> last = openCheckpoint(folder);
    EXPECT_TRUE(last.ok()) << last.error().message;
    if (!last.ok()) return {};
    EXPECT_EQ(last.value().step, plan.run.steps);
    return {outcome.result->loss, tensorsOf(last.value().weights), tensorsOf(last.value().optimizer)};
}

End resumed(Plan plan, const std::filesystem::path& from, const std::filesystem::path& folder)
{
    plan.run.resume = from;
    return endOf(std::move(plan), folder);
}

std::vector<double> lastOf(const std::vector<double>& all, std::size_t count) { return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()}; }

class EveryOptimizer : public testing::TestWithParam<std::tuple<OptimizerKind, Precision>> {};
INSTANTIATE_TEST_SUITE_P(Checkpoint, EveryOptimizer,
                         testing::Combine(testing::Values(OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::AdamW),
                                          testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto& test) {
                             return std::string(wordOf(kOptimizerWords, std::get<0>(test.param))) + "_" +
                                    std::string(wordOf(kPrecisionWords, std::get<1>(test.param)));
                         });

// Schedules of F and B in one direction add up the gradients of the micro-batches in one order: then every bit is the same.
TEST_P(EveryOptimizer, GoesOnInAnotherShapeToTheBit)
{
    const TemporaryFolder folder;
    Plan plan = trained(std::get<0>(GetParam()));
    plan.run.precision = std::get<1>(GetParam());
    const End straight = endOf(shaped(plan, "1f1b", 2, 1, RunMode::Emulated), folder.file("straight"));
    ASSERT_EQ(straight.loss.size(), static_cast<std::size_t>(kSteps));

    Plan firstPart = shaped(plan, "gpipe", 2, 1, RunMode::Threads);
    firstPart.run.checkpoint = folder.file("cut");
    firstPart.run.checkpointEvery = kCut;
    finished(firstPart); // all the way: the checkpoint in its midst must not disturb it
    const std::filesystem::path cut = folder.file("cut/step-0000003");
    struct Shape {
        std::string schedule;
        int ranks, chunks;
        RunMode mode;
    };
    for (const Shape& shape : {Shape{"naive", 1, 1, RunMode::Emulated}, Shape{"1f1b", 4, 1, RunMode::Threads}, Shape{"interleaved", 2, 2, RunMode::Emulated},
                               Shape{"1f1b-v", 2, 2, RunMode::Threads}}) {
        SCOPED_TRACE(shape.schedule);
        const End end = resumed(shaped(plan, shape.schedule, shape.ranks, shape.chunks, shape.mode), cut, folder.file(shape.schedule));
        EXPECT_EQ(end.loss, lastOf(straight.loss, kSteps - kCut));
        EXPECT_EQ(end.weights, straight.weights);
        EXPECT_EQ(end.optimizer, straight.optimizer);
    }
}

// The names and shapes of its weights may be the same.
TEST(Checkpoint, OfAnotherModelIsRefused)
{
    const TemporaryFolder folder;
    endOf(shaped(trained(), "1f1b", 2, 1, RunMode::Emulated), folder.file("run"));
    const auto refusal = [&](const std::function<void(Plan&)>& change) {
        Plan plan = trained();
        change(plan);
        plan.run.resume = folder.file("run/step-0000007");
        plan.run.steps = kSteps + 1;
        const auto made = makeRunnable(plan, {});
        return made.ok() ? std::string("runs") : made.error().message;
    };
    EXPECT_EQ(refusal([](Plan&) {}), "runs");
    const auto block = [](Plan& plan) -> TransformerBlock& { return std::get<TransformerBlock>(plan.model.layers[1]); };
    EXPECT_THAT(refusal([&](Plan& plan) { block(plan).heads = 4; }),
                testing::HasSubstr("is of another model: layer 1 is Block d=32, 2 heads, and the plan's is Block d=32, 4 heads. Take the model"));
    EXPECT_THAT(refusal([&](Plan& plan) { std::get<Embedding>(plan.model.layers[0]).sequence /= 2; }),
                testing::HasSubstr("layer 0 is Embedding 50×32 with other numbers, and the plan's is Embedding 50×32"));
    EXPECT_THAT(refusal([&](Plan& plan) { plan.model.layers.erase(plan.model.layers.begin() + 1); }), testing::HasSubstr("the number of its layers is 4, and the plan's is 3"));
    EXPECT_THAT(refusal([](Plan& plan) { plan.model.tiedEmbeddings = true; }), testing::HasSubstr("its table of tokens is not tied, and the plan's is tied"));
}

// A table that the first and the last stage have a copy of each stands in the checkpoint once.
TEST(Checkpoint, ATiedTableIsKeptOnceAndGoesWhereItIsNeeded)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.model.tiedEmbeddings = true;
    plan.run.checkpointEvery = kCut;
    const End straight = endOf(shaped(plan, "1f1b", 4, 1, RunMode::Threads), folder.file("straight"));
    EXPECT_TRUE(straight.weights.contains("layers.0.tokens"));
    EXPECT_FALSE(straight.weights.contains("layers.3.linear.weight"));
    for (const int ranks : {1, 4}) {
        const End end = resumed(shaped(plan, "gpipe", ranks, 1, RunMode::Emulated), folder.file("straight/step-0000003"),
                                folder.file("on " + std::to_string(ranks)));
        EXPECT_EQ(end.loss, lastOf(straight.loss, kSteps - kCut));
        EXPECT_EQ(end.weights, straight.weights);
        EXPECT_EQ(end.optimizer, straight.optimizer);
    }
}

double largestDifference(const Tensors& found, const Tensors& expected)
{
    double largest = 0;
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, values] : expected)
        for (std::size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(found.at(name)[i]) - values[i]));
    return largest;
}

// Whether every stage adds up its gradients from the first micro-batch to the last, and takes whole ones in one direction.
bool addsUpInOrder(const Schedule& schedule)
{
    if (schedule.twoDirections() || schedule.slices > 1) return false;
    const std::vector<Place> all = places(schedule);
    return std::all_of(all.begin(), all.end(), [&](const Place& place) {
        const std::vector<int> order = dutiesOf(schedule, place).gradientOrder;
        return std::is_sorted(order.begin(), order.end());
    });
}

// A synchronous family that is cut goes on as it was to the bit. To another one it is the same to the bit where both add up in one order,
// and up to rounding otherwise.
class EveryFamilyCut : public testing::TestWithParam<std::string> {};

TEST_P(EveryFamilyCut, GoesOnAsItWasToTheBitAndAsAnotherUpToTheOrderOfItsSums)
{
    const std::string& name = GetParam();
    const TemporaryFolder folder;
    Plan base = trained(OptimizerKind::Momentum);
    base.run.check = CheckMode::First;
    const Plan other = shaped(base, "1f1b", 2, 1, RunMode::Threads);
    const int ranks = name == "chimera" ? 4 : 2;
    Plan plan = shaped(base, name, ranks, findFamily(name)->minChunks, RunMode::Emulated);
    if (name == "seq1f1b") plan.pipeline.slices = 2;
    Plan whole = plan;
    whole.run.checkpointEvery = kCut;
    const End straight = endOf(whole, folder.file("straight"));
    const std::filesystem::path cut = folder.file("straight/step-0000003");

    const End again = resumed(plan, cut, folder.file("again"));
    EXPECT_EQ(again.loss, lastOf(straight.loss, kSteps - kCut));
    EXPECT_EQ(again.weights, straight.weights);
    EXPECT_EQ(again.optimizer, straight.optimizer);

    const End plain = endOf(other, folder.file("plain"));
    const End asAnother = resumed(other, cut, folder.file("as-another"));
    if (addsUpInOrder(scheduleOf(plan).value())) EXPECT_EQ(asAnother.weights, plain.weights);
    else EXPECT_LT(largestDifference(asAnother.weights, plain.weights), 1e-5);
}

std::vector<std::string> synchronousFamilies()
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies())
        if (!family.asynchronous && family.name != "bpipe" && family.name != "forward-only") names.push_back(family.name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, EveryFamilyCut, testing::ValuesIn(synchronousFamilies()), [](const auto& test) {
    std::string name = test.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

// What an asynchronous run holds at the end of a step is its newest weights; the check goes on from the checkpoint by itself.
TEST(Checkpoint, AnAsynchronousRunGoesOnToTheBit)
{
    for (const char* name : {"pipedream", "pipedream-2bw"}) {
        const TemporaryFolder folder;
        Plan plan = shaped(trained(OptimizerKind::Adam), name, 2, 1, RunMode::Emulated);
        plan.run.checkpointEvery = kCut;
        const End straight = endOf(plan, folder.file("straight"));
        plan.run.mode = RunMode::Threads;
        const End again = resumed(plan, folder.file("straight/step-0000003"), folder.file("again"));
        EXPECT_EQ(again.loss, lastOf(straight.loss, kSteps - kCut)) << name;
        EXPECT_EQ(again.weights, straight.weights) << name;
        EXPECT_EQ(again.optimizer, straight.optimizer) << name;
    }
}

TEST(Checkpoint, HoldsEveryParameterByItsPlaceInTheModel)
{
    const TemporaryFolder folder;
    const End end = endOf(trained(), folder.file("runs"));
    const Expected<Checkpoint> checkpoint = openCheckpoint(folder.file("runs"));
    const auto infoOf = [&](const char* name) { return checkpoint.value().weights.tensors().at(name).info; };
    EXPECT_EQ(infoOf("layers.0.tokens"), (TensorInfo{"layers.0.tokens", TensorType::F32, {50, 32}}));
    EXPECT_EQ(infoOf("layers.2.qkv.weight"), (TensorInfo{"layers.2.qkv.weight", TensorType::F32, {96, 32}}));
    EXPECT_EQ(infoOf("layers.3.linear.bias"), (TensorInfo{"layers.3.linear.bias", TensorType::F32, {50}}));
    EXPECT_EQ(end.weights.size(), 2U + 2 * 12 + 4);
    EXPECT_EQ(end.optimizer.size(), 3 * end.weights.size());
    EXPECT_EQ(end.optimizer.at("layers.1.up.weight.step"), std::vector<float>{kSteps});
    EXPECT_EQ(checkpoint.value().plan.model, trained().model);
}

TEST(Checkpoint, TheFirstStepOfARunThatGoesOnIsCheckedAndNumberedOn)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.check = CheckMode::First;
    plan.run.steps = kCut;
    endOf(plan, folder.file("runs"));
    plan.run.resume = folder.file("runs");
    plan.run.steps = kSteps;
    const Outcome outcome = finished(plan);
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(outcome.result->steps, kSteps - kCut);
    ASSERT_EQ(outcome.trace.steps().size(), static_cast<std::size_t>(kSteps - kCut));
    EXPECT_EQ(outcome.trace.steps().front().step, traces::Step{kCut});
    EXPECT_EQ(outcome.progress.back().text, "step 7 of 7");

    // a gradient that is off in the first step that is run is found
    LocalSessionOptions options;
    options.fault = InjectedFault{InjectedFault::Kind::WrongGradient, traces::ActionKind::Backward, traces::Stage{0}, traces::MicroBatch{1},
                                  traces::Step{kCut}, 1};
    EXPECT_THAT(runPlan(plan, options).failure.value().text, HasSubstr("gradient check failed in step 3"));
}

TEST(Checkpoint, TheSeedIsTheCheckpoints)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.checkpointEvery = kCut;
    const End straight = endOf(plan, folder.file("runs"));
    plan.run.checkpointEvery = 0;
    plan.run.resume = folder.file("runs/step-0000003");
    plan.run.seed = 5;
    const Outcome outcome = finished(plan);
    EXPECT_EQ(outcome.result->loss, lastOf(straight.loss, kSteps - kCut));
    EXPECT_THAT(outcome.trace.notes(), testing::Contains(HasSubstr("the data goes on with seed 1, that of the checkpoint, and not with 5")));
}

std::string failureOf(const Plan& plan)
{
    const Outcome outcome = runPlan(plan);
    return outcome.failure ? outcome.failure->text : "no failure";
}
std::string refusalOf(const Plan& plan)
{
    const auto started = makeLocalSession()->start(plan);
    return started.ok() ? "started" : started.error().message;
}

// Files that do not hold what the checkpoint's own plan says.
TEST(Checkpoint, TensorsThatDoNotFitAreToldByName)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.steps = 1;
    endOf(plan, folder.file("runs"));
    plan.run.steps = 2;
    plan.run.resume = folder.file("runs");
    const std::string description = folder.file("runs/step-0000001/checkpoint.json");
    const std::string text = traces::test::slurp(description);
    const auto failureWith = [&](const ModelSpec& model) {
        Plan other = plan;
        other.model = model;
        auto json = nlohmann::ordered_json::parse(text);
        json["plan"] = nlohmann::ordered_json::parse(writePlan(other));
        traces::test::spill(description, json.dump());
        return failureOf(other);
    };

    Plan wider = plan;
    wider.model.layers[1] = TransformerBlock{32, 2, 128};
    EXPECT_THAT(failureWith(wider.model), HasSubstr("its tensor layers.1.up.weight is F32 [64, 32], the model's F32 [128, 32]"));
    Plan deeper = plan;
    deeper.model.layers.insert(deeper.model.layers.begin() + 1, TransformerBlock{32, 2, 64});
    EXPECT_THAT(failureWith(deeper.model), HasSubstr("it has no tensor layers.3.norm1.weight"));
    Plan shorter = plan;
    shorter.model.layers.pop_back();
    shorter.model.layers.back() = Head{32, 50};
    EXPECT_THAT(failureWith(shorter.model), HasSubstr("it has no tensor layers.2.norm.weight"));
    Plan other = plan;
    other.model.layers = {Embedding{50, 16, 32}, TransformerBlock{32, 2, 64}, TransformerBlock{32, 2, 64}};
    other.model.loss = Loss::MeanSquaredError;
    EXPECT_THAT(failureWith(other.model), HasSubstr("its tensor layers.3.linear.bias is in no layer of it"));
}

// Whose checkpoints are in the folder already, and whether it can be written to, is asked before the first step.
TEST(Checkpoint, AFolderThatCannotTakeThemIsToldBeforeTheRun)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.steps = 2;
    endOf(plan, folder.file("runs"));
    plan.run.checkpoint = folder.file("runs");
    EXPECT_THAT(refusalOf(plan), HasSubstr("runs holds a checkpoint after step 2 already, and the run begins anew: give another folder"));
    plan.run.resume = folder.file("runs");
    plan.run.steps = 3;
    EXPECT_EQ(refusalOf(plan), "started");
    traces::test::spill(folder.file("file"), "x");
    for (const char* name : {"file", "file/in/it"}) {
        plan.run.checkpoint = folder.file(name);
        EXPECT_THAT(refusalOf(plan), testing::AllOf(HasSubstr("run.checkpoint: "), HasSubstr("file is no folder")));
    }
    plan.run.resume = folder.file("file");
    EXPECT_THAT(refusalOf(plan), HasSubstr("file is no folder; give one that --checkpoint has written to. Go on from another checkpoint"));

    // two at once
    Plan other = trained();
    other.run.checkpoint = folder.file("shared");
    const Expected<CheckpointLock> lock = CheckpointLock::take(folder.file("shared"));
    ASSERT_TRUE(lock.ok());
    EXPECT_THAT(failureOf(other), HasSubstr("another run writes its checkpoints to"));
}

// Training on from them would only be called diverged.
TEST(Checkpoint, ValuesThatAreNoNumbersAreToldByTensor)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.steps = 1;
    endOf(plan, folder.file("runs"));
    const std::string file = folder.file("runs/step-0000001/model.safetensors");
    std::string bytes = traces::test::slurp(file);
    for (std::size_t i = bytes.size() - 4; i < bytes.size(); ++i) bytes[i] = '\xff'; // the last value: NaN
    traces::test::spill(file, bytes);
    plan.run.steps = 2;
    plan.run.resume = folder.file("runs");
    EXPECT_THAT(failureOf(plan), testing::ContainsRegex("its tensor layers[.].* has values that are no finite numbers. Go on from an earlier checkpoint"));
}

TEST(Checkpoint, WhatCannotGoOnIsRefusedWithTheReason)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.steps = 2;
    endOf(plan, folder.file("runs"));
    plan.run.resume = folder.file("runs");
    EXPECT_THAT(refusalOf(plan), HasSubstr("run.steps: 2 altogether"));
    plan.run.steps = 3;
    plan.run.optimizer = OptimizerKind::Sgd;
    EXPECT_THAT(refusalOf(plan), HasSubstr("keeps what adamw needs, and the run takes sgd"));
    plan.run.resume = folder.file("nowhere");
    EXPECT_THAT(refusalOf(plan), HasSubstr("nowhere: it does not exist"));
    plan.run.resume.clear();
    plan.run.checkpointEvery = 2;
    EXPECT_THAT(refusalOf(plan), HasSubstr("run.checkpoint names no folder"));
    plan.run.checkpoint = folder.file("runs");
    plan.pipeline.schedule = "forward-only";
    EXPECT_THAT(refusalOf(plan), HasSubstr("forward-only trains nothing"));
}

TEST(Checkpoint, OneThatCannotBeWrittenEndsTheRunAndLeavesTheLastGoodOne)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.steps = 2;
    const End before = endOf(plan, folder.file("runs"));
    plan.run.resume = folder.file("runs");
    plan.run.checkpoint = folder.file("runs");
    plan.run.steps = 100;
    plan.run.checkpointEvery = 2;

    std::signal(SIGXFSZ, SIG_IGN); // a write beyond the limit fails then, as on a full disk
    rlimit usual{};
    ::getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit small{10'000, usual.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const Outcome outcome = runPlan(plan);
    ::setrlimit(RLIMIT_FSIZE, &usual);
    std::signal(SIGXFSZ, SIG_DFL);

    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("the checkpoint after step 3 was not written: cannot write " + folder.file("runs").string()));
    EXPECT_EQ(outcome.trace.steps().size(), 2U);
    const Expected<Checkpoint> last = openCheckpoint(folder.file("runs"));
    ASSERT_TRUE(last.ok()) << last.error().message;
    EXPECT_EQ(last.value().step, 2);
    EXPECT_EQ(tensorsOf(last.value().weights), before.weights);
}

// A forward through weights that were trained.
TEST(Checkpoint, InferenceTakesTheWeightsAndNoMore)
{
    const TemporaryFolder folder;
    Plan plan = trained();
    plan.run.checkpointEvery = kSteps - 1;
    const End straight = endOf(plan, folder.file("runs"));
    plan.pipeline.schedule = "forward-only";
    plan.run.checkpointEvery = 0;
    plan.run.resume = folder.file("runs/step-0000006");
    const Outcome outcome = finished(plan);
    EXPECT_EQ(outcome.result->loss, lastOf(straight.loss, 1));
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise); // of the outputs
}

} // namespace
} // namespace stagecraft::runtime
