// SPDX-License-Identifier: Apache-2.0
//
// Tied embeddings: what is counted, what is refused, and the sum between the first and the last stage in simulations.
#include "engine/model/tied.h"

#include "engine/plan/plan_json.h"
#include "unit_costs.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using namespace stagecraft::engine;
using ::testing::HasSubstr;
using traces::LaneKind;

namespace {

ModelSpec tiedModel()
{
    ModelSpec model;
    model.layers = {Embedding{1000, 128, 256}, TransformerBlock{256, 4, 1024}, TransformerBlock{256, 4, 1024}, Head{256, 1000}};
    model.loss = Loss::CrossEntropy;
    model.microbatchRows = 2;
    model.tiedEmbeddings = true;
    return model;
}

std::int64_t parametersOf(const std::vector<LayerCounts>& counts)
{
    std::int64_t sum = 0;
    for (const LayerCounts& layer : counts) sum += layer.parameters;
    return sum;
}

TEST(TiedEmbeddings, CountTheTableOnce)
{
    ModelSpec model = tiedModel();
    const std::int64_t table = 1000 * 256;
    EXPECT_EQ(tiedValues(model), table);
    const std::int64_t tied = parametersOf(layerCounts(model));
    EXPECT_EQ(layerCounts(model).back().parameters, 2 * 256 + 1000); // the norm and the bias
    EXPECT_EQ(parametersOf(heldCounts(model, 1)), tied);
    EXPECT_EQ(parametersOf(heldCounts(model, 3)), tied + table);
    const double flops = layerCounts(model).back().forwardFlops;
    model.tiedEmbeddings = false;
    EXPECT_EQ(parametersOf(layerCounts(model)), tied + table);
    EXPECT_EQ(layerCounts(model).back().forwardFlops, flops);
    EXPECT_EQ(tiedValues(model), 0);
}

TEST(TiedEmbeddings, NeedTwoLayersThatFitEachOther)
{
    ModelSpec model = tiedModel();
    EXPECT_TRUE(checkModel(model).ok());
    model.layers.back() = Head{256, 1001};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("the table is 1000×256, and the head's matrix 1001×256"));
    model.layers.back() = Linear{256, 1000};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("the last layer is Linear 256→1000, and only a head can take"));
    model.layers = {Linear{4, 4}, Linear{4, 4}};
    model.loss = Loss::MeanSquaredError;
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("the first layer is Linear 4→4, and there is no table to share"));
}

Plan tiedPlan(const std::string& schedule, int ranks, int chunks)
{
    Plan plan;
    plan.model = tiedModel();
    plan.pipeline.schedule = schedule;
    plan.pipeline.ranks = ranks;
    plan.pipeline.chunks = chunks;
    plan.costs.source = CostSource::Model;
    return plan;
}

TEST(TiedEmbeddings, AreWrittenAndReadAndGoIntoTheCosts)
{
    const Plan plan = tiedPlan("1f1b", 2, 1);
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    const CostTable costs = costsOf(plan).value();
    EXPECT_EQ(costs.tiedBytes, 4 * 1000 * 256);
    EXPECT_EQ(costs.stages[0].weightBytes + costs.stages[1].weightBytes, 4 * (parametersOf(layerCounts(plan.model)) + 1000 * 256));
    EXPECT_EQ(costsOf(tiedPlan("1f1b", 1, 1)).value().tiedBytes, 0); // one stage, one parameter
}

TEST(TiedEmbeddings, AreNotForSchedulesThatUpdateWithinAStep)
{
    for (const char* name : {"pipedream", "pipedream-2bw"}) {
        const Plan plan = tiedPlan(name, 2, 1);
        EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("model.tied_embeddings: schedule " + std::string(name) + " updates each stage by itself"));
        EXPECT_FALSE(scheduleOf(plan).ok());
    }
}

traces::Trace simulated(const Schedule& schedule, const CostTable& costs) { return simulate(schedule, costs).value(); }

traces::TimeNs endOf(const traces::Trace& trace, std::string_view name)
{
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (std::uint32_t i = 0; i < trace.lanes()[l].size(); ++i)
            if (trace.sliceName({traces::LaneId{l}, i}) == name) return trace.lanes()[l].end(i);
    ADD_FAILURE() << name << " is not there";
    return -1;
}

// GPipe, p = 2, m = 1, F 1000, B 3000, hand-offs of 10: rank 1 is done at 1000 + 10 + 4000, rank 0 at 5010 + 10 + 3000 = 8020. Then 600
// bytes at a byte a nanosecond, in two passes of half of them with 10 ns each: 2 (10 + 300) = 620; then both update.
TEST(TiedEmbeddings, AreSummedBetweenTheFirstAndTheLastRank)
{
    CostTable costs = slotCosts(2, 1000, 3000, 10);
    costs.inside = {.latency = 10, .bytesPerSecond = 1e9};
    costs.tiedBytes = 600;
    for (StageCosts& stage : costs.stages) stage.optimizer = 500;
    const traces::Trace trace = simulated(made("gpipe", 2, 1), costs);
    for (const int rank : {0, 1}) {
        const traces::Lane& collectives = trace.lane(*trace.findLane(Rank{rank}, LaneKind::Collective));
        ASSERT_EQ(collectives.size(), 1U);
        EXPECT_EQ(collectives.begin(0), 8020);
        EXPECT_EQ(collectives.end(0), 8640);
    }
    EXPECT_EQ(endOf(trace, "0OPTIMIZER"), 9140);
    EXPECT_EQ(endOf(trace, "1OPTIMIZER"), 9140);
    const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();
    for (const traces::RankFigures& rank : figures.ranks)
        EXPECT_EQ(rank.idleByCause[static_cast<std::size_t>(traces::GapCause::Unexplained)], 0) << rank.rank.value;
}

// After the buckets of the replicas, and over several steps.
TEST(TiedEmbeddings, AreSummedAfterTheReplicas)
{
    CostTable costs = slotCosts(2, 1000, 3000, 10);
    costs.inside = {.latency = 10, .bytesPerSecond = 1e9};
    costs.tiedBytes = 600;
    for (StageCosts& stage : costs.stages) stage.gradientBytes = 1000;
    costs.machine.replicas = 2;
    costs.machine.replica = {.latency = 0, .bytesPerSecond = 1e9};
    const traces::Trace trace = simulated(made("gpipe", 2, 1), costs);
    const traces::Lane& collectives = trace.lane(*trace.findLane(Rank{0}, LaneKind::Collective));
    ASSERT_EQ(collectives.size(), 2U);
    EXPECT_EQ(collectives.end(0), 8020 + 1000);
    EXPECT_EQ(collectives.end(1), 8020 + 1000 + 620);
    EXPECT_TRUE(simulate(made("gpipe", 2, 1), costs, {}, 3).ok());
}

// On one rank there is nothing to send, and the sum is one for both stages.
TEST(TiedEmbeddings, TakeNoTimeWhereOneRankHoldsBothEnds)
{
    CostTable costs = slotCosts(4, 1000, 3000, 10);
    costs.inside = {.latency = 10, .bytesPerSecond = 1e9};
    costs.tiedBytes = 600;
    for (StageCosts& stage : costs.stages) stage.optimizer = 500;
    const Schedule schedule = made("zb-v", 2, 4, 2);
    CostTable apart = costs;
    apart.tiedBytes = 0;
    const traces::Trace trace = simulated(schedule, costs);
    EXPECT_EQ(trace.lane(*trace.findLane(Rank{0}, LaneKind::Collective)).size(), 1U);
    EXPECT_FALSE(trace.findLane(Rank{1}, LaneKind::Collective));
    EXPECT_EQ(trace.extent().length(), simulated(schedule, apart).extent().length());
}

TEST(TiedEmbeddings, HaveOneSumInEachDirection)
{
    CostTable costs = slotCosts(4, 1000, 3000, 10);
    costs.tiedBytes = 600;
    const traces::Trace trace = simulated(made("chimera", 4, 4), costs);
    for (const int rank : {0, 3}) EXPECT_EQ(trace.lane(*trace.findLane(Rank{rank}, LaneKind::Collective)).size(), 2U);
    EXPECT_FALSE(trace.findLane(Rank{1}, LaneKind::Collective));
}

TEST(TiedEmbeddings, AreNotSummedWhereNothingIsTrained)
{
    CostTable costs = slotCosts(2, 1000, 3000, 10);
    costs.tiedBytes = 600;
    EXPECT_FALSE(simulated(made("forward-only", 2, 2), costs).findLane(Rank{0}, LaneKind::Collective));
}

} // namespace
