// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_result.h"

#include "engine/plan/plan_json.h"
#include "engine/simulate/simulate.h"
#include "traces/format/journal.h"

#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using namespace traces;

// A trace as a run would leave it: the simulation of known costs, each step after the other, the first one slower.
Trace steppedTrace(const Schedule& schedule, const CostTable& costs, const std::vector<int>& slowness)
{
    Trace out;
    std::vector<LaneId> lanes;
    TimeNs origin = 0;
    for (std::size_t step = 0; step < slowness.size(); ++step) {
        CostTable slowed = costs;
        for (StageCosts& stage : slowed.stages) {
            stage.forward *= slowness[step];
            stage.backward *= slowness[step];
            stage.optimizer *= slowness[step];
        }
        const Trace one = simulate(schedule, slowed).value();
        for (std::size_t l = 0; l < one.laneCount(); ++l) {
            if (lanes.size() <= l) lanes.push_back(out.addLane(one.lanes()[l].info()));
            for (std::size_t i = 0; i < one.lanes()[l].size(); ++i) {
                Slice slice = one.lanes()[l].slice(i);
                slice.begin += origin;
                slice.end += origin;
                slice.step = Step{step};
                out.append(lanes[l], slice);
            }
        }
        out.addStep({Step{step}, {origin, origin + one.extent().length()}, 1.0 / static_cast<double>(step + 1)});
        origin += one.extent().length();
    }
    return out;
}

class RunResultTest : public testing::Test {
protected:
    Plan plan = presetPlan("hello").value();
    Schedule schedule = scheduleOf(plan).value();
    Partition partition = partitionOf(plan).value();
    CostTable costs;

    void SetUp() override
    {
        costs.stages.assign(2, {});
        for (StageCosts& stage : costs.stages) {
            stage.forward = 1000;
            stage.backward = 2000;
            stage.optimizer = 500;
        }
        costs.transfer = 100;
    }
    [[nodiscard]] Expected<RunResult> summaryOf(const Trace& trace) const
    {
        RunTotals totals(schedule.stages());
        for (const Record& record : recordsOf(trace)) totals.take(record);
        return summarizeRun({.plan = plan,
                             .schedule = schedule,
                             .partition = partition,
                             .totals = totals,
                             .outputs = {},
                             .check = GradientCheck::Bitwise,
                             .maxAbsDiff = 0,
                             .peakFlops = 1e18});
    }
};

TEST_F(RunResultTest, FindsTheCostsThatTheTraceWasMadeFrom)
{
    const Trace trace = steppedTrace(schedule, costs, {3, 1, 1});
    const RunResult result = summaryOf(trace).value();
    ASSERT_EQ(result.measuredCosts.size(), 2U);
    EXPECT_EQ(result.measuredCosts[0].forward, 1000);
    EXPECT_EQ(result.measuredCosts[1].backward, 2000);
    EXPECT_EQ(result.measuredCosts[1].optimizer, 500);
    EXPECT_EQ(result.measuredTransferNs, 100);
    EXPECT_EQ(result.measuredCosts[0].weightBytes, (1024 * 2048 + 2048) * 4);
    EXPECT_EQ(result.measuredCosts[0].optimizerBytes, 2 * result.measuredCosts[0].weightBytes);
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(result.loss, (std::vector{1.0, 0.5, 1.0 / 3}));
}

// Two layers of 8 rows, 4 micro-batches: FLOPs are 2 for a multiply-add, three times the forward's.
TEST_F(RunResultTest, TellsThroughputAndUtilisation)
{
    const RunResult result = summaryOf(steppedTrace(schedule, costs, {1})).value();
    const double seconds = static_cast<double>(result.stepNs) * 1e-9;
    EXPECT_DOUBLE_EQ(result.throughput.samplesPerSecond, 32 / seconds);
    EXPECT_EQ(result.throughput.tokensPerSecond, 0);
    const double flops = 3.0 * 4 * (2.0 * 8 * 1024 * 2048 * 2);
    EXPECT_NEAR(result.throughput.flopsPerSecond * seconds, flops, 1e-6 * flops);
    EXPECT_DOUBLE_EQ(result.throughput.utilisation, result.throughput.flopsPerSecond / (2 * 1e18));
}

// 1F1B, p = 2, m = 4, hand-offs of 100: rank 0 is busy for 4 * 3000, waits (3000 - 1000) for the first gradient beyond its
// second forward, and every hand-off on the critical path adds 100. Ideal: (m + p - 1) * 3000 + 500 = 15500.
TEST_F(RunResultTest, PredictsTheStepAndItsIdeal)
{
    const Trace trace = steppedTrace(schedule, costs, {3, 1, 1});
    const RunResult result = summaryOf(trace).value();
    EXPECT_EQ(result.predictedStepNs, result.stepNs);
    EXPECT_EQ(result.idealStepNs, 15500);
    EXPECT_DOUBLE_EQ(result.efficiency, 15500.0 / static_cast<double>(result.stepNs));
}

TEST_F(RunResultTest, CountsTheFirstStepWhereThereAreOnlyTwo)
{
    const Trace trace = steppedTrace(schedule, costs, {3, 1});
    const RunResult result = summaryOf(trace).value();
    EXPECT_EQ(result.measuredCosts[0].forward, 2000); // the middle of 3000 and 1000
}

TEST_F(RunResultTest, LeavesPausedTimeOut)
{
    Trace trace = steppedTrace(schedule, costs, {1});
    const RunResult before = summaryOf(trace).value();
    const StepSpan step = trace.steps().front();
    trace.addStep({step.step, {step.span.begin, step.span.end + 10'000}, step.loss});
    trace.addPause({step.span.end, step.span.end + 10'000});
    EXPECT_EQ(summaryOf(trace).value().stepNs, before.stepNs);
}

// Lost events leave a step without times; the others keep their places.
TEST_F(RunResultTest, PassesOverAStepWhoseEventsWereLost)
{
    RunTotals totals(2);
    totals.take(LaneRecord{{.rank = Rank{0}, .name = ""}});
    for (const int step : {0, 1, 2, 3}) {
        const TimeNs begin = step * 10'000;
        if (step != 2) totals.take(SliceRecord{LaneId{0}, {begin, begin + 100 * (step + 1), forward(Stage{0}, MicroBatch{0}), Step{step}}});
        totals.take(StepRecord{{Step{step}, {begin, begin + 1000}, {}}});
    }
    EXPECT_EQ(totals.median(Stage{0}, ActionKind::Forward), 300); // of 200 and 400, without step 0
    EXPECT_EQ(totals.median(Stage{1}, ActionKind::Forward), 0);
}

TEST_F(RunResultTest, SaysSoWhereNoStepWasCompleted)
{
    const Trace trace;
    const auto result = summaryOf(trace);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "no step was completed");
}

} // namespace
} // namespace stagecraft::runtime
