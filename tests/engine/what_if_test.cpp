// SPDX-License-Identifier: Apache-2.0
//
// Predictions from a trace: of a simulated one they are exact, whatever is changed.
#include "unit_costs.h"

#include "engine/explain/family_shape.h"
#include "engine/plan/refit.h"
#include "engine/explain/what_if.h"
#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::Plan;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

enum class PlanInTrace { Kept, Gone };

traces::Trace simulated(const Plan& plan, PlanInTrace kept = PlanInTrace::Kept)
{
    traces::Trace trace = engine::simulate(engine::scheduleOf(plan).value(), engine::costsOf(plan).value()).value();
    if (kept == PlanInTrace::Kept) trace.info.planJson = engine::writePlan(plan);
    return trace;
}

traces::StepFigures figuresOf(const Plan& plan) { return traces::stepFigures(simulated(plan), traces::Step{0}).value(); }

engine::Observed seenIn(const traces::Trace& trace)
{
    traces::Expected<engine::Observed> observed = engine::observe(trace);
    if (!observed.ok()) throw std::runtime_error(observed.error().message);
    return std::move(observed).value();
}

engine::Prediction predicted(const engine::Observed& observed, const Plan& changed)
{
    traces::Expected<engine::Prediction> prediction = engine::predict(observed, changed);
    if (!prediction.ok()) throw std::runtime_error(prediction.error().message);
    return std::move(prediction).value();
}

// Stages that differ, parts of a backward that differ, transfers that take time, sizes.
Plan unequal()
{
    Plan plan;
    plan.costs.inputGrad = 800'001;
    plan.costs.weightGrad = 1'300'000;
    plan.costs.overlap = 2'500'000;
    plan.costs.optimizer = 400'000;
    plan.costs.stageScale = {1, 1.5, 0.7, 1.1};
    plan.costs.latency = 130'000;
    plan.costs.activationBytes = 6 << 20;
    plan.costs.wgradBytes = 2 << 20;
    plan.costs.boundaryBytes = 1 << 16;
    plan.costs.bandwidth = 1e9;
    return plan;
}

TEST(WhatIf, OfASimulatedTraceIsExactForEverySchedule)
{
    const Plan plan = unequal();
    const engine::Observed observed = seenIn(simulated(plan));
    EXPECT_THAT(observed.notes, IsEmpty());
    EXPECT_EQ(observed.split, engine::BackwardSplit::ByPlan);
    for (const char* name : {"1f1b", "gpipe", "gpipe-lifo", "naive", "eager-1f1b", "zb-h1", "zb-h2", "zb-auto", "dualpipe", "chimera", "pipedream"}) {
        SCOPED_TRACE(name);
        const Plan other = engine::withSchedule(plan, name);
        ASSERT_EQ(other.costs, plan.costs) << "as many stages";
        EXPECT_EQ(predicted(observed, engine::withSchedule(observed.plan, name)).costs.stages, engine::costsOf(other).value().stages);
        const traces::StepFigures figures = predicted(observed, engine::withSchedule(observed.plan, name)).figures;
        EXPECT_EQ(figures.makespan, figuresOf(other).makespan);
        EXPECT_EQ(figures.ranks[0].peakMemory, figuresOf(other).ranks[0].peakMemory);
        EXPECT_GT(figures.ranks[0].peakMemory, 0);
    }
}

TEST(WhatIf, EveryTracePredictsItself)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (const PlanInTrace kept : {PlanInTrace::Kept, PlanInTrace::Gone}) {
            SCOPED_TRACE(family.name + (kept == PlanInTrace::Kept ? "" : ", without its plan"));
            Plan plan = engine::withSchedule(Plan{}, family.name);
            plan.costs.latency = 120'000;
            plan.costs.optimizer = 300'000;
            if (family.cutsSequences) plan.pipeline.slices = 2;
            const engine::Observed observed = seenIn(simulated(plan, kept));
            // the order of those that plan by costs does not tell by which
            if (kept == PlanInTrace::Kept || !family.plansByCosts) {
                EXPECT_EQ(observed.plan.pipeline.schedule, family.name);
            }
            EXPECT_EQ(predicted(observed, observed.plan).figures.makespan, observed.figures.makespan);
        }
}

// A zero-bubble trace tells I and W itself; a whole backward is then their sum.
TEST(WhatIf, TakesPartsOfTheBackwardAsTheyWereSeen)
{
    Plan plan = engine::withSchedule(unequal(), "zb-h1");
    const engine::Observed observed = seenIn(simulated(plan, PlanInTrace::Gone));
    EXPECT_EQ(observed.split, engine::BackwardSplit::Seen);
    EXPECT_EQ(observed.plan.pipeline.schedule, "zb-h1") << "its order is that of the family";
    plan.costs.bandwidth = 0; // without its plan, what a trace shows of its transfers is one time
    plan.costs.latency = observed.plan.costs.latency;
    const Plan other = engine::withSchedule(plan, "zb-h2");
    EXPECT_EQ(predicted(observed, engine::withSchedule(observed.plan, "zb-h2")).figures.makespan, figuresOf(other).makespan);
}

TEST(WhatIf, HalvesABackwardThatWasOnlySeenWholeAndSaysSo)
{
    Plan plan;
    plan.costs.latency = 100'000;
    const engine::Observed observed = seenIn(simulated(plan, PlanInTrace::Gone));
    EXPECT_EQ(observed.split, engine::BackwardSplit::Halves);
    EXPECT_EQ(observed.plan.costs.measured[2].inputGrad, 1'000'000);
    const engine::Prediction halved = predicted(observed, engine::withSchedule(observed.plan, "zb-h1"));
    EXPECT_EQ(halved.figures.makespan, figuresOf(engine::withSchedule(plan, "zb-h1")).makespan);
    EXPECT_THAT(halved.notes, Contains(HasSubstr("half of each")));
    EXPECT_THAT(predicted(observed, engine::withSchedule(observed.plan, "gpipe")).notes, IsEmpty());
}

TEST(WhatIf, ChangesNumbersAndSpeeds)
{
    const Plan plan = unequal();
    const engine::Observed observed = seenIn(simulated(plan));
    const auto bothChanged = [&](auto change) {
        Plan seen = observed.plan;
        Plan said = plan;
        change(seen);
        change(said);
        EXPECT_EQ(predicted(observed, seen).figures.makespan, figuresOf(said).makespan);
    };
    bothChanged([](Plan& changed) { changed.pipeline.microbatches = 19; });
    bothChanged([](Plan& changed) { changed.costs.latency = 900'000; });
    bothChanged([](Plan& changed) { changed.costs.bandwidth = 1e8; });
    bothChanged([](Plan& changed) { changed.pipeline.recompute = engine::Recompute::Full; });
    bothChanged([](Plan& changed) { changed.machine.rankScale = {1, 2, 1, 1}; });

    Plan slower = observed.plan;
    slower.costs.stageScale = {1, 1, 2, 1};
    Plan said = plan;
    said.costs.stageScale = {1, 1.5, 1.4, 1.1};
    EXPECT_NEAR(static_cast<double>(predicted(observed, slower).figures.makespan), static_cast<double>(figuresOf(said).makespan), 50)
        << "times are rounded to nanoseconds once more";
}

// Without a model the stages of a trace are cut into equal parts, which is what a plan of equal chunks has.
TEST(WhatIf, CutsAndJoinsStagesThatNoModelTells)
{
    Plan plan;
    plan.costs.latency = 50'000;
    plan.costs.activationBytes = 4 << 20;
    const engine::Observed observed = seenIn(simulated(plan));
    for (const char* name : {"interleaved", "zb-v", "hanayo", "dualpipe-v"}) {
        SCOPED_TRACE(name);
        const engine::Prediction prediction = predicted(observed, engine::withSchedule(observed.plan, name));
        const traces::StepFigures said = figuresOf(engine::withSchedule(plan, name));
        EXPECT_EQ(prediction.figures.makespan, said.makespan);
        EXPECT_EQ(prediction.figures.ranks[0].peakMemory, said.ranks[0].peakMemory);
        EXPECT_THAT(prediction.notes, Contains(HasSubstr("each is cut into 2 equal parts")));
    }
    const engine::Observed finer = seenIn(simulated(engine::withSchedule(plan, "interleaved")));
    EXPECT_EQ(predicted(finer, engine::withSchedule(finer.plan, "1f1b")).figures.makespan, figuresOf(plan).makespan);
    const traces::Expected<engine::Prediction> three = engine::predict(observed, engine::withShape(observed.plan, 3, 1));
    ASSERT_FALSE(three.ok());
    EXPECT_THAT(three.error().message, HasSubstr("3 ranks with 1 chunk make 3 stages, and the times are of 4 stages"));
}

// Times by a model are proportional to FLOPs, and so are those of any other partition.
TEST(WhatIf, GivesMeasuredTimesOutToTheLayersByTheirFlops)
{
    const Plan plan = engine::presetPlan("gpt-small").value();
    const engine::Observed observed = seenIn(simulated(plan));
    const Plan other = engine::withShape(plan, 2, 2);
    Plan changed = engine::withShape(observed.plan, 2, 2);
    const std::vector<engine::StageCosts> expected = engine::costsOf(other).value().stages;
    const engine::Prediction prediction = predicted(observed, engine::withSchedule(changed, "interleaved"));
    ASSERT_EQ(prediction.costs.stages.size(), expected.size());
    for (std::size_t s = 0; s < expected.size(); ++s) {
        EXPECT_NEAR(static_cast<double>(prediction.costs.stages[s].forward), static_cast<double>(expected[s].forward), 2);
        EXPECT_NEAR(static_cast<double>(prediction.costs.stages[s].weightGrad), static_cast<double>(expected[s].weightGrad), 2);
        EXPECT_NEAR(static_cast<double>(prediction.costs.stages[s].activationBytes), static_cast<double>(expected[s].activationBytes), 2);
        EXPECT_EQ(prediction.costs.stages[s].weightBytes, expected[s].weightBytes);
    }
    EXPECT_THAT(prediction.notes, Contains(HasSubstr("stages of 5, 5 and are in stages of")));

    changed = observed.plan;
    changed.partition = {3, 7};
    const engine::Prediction uneven = predicted(observed, changed);
    EXPECT_EQ(uneven.costs.stages[0].weightBytes, engine::costsOf([&] {
                                                      Plan said = plan;
                                                      said.partition = {3, 7};
                                                      return said;
                                                  }())
                                                      .value()
                                                      .stages[0]
                                                      .weightBytes);
    EXPECT_GT(uneven.figures.makespan, observed.figures.makespan);
}

TEST(WhatIf, JoinsTheSlicesOfASequence)
{
    Plan plan = engine::withSchedule(Plan{}, "seq1f1b");
    plan.pipeline.slices = 4;
    plan.costs.activationBytes = 4 << 20;
    const engine::Observed observed = seenIn(simulated(plan));
    EXPECT_EQ(observed.plan.costs.measured[0].forward, 1'000'000);
    EXPECT_EQ(predicted(observed, observed.plan).figures.makespan, figuresOf(plan).makespan);
    EXPECT_EQ(predicted(observed, engine::withSchedule(observed.plan, "1f1b")).figures.makespan, figuresOf(engine::withSchedule(plan, "1f1b")).makespan);
}

// An order of its own is known from the trace alone; with other numbers it is none.
TEST(WhatIf, KeepsAnOrderThatNoFamilyMakes)
{
    const Plan custom = engine::withCustomSchedule(Plan{}, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").value();
    const engine::Observed observed = seenIn(simulated(custom, PlanInTrace::Gone));
    EXPECT_EQ(observed.plan.pipeline.schedule, "custom");
    EXPECT_EQ(predicted(observed, observed.plan).figures.makespan, observed.figures.makespan);
    Plan changed = observed.plan;
    changed.pipeline.microbatches = 4;
    EXPECT_THAT(engine::predict(observed, changed).error().message, HasSubstr("name a schedule to follow"));
    EXPECT_TRUE(engine::predict(observed, engine::withSchedule(changed, "1f1b")).ok());
}

TEST(WhatIf, ComparesByMicrobatchesPerTime)
{
    const Plan plan;
    const engine::Observed observed = seenIn(simulated(plan));
    const engine::Prediction same = predicted(observed, observed.plan);
    const engine::WhatIfRow trace = engine::traceRow(observed, same);
    EXPECT_EQ(trace.step, 33'000'000);
    EXPECT_EQ(trace.speedup, 1);
    EXPECT_EQ(trace.efficiency, 1);
    EXPECT_EQ(trace.peakActivations, 4);
    EXPECT_EQ(engine::predictedRow(observed, same, engine::WhatIfKind::Same).predictionError, 0);
    Plan more = observed.plan;
    more.pipeline.microbatches = 16; // (16+3)·3 ms
    const engine::WhatIfRow row = engine::predictedRow(observed, predicted(observed, more));
    EXPECT_EQ(row.step, 57'000'000);
    EXPECT_DOUBLE_EQ(row.speedup, 16. / 57 / (8. / 33));
    EXPECT_EQ(row.predictionError, std::nullopt);
}

// A run whose network is not known to a plan: its median hand-off is the latency, beside which nothing of the plan's machine counts.
TEST(WhatIf, TakesTheTransfersOfAMeasuredTraceAsTheyWereSeen)
{
    const Plan plan = unequal();
    traces::Trace trace = simulated(plan);
    trace.info.label = traces::TraceLabel::Measured;
    const engine::Observed observed = seenIn(trace);
    EXPECT_EQ(observed.plan.costs.latency, 130'000 + 65'536);
    EXPECT_EQ(observed.plan.costs.bandwidth, 0);
    EXPECT_EQ(observed.split, engine::BackwardSplit::Halves) << "assumed times say nothing of a run's backward";
    EXPECT_EQ(predicted(observed, observed.plan).figures.makespan, figuresOf(plan).makespan);
    const engine::WhatIfRow performed = engine::performedRow(observed, predicted(observed, observed.plan), trace).value();
    EXPECT_EQ(performed.step, observed.figures.makespan);
    EXPECT_EQ(performed.label, traces::TraceLabel::Measured);
}

// What takes half the bytes takes neither half the time nor twice.
TEST(WhatIf, LeavesThePrecisionAsItIs)
{
    const engine::Observed observed = seenIn(simulated(engine::presetPlan("gpt-small").value()));
    Plan other = observed.plan;
    other.run.precision = engine::Precision::Bf16;
    const traces::Expected<engine::Prediction> refused = engine::predict(observed, other);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("run.precision: the trace is of fp32, and what bf16 takes and keeps does not follow from it; run the plan in bf16"));
}

TEST(WhatIf, SaysWhatATraceDoesNotTell)
{
    traces::Trace empty;
    empty.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    EXPECT_THAT(engine::observe(empty).error().message, HasSubstr("no computing slice"));

    traces::Trace broken;
    broken.info.label = traces::TraceLabel::Measured;
    broken.append(broken.addLane({.rank = traces::Rank{0}, .name = "rank 0"}),
                  {.begin = 0, .end = 5, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0})});
    EXPECT_THAT(engine::observe(broken).error().message, HasSubstr("broke off in its step 0"));

    const engine::Observed inference = seenIn(simulated(engine::withSchedule(Plan{}, "forward-only")));
    const traces::Expected<engine::Prediction> training = engine::predict(inference, engine::withSchedule(inference.plan, "1f1b"));
    ASSERT_FALSE(training.ok());
    EXPECT_THAT(training.error().message, HasSubstr("nothing comes back in the trace"));

    traces::Trace strange = simulated(Plan{});
    strange.info.planJson = "{\"stagecraft_plan\": 1, \"pipeline\": {\"ranks\": 3}}";
    const engine::Observed byOrder = seenIn(strange);
    EXPECT_THAT(byOrder.notes, Contains(HasSubstr("the order alone counts")));
    EXPECT_EQ(predicted(byOrder, byOrder.plan).figures.makespan, 33'000'000);
}

} // namespace
