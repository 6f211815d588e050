// SPDX-License-Identifier: Apache-2.0
//
// What micro-batches keep for their backwards, tensor by tensor: how much it is, what of it a rank has in flight, and its way to the host
// or to a partner and back.
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Bytes;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::MemorySeries;
using traces::Rank;
using traces::TimeNs;

// Of two steps, with twice as many micro-batches.
Plan little(const std::string& schedule, int ranks, int chunks, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.pipeline.microbatches = 8;
    plan.run.steps = 2;
    return plan;
}

std::vector<double> peaksOf(const traces::Trace& trace, traces::Step step)
{
    std::vector<double> peaks;
    for (const traces::RankFigures& rank : traces::stepFigures(trace, step).value().ranks) peaks.push_back(rank.peakActivations);
    return peaks;
}

Bytes highest(const traces::Trace& trace, Rank rank, MemoryClass memory)
{
    const MemorySeries* series = trace.memorySeries(rank, memory);
    return series == nullptr || series->value.empty() ? 0 : *std::max_element(series->value.begin(), series->value.end());
}

// By hand: four rows of a linear layer with relu keep its result (the input of the first layer is the run's data), and a linear layer
// behind it keeps its input, which is that result, and the loss its output; 4 bytes a number, or 2 in bf16, but for the loss.
TEST(SavedTensors, AreWhatTheLayersNeedForTheirBackwards)
{
    Plan plan;
    plan.model.layers = {Linear{8, 16, Activation::Relu}, Linear{16, 4, Activation::None}};
    plan.model.microbatchRows = 4;
    plan.pipeline = {.schedule = "1f1b", .ranks = 2, .microbatches = 4, .customSchedule = {}};
    plan.run.steps = 2;
    for (const auto& [mode, precision] : {std::pair{RunMode::Threads, Precision::Fp32}, {RunMode::Emulated, Precision::Fp32},
                                          {RunMode::Threads, Precision::Bf16}, {RunMode::Emulated, Precision::Bf16}}) {
        plan.run.mode = mode;
        plan.run.precision = precision;
        const Bytes result = 4 * 16 * valueBytes(precision);
        const Bytes ofLoss = 4 * 4 * 4;
        plan.run.activations = ActivationAccount::Allocator;
        const Outcome plain = runPlan(plan);
        ASSERT_TRUE(plain.result);
        EXPECT_TRUE(plain.result->stageActivations.empty());
        plan.run.activations = ActivationAccount::SavedTensors;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->loss, plain.result->loss);
        ASSERT_EQ(outcome.result->stageActivations.size(), 2U);
        EXPECT_EQ(outcome.result->stageActivations[0].saved, result);
        EXPECT_EQ(outcome.result->stageActivations[1].saved, result + ofLoss);
        // rank 0 has two micro-batches in flight, rank 1 one
        ASSERT_EQ(outcome.result->rankActivations.size(), 2U);
        EXPECT_EQ(outcome.result->rankActivations[0].peak, 2 * result);
        EXPECT_EQ(outcome.result->rankActivations[1].peak, result + ofLoss);
    }
}

class InFlight : public testing::TestWithParam<FamilyCase> {};

// The most that a rank has in flight, in micro-batches and in bytes, is what a simulation of the schedule says with the bytes that the
// layers really save.
TEST_P(InFlight, IsAtMostWhatTheScheduleSays)
{
    const auto& [name, ranks, chunks, microbatches, mode, precision] = GetParam();
    Plan plan = little(name, ranks, chunks, mode);
    plan.pipeline.microbatches = microbatches;
    plan.run.precision = precision;
    plan.run.activations = ActivationAccount::SavedTensors;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;

    const Schedule schedule = scheduleOf(plan).value();
    CostTable costs = costsOf(plan).value();
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const StageActivations& stage = outcome.result->stageActivations[s];
        EXPECT_EQ(stage.saved > 0, !schedule.inference()) << "stage " << s;
        costs.stages[s].activationBytes = stage.saved;
        costs.stages[s].wgradBytes = stage.forWeights;
    }
    const traces::Trace simulated = simulate(schedule, costs).value();
    const std::vector<double> measured = peaksOf(outcome.trace, traces::Step{1});
    const std::vector<double> predicted = peaksOf(simulated, traces::Step{0});
    const bool pairs = std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.kind() == ActionKind::Overlap; });
    });
    ASSERT_EQ(measured.size(), predicted.size());
    for (std::size_t r = 0; r < measured.size(); ++r)
        if (pairs && mode == RunMode::Threads) { // whose forward may come to begin only after the backward is over
            EXPECT_LE(measured[r], predicted[r]) << "rank " << r;
        } else {
            EXPECT_EQ(measured[r], predicted[r]) << "rank " << r;
        }
    for (int r = 0; r < ranks; ++r) {
        const RankActivations& rank = outcome.result->rankActivations[static_cast<std::size_t>(r)];
        EXPECT_EQ(rank.peak, highest(simulated, Rank{r}, MemoryClass::Activations)) << "rank " << r;
        EXPECT_EQ(rank.predicted, rank.peak) << "rank " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(SavedTensors, InFlight, testing::ValuesIn(everyFamilyCase(5)),
                         [](const auto& each) { return caseName(each.param.name, each.param.mode, each.param.precision); });

struct OffloadCase {
    std::string name;
    int ranks, chunks;
    double share; // 0: the family moves them itself
    RunMode mode;
};

Plan planOf(const OffloadCase& each)
{
    Plan plan = little(each.name, each.ranks, each.chunks, each.mode);
    plan.pipeline.offload = each.share;
    return plan;
}

class Offload : public testing::TestWithParam<OffloadCase> {};

TEST_P(Offload, TrainsLikeTheScheduleThatKeepsAllActivations)
{
    const Plan plan = planOf(GetParam());
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    Plan stays = plan;
    stays.pipeline.offload = 0;
    if (stays.pipeline.schedule == "bpipe") stays.pipeline.schedule = "1f1b";
    EXPECT_EQ(outcome.result->loss, runPlan(stays).result->loss);

    // each copy that the schedule asks for has its slice, in its order, and what takes a reloaded activation begins after it
    const Schedule schedule = scheduleOf(plan).value();
    std::size_t copies = 0;
    for (int r = 0; r < schedule.ranks; ++r) {
        std::map<ActionKind, std::vector<std::string>> asked, made;
        for (const auto& action : schedule.order[static_cast<std::size_t>(r)])
            if (action.kind() == ActionKind::Offload || action.kind() == ActionKind::Reload) asked[action.kind()].push_back(toText(action));
        for (const int depth : {0, 1}) {
            const auto lane = outcome.trace.findLane(Rank{r}, LaneKind::Copy, depth);
            if (!lane) continue;
            const Lane& slices = outcome.trace.lane(*lane);
            for (std::size_t i = 0; i < slices.size(); ++i)
                if (slices.step(i) == traces::Step{0}) made[slices.action(i).kind()].push_back(toText(slices.action(i)));
            copies += slices.size();
        }
        EXPECT_EQ(made, asked) << "rank " << r;
        EXPECT_EQ(outcome.trace.memorySeries(Rank{r}, MemoryClass::Activations)->value.back(), 0);
    }
    EXPECT_GT(copies, 0U);
    std::size_t reloads = 0;
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l)
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
            EXPECT_GE(edge.ready, outcome.trace.slice(edge.from).end);
            EXPECT_GE(outcome.trace.slice(edge.to).begin, edge.ready);
            const bool reload = outcome.trace.slice(edge.from).action.kind() == ActionKind::Reload;
            reloads += reload ? 1 : 0;
        }
    EXPECT_EQ(2 * reloads, copies); // an OFFLOAD and a RELOAD for each backward that waits for one
}

std::vector<OffloadCase> offloadCases()
{
    std::vector<OffloadCase> cases;
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        for (const auto& [name, chunks] : {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved", 2}, {"zb-h1", 1}, {"pipedream", 1}})
            for (const double share : {0.5, 1.0}) cases.push_back({name, chunks == 1 ? 4 : 2, chunks, share, mode});
        cases.push_back({"dualpipe", 4, 1, 0.5, mode});
        cases.push_back({"bpipe", 4, 1, 0, mode});
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Runtime, Offload, testing::ValuesIn(offloadCases()), [](const auto& each) {
    return caseName(each.param.name + (each.param.share == 1 ? "_all" : ""), each.param.mode);
});

// With copies that take no time, nothing but the order decides what a rank holds, in the emulation as in the simulation.
TEST(Offload, LowersThePeakAsTheSimulationSays)
{
    for (const OffloadCase& each : offloadCases()) {
        if (each.mode != RunMode::Emulated || each.name == "dualpipe") continue; // whose pairs run one after the other there
        const Plan plan = planOf(each);
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << each.name;
        const traces::Trace simulated = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
        EXPECT_EQ(peaksOf(outcome.trace, traces::Step{1}), peaksOf(simulated, traces::Step{0})) << each.name;
    }
}

// Bytes go off the rank at the end of the copy and come back at the begin of the other, as many; a partner has them from the begin of
// the one to the end of the other.
TEST(Offload, MovesAsManyBytesBackAsAway)
{
    for (const char* schedule : {"gpipe", "bpipe"}) {
        Plan plan = little(schedule, 4, 1, RunMode::Emulated);
        const bool partner = plan.pipeline.schedule == "bpipe";
        if (!partner) plan.pipeline.offload = 0.5;
        plan.machine.host.latency = 3'000;
        plan.costs.latency = 3'000;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        const auto changeAt = [&](int rank, TimeNs time) {
            const MemorySeries* series = outcome.trace.memorySeries(Rank{rank}, MemoryClass::Activations);
            return series->valueAt(time) - series->valueAt(time - 1);
        };
        std::size_t checked = 0;
        for (int r = 0; r < 4; ++r) {
            const auto away = outcome.trace.findLane(Rank{r}, LaneKind::Copy, 0);
            const auto back = outcome.trace.findLane(Rank{r}, LaneKind::Copy, 1);
            if (!away) continue;
            const Lane& offloads = outcome.trace.lane(*away);
            const Lane& reloads = outcome.trace.lane(*back);
            for (std::size_t i = 0; i < offloads.size(); ++i)
                for (std::size_t k = 0; k < reloads.size(); ++k) {
                    if (offloads.action(i).microbatch() != reloads.action(k).microbatch() || offloads.step(i) != reloads.step(k)) continue;
                    EXPECT_GE(offloads.end(i) - offloads.begin(i), 3'000);
                    const Bytes moved = -changeAt(r, offloads.end(i));
                    EXPECT_GT(moved, 0);
                    if (partner) {
                        EXPECT_EQ(changeAt(3 - r, reloads.end(k)), -moved);
                    }
                    ++checked;
                }
        }
        EXPECT_GT(checked, 0U);
    }
}

// What a rank has no room for goes to the host: with half of its activations away GPipe fits where it did not.
TEST(Offload, FitsIntoTheMemoryThatTheWholeDoesNotFitInto)
{
    Plan plan = little("gpipe", 2, 1, RunMode::Emulated);
    plan.model.microbatchRows = 16;
    plan.run.check = CheckMode::First;
    plan.run.optimizer = OptimizerKind::Sgd;
    Bytes most = 0;
    for (const traces::RankFigures& rank : traces::stepFigures(runPlan(plan).trace, traces::Step{1}).value().ranks) most = std::max(most, rank.peakMemory);
    plan.machine.memory = most * 4 / 5;
    const Outcome whole = runPlan(plan);
    ASSERT_TRUE(whole.failure);
    EXPECT_THAT(whole.failure->text, testing::HasSubstr("more do not fit"));
    plan.pipeline.offload = 0.5;
    const Outcome half = runPlan(plan);
    ASSERT_TRUE(half.result) << (half.failure ? half.failure->text : "");
    EXPECT_EQ(half.result->gradientCheck, GradientCheck::Bitwise);
}

} // namespace
} // namespace stagecraft::runtime
