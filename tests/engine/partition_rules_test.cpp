// SPDX-License-Identifier: Apache-2.0
//
// Partitions by rule, against every partition there is.
#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/refit.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/memory_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>
#include <random>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::vector<Partition> everyPartition(int layers, int stages)
{
    if (stages == 1) return {{layers}};
    std::vector<Partition> all;
    for (int first = 1; first + stages - 1 <= layers; ++first)
        for (Partition rest : everyPartition(layers - first, stages - 1)) {
            rest.insert(rest.begin(), first);
            all.push_back(std::move(rest));
        }
    return all;
}

template <class Weight>
double largest(const Partition& partition, const Plan& plan, const Weight& weight)
{
    const std::vector<LayerCounts> layers = layerCounts(plan.model);
    double most = 0;
    std::size_t next = 0;
    for (const int count : partition) {
        double sum = 0;
        for (int i = 0; i < count; ++i) sum += weight(layers[next++]);
        most = std::max(most, sum);
    }
    return most;
}

double flopsOf(const LayerCounts& layer) { return layer.forwardFlops + layer.backwardFlops; }
double parametersOf(const LayerCounts& layer) { return static_cast<double>(layer.parameters); }

// Layers of many widths.
Plan randomPlan(std::mt19937& random, const std::string& schedule, int ranks)
{
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    Plan plan;
    plan.pipeline = {schedule, ranks, 1, among(ranks, 2 * ranks), ""};
    int width = among(1, 64);
    for (int layers = among(ranks, 9); layers > 0; --layers) {
        const int next = among(1, 64);
        plan.model.layers.emplace_back(Linear{width, next, among(0, 1) == 0 ? Activation::Gelu : Activation::Relu});
        width = next;
    }
    plan.model.microbatchRows = among(1, 40);
    plan.costs.source = CostSource::Model;
    plan.costs.flopsPerSecond = 1e6;
    plan.run.optimizer = among(0, 1) == 0 ? OptimizerKind::Sgd : OptimizerKind::AdamW;
    return plan;
}

// What a simulation says that the fullest rank holds, without what waits to be sent or used, which is a matter of times.
Bytes fullestRank(Plan plan, const Partition& partition)
{
    plan.partition = partition;
    CostTable costs = costsOf(plan).value();
    for (StageCosts& stage : costs.stages) stage.inputBytes = stage.outputBytes = 0;
    const auto trace = simulate(scheduleOf(plan).value(), costs);
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    Bytes most = 0;
    for (const traces::MemoryPeak& peak : traces::memoryPeaks(trace.value(), traces::Step{0})) most = std::max(most, peak.bytes);
    return most;
}

class MemoryRule : public testing::TestWithParam<const char*> {};

// On every rank of a schedule with one stage per rank, to the byte; and of the partitions with the smallest peak one of the fastest.
TEST_P(MemoryRule, MakesTheFullestRankAsSmallAsPossible)
{
    std::mt19937 random(31);
    for (int round = 0; round < 12; ++round) {
        Plan plan = randomPlan(random, GetParam(), 2 + round % 3);
        if (round % 2 == 1) plan.run.precision = Precision::Bf16;
        plan.partitionRule = PartitionRule::Memory;
        if (const auto sound = checkPlan(plan); !sound.ok()) continue; // a number of micro-batches that the schedule does not take
        const Partition found = partitionOf(plan).value();
        const Bytes peak = fullestRank(plan, found);
        for (const Partition& other : everyPartition(static_cast<int>(plan.model.layers.size()), plan.stages())) {
            const Bytes others = fullestRank(plan, other);
            EXPECT_LE(peak, others) << testing::PrintToString(found) << " against " << testing::PrintToString(other);
            if (others == peak) {
                EXPECT_LE(largest(found, plan, flopsOf), largest(other, plan, flopsOf) * (1 + 1e-9))
                    << testing::PrintToString(found) << " against " << testing::PrintToString(other);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(PartitionByMemory, MemoryRule, testing::Values("1f1b", "gpipe", "zb-h1", "zb-h2", "pipedream", "pipedream-2bw", "forward-only"),
                         [](const auto& test) {
                             std::string name = test.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(PartitionRules, BalanceWhatTheyAreNamedAfter)
{
    std::mt19937 random(8);
    for (int round = 0; round < 30; ++round) {
        Plan plan = randomPlan(random, "1f1b", 1 + round % 4);
        const auto all = everyPartition(static_cast<int>(plan.model.layers.size()), plan.stages());
        for (const auto& [rule, weight] : {std::pair{PartitionRule::Flops, &flopsOf}, std::pair{PartitionRule::Parameters, &parametersOf}}) {
            plan.partitionRule = rule;
            const double found = largest(partitionOf(plan).value(), plan, weight);
            for (const Partition& other : all) EXPECT_LE(found, largest(other, plan, weight));
        }
        plan.partitionRule = PartitionRule::Uniform;
        const Partition uniform = partitionOf(plan).value();
        EXPECT_TRUE(std::is_sorted(uniform.begin(), uniform.end()));
        EXPECT_LE(uniform.back() - uniform.front(), 1);
        EXPECT_EQ(std::accumulate(uniform.begin(), uniform.end(), 0), static_cast<int>(plan.model.layers.size()));
    }
}

// Of eight equal layers, those of the second stage took three times as long as those of the first.
TEST(PartitionByTime, GoesByWhatTheLayersOfEachStageTook)
{
    Plan plan;
    plan.pipeline = {"1f1b", 2, 1, 4, ""};
    plan.model.layers.assign(8, Linear{16, 16});
    plan.costs.source = CostSource::Measured;
    plan.costs.measured = {{.forward = 400, .backward = 800, .inputGrad = 400, .weightGrad = 400}, {.forward = 1200, .backward = 2400, .inputGrad = 1200, .weightGrad = 1200}};
    plan.costs.measuredFrom = "a run";
    const Plan timed = withPartition(plan, "time").value();
    EXPECT_THAT(timed.partition, ElementsAre(5, 3)); // 4 and a third of 4 layers: 1200 + 900 against 2700
    EXPECT_EQ(timed.costs.measured[0].forward, 400 + 300);
    EXPECT_EQ(timed.costs.measured[1].forward, 3 * 300);
    EXPECT_EQ(timed.costs.source, CostSource::Measured);
    EXPECT_THAT(timed.costs.measuredFrom, HasSubstr("a run; the layers were in stages of 4, 4"));
    // in a file they are of the partition by FLOPs, and what comes of it is written out
    std::string text = writePlan(plan);
    text.insert(text.find("\"pipeline\""), "\"partition\": \"time\", ");
    EXPECT_EQ(readPlan(text).value(), timed);
    // on more ranks, by the same times
    Plan four = withShape(plan, 4, 1);
    four = partitionedByTime(plan, four).value();
    EXPECT_THAT(four.partition, ElementsAre(3, 2, 1, 2));
    plan.costs.measured.clear();
    plan.costs.source = CostSource::Model;
    EXPECT_THAT(withPartition(plan, "time").error().message, HasSubstr("take those of a run over"));
}

TEST(PartitionByTime, TheSlowestStageIsAsFastAsPossible)
{
    std::mt19937 random(4);
    for (int round = 0; round < 20; ++round) {
        Plan plan = randomPlan(random, "1f1b", 3);
        for (int s = 0; s < 3; ++s) plan.costs.measured.push_back({.forward = static_cast<TimeNs>(1000 + random() % 100'000)});
        for (StageCosts& stage : plan.costs.measured) stage.backward = 2 * stage.forward;
        plan.costs.source = CostSource::Measured;
        const auto slowest = [&](const Plan& of) {
            TimeNs most = 0;
            for (const StageCosts& stage : of.costs.measured) most = std::max(most, stage.forward + stage.backward);
            return most;
        };
        const Plan timed = withPartition(plan, "time").value();
        for (const Partition& other : everyPartition(static_cast<int>(plan.model.layers.size()), 3)) {
            Plan by = plan;
            by.partition = other;
            by.costs.measured = refitCosts(plan, by).value().stages;
            EXPECT_LE(slowest(timed), slowest(by) + 2 * static_cast<TimeNs>(plan.model.layers.size())); // each layer's time is rounded
        }
    }
}

TEST(PartitionJson, IsAListARuleOrALayout)
{
    const auto plan = [](const std::string& partition) {
        return readPlan(R"({"stagecraft_plan":1,"model":{"layers":[{"type":"linear","in":4,"out":4,"repeat":10}]},"pipeline":{"ranks":4},"partition":)" +
                        partition + "}");
    };
    EXPECT_THAT(partitionOf(plan("[1,2,3,4]").value()).value(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(partitionOf(plan(R"("uniform")").value()).value(), ElementsAre(2, 2, 3, 3));
    EXPECT_THAT(partitionOf(plan(R"("ttt|(tt|)*2,t*3")").value()).value(), ElementsAre(3, 2, 2, 3));
    for (const char* rule : {"uniform", "parameters", "memory"}) {
        const Plan read = plan(fmt::format("\"{}\"", rule)).value();
        EXPECT_EQ(partitionRuleText(read.partitionRule), rule);
        EXPECT_EQ(readPlan(writePlan(read)).value(), read);
    }
    EXPECT_EQ(plan(R"("flops")").value(), plan("[]").value());
    EXPECT_THAT(plan(R"("even")").error().message, HasSubstr("partition: no rule (flops, uniform, parameters, time, memory)"));
    EXPECT_THAT(plan("7").error().message, HasSubstr("a list [ ... ], a rule or a layout, not 7"));
    EXPECT_THAT(plan(R"("time")").error().message, HasSubstr("measured costs"));
    EXPECT_THAT(readPlan(R"({"stagecraft_plan":1,"partition":"uniform"})").error().message, HasSubstr("there is no model"));
}

// Measured costs stay with the partition that they are of.
TEST(PartitionChange, LeavesOutCostsOfAnother)
{
    Plan plan;
    plan.pipeline = {"1f1b", 2, 1, 4, ""};
    plan.model.layers = {Linear{4, 4}, Linear{4, 64}, Linear{64, 4}, Linear{4, 4}, Linear{4, 4}, Linear{4, 4}};
    plan.costs.source = CostSource::Measured;
    plan.costs.measured.resize(2);
    const Partition used = partitionOf(plan).value();
    EXPECT_EQ(withLayers(plan, used).costs.measured.size(), 2U);
    EXPECT_TRUE(withLayers(plan, {1, 5}).costs.measured.empty());
    EXPECT_TRUE(withPartition(plan, "uniform").value().costs.measured.empty());
    plan.partitionRule = PartitionRule::Memory;
    const Partition memory = partitionOf(plan).value();
    keepPartition(plan);
    EXPECT_EQ(plan.partition, memory);
    EXPECT_EQ(plan.costs.measured.size(), 2U);
}

} // namespace
