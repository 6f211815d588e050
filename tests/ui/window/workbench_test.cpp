// SPDX-License-Identifier: GPL-3.0-or-later
//
// The workbench without a window: simulation, run (against the fake worker), taking measured costs over, opened traces.
#include "ui/window/workbench.h"

#include "engine/plan/plan_json.h"
#include "traces/format/journal.h"
#include "ui/bridge/text.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using engine::SessionState;

class WorkbenchTest : public testing::Test {
protected:
    WorkbenchTest() { bench.run().setCommand({STAGECRAFT_FAKE_WORKER, {}}); }
    void open(const char* preset, const char* name)
    {
        engine::Plan plan = engine::presetPlan(preset).value();
        plan.name = name;
        plan.run.steps = 2;
        bench.document().startFrom(plan);
    }
    bool waitFor(SessionState state)
    {
        return QTest::qWaitFor([&] { return bench.run().state() == state; });
    }
    Workbench bench;
};

TEST_F(WorkbenchTest, ShowsTheSimulationOfThePlan)
{
    open("hello", "hello");
    EXPECT_EQ(bench.scene().sourceCount(), 1);
    EXPECT_EQ(bench.simulatedSource(), 0);
    EXPECT_FALSE(bench.otherSource());
    EXPECT_EQ(bench.scene().trace(0).info.label, traces::TraceLabel::Simulated);
}

// The engine would not answer with a run, and the window would wait for one.
TEST_F(WorkbenchTest, StartsNoRunOfAPlanThatAnEngineCannotRead)
{
    engine::Plan plan = engine::presetPlan("hello").value();
    plan.run.learningRate = 1e30;
    bench.document().startFrom(plan);
    const traces::Expected<void> started = bench.startRun();
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, testing::HasSubstr("learning_rate"));
    EXPECT_FALSE(bench.run().active());
}

TEST_F(WorkbenchTest, ShowsARunBelowTheSimulationWhileItGrows)
{
    open("hello", "hold");
    ASSERT_TRUE(bench.startRun().ok());
    EXPECT_EQ(bench.otherSource(), 1);
    ASSERT_TRUE(waitFor(SessionState::Running));
    ASSERT_TRUE(QTest::qWaitFor([&] { return bench.scene().trace(1).sliceCount() > 0; }));
    EXPECT_TRUE(bench.scene().growing());
    bench.run().pause();
    ASSERT_TRUE(waitFor(SessionState::Paused));
    bench.run().resume();
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_FALSE(bench.scene().growing());
    EXPECT_EQ(bench.run().finishedSteps(), 2);
    EXPECT_EQ(bench.run().lastLoss(), 0.5);
    ASSERT_TRUE(bench.run().result());
}

TEST_F(WorkbenchTest, SaysWhyAPlanWithoutAModelCannotRun)
{
    open("twelve-layers", "twelve-layers");
    engine::Plan plan = bench.document().plan();
    plan.model = {};
    plan.costs.source = engine::CostSource::Assumed;
    bench.document().edit(plan, "model", "model");
    const auto started = bench.startRun();
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, testing::HasSubstr("no model"));
    EXPECT_FALSE(bench.other());
}

// Whoever is asked about another plan than the lab's hears the same.
TEST_F(WorkbenchTest, SaysWhyAPlanForGpusCannotRunWhereTheEngineHasNone)
{
    open("hello", "hello");
    const engine::Plan onCpu = bench.document().plan();
    engine::Plan onGpus = onCpu;
    onGpus.run.device = engine::DeviceKind::Cuda;
    bench.document().edit(onGpus, "the device");
    EXPECT_EQ(bench.whyNotRunnable(), "") << "the engine has not told of anything yet";
    QSignalSpy changed(&bench, &Workbench::runnableChanged);
    bench.setEngineMachine({.gpus = {}, .noGpus = "No GPU can be used where the engine runs: no NVIDIA driver", .told = true});
    EXPECT_EQ(changed.count(), 1);
    EXPECT_THAT(bench.whyNotRunnable().toStdString(), testing::HasSubstr("no NVIDIA driver. Choose the device CPU"));
    EXPECT_EQ(bench.whyNotRunnable(onCpu), "");
    bench.document().edit(onCpu, "the device");
    EXPECT_EQ(bench.whyNotRunnable(), "");
    EXPECT_NE(bench.whyNotRunnable(onGpus), "");
    bench.setEngineMachine({.gpus = {}, .noGpus = "The engine did not tell of GPUs: it is slow", .told = false});
    EXPECT_EQ(bench.whyNotRunnable(onGpus), "") << "it may have some";
}

TEST_F(WorkbenchTest, SaysOfARunThatItIsOnGpus)
{
    open("hello", "hello");
    engine::Plan plan = bench.document().plan();
    plan.run.device = engine::DeviceKind::Cuda;
    bench.document().startFrom(plan);
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_TRUE(bench.run().label().startsWith("run of hello, 2 ranks, threads on GPUs, ")) << bench.run().label().toStdString();
}

TEST_F(WorkbenchTest, TakesMeasuredTimesOverAndLaysTheNewSimulationOverTheRun)
{
    open("hello", "hello");
    EXPECT_FALSE(bench.whyNoMeasuredCosts().isEmpty());
    const auto before = bench.simulation().simulation().trace;
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    ASSERT_TRUE(bench.whyNoMeasuredCosts().isEmpty()) << bench.whyNoMeasuredCosts().toStdString();
    ASSERT_TRUE(bench.useMeasuredCosts().ok());
    const engine::Plan& plan = bench.document().plan();
    EXPECT_EQ(plan.costs.source, engine::CostSource::Measured);
    EXPECT_EQ(plan.costs.measured, bench.run().result()->measuredCosts);
    EXPECT_EQ(plan.costs.latency, 5000);
    EXPECT_THAT(plan.costs.measuredFrom, testing::HasSubstr("run of hello, 2 rank"));
    EXPECT_EQ(bench.view(), ViewKind::Overlaid);
    EXPECT_EQ(bench.scene().arrangement(), Arrangement::Overlaid);
    EXPECT_NE(bench.simulation().simulation().trace, before);
    const traces::Lane& lane = bench.scene().trace(0).lane(traces::LaneId{0});
    EXPECT_EQ(lane.end(0) - lane.begin(0), 2'000'000) << "the measured forward of stage 0";
    bench.document().undoStack().undo();
    EXPECT_NE(bench.document().plan().costs.source, engine::CostSource::Measured);
}

TEST_F(WorkbenchTest, DoesNotTakeTimesOverIntoAnotherNumberOfStages)
{
    open("mlp", "mlp");
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    bench.document().edit(withShape(bench.document().plan(), 2, 1), "ranks", "ranks");
    EXPECT_TRUE(bench.whyNoMeasuredCosts().contains("4 stages"));
    EXPECT_FALSE(bench.useMeasuredCosts().ok());
}

// The times say nothing about a stage with other layers or other micro-batches, though the number of stages is the same.
TEST_F(WorkbenchTest, DoesNotTakeTimesOverThatWereMeasuredOtherwise)
{
    open("mlp", "mlp");
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    const engine::Plan ran = bench.document().plan();
    const auto obstacleOf = [&](auto&& change) {
        engine::Plan plan = ran;
        change(plan);
        bench.document().edit(plan, "change", "");
        EXPECT_EQ(bench.useMeasuredCosts().ok(), bench.whyNoMeasuredCosts().isEmpty());
        return bench.whyNoMeasuredCosts().toStdString();
    };
    EXPECT_THAT(obstacleOf([](engine::Plan& plan) { plan.model.microbatchRows *= 4; }), testing::HasSubstr("rows"));
    EXPECT_THAT(obstacleOf([](engine::Plan& plan) { plan.model = engine::presetPlan("gpt-small").value().model; }),
                testing::AnyOf(testing::HasSubstr("rows"), testing::HasSubstr("another model")));
    EXPECT_THAT(obstacleOf([](engine::Plan& plan) { plan.partition = {1, 2, 3, 2}; }), testing::HasSubstr("1, 2, 3, 2"));
    EXPECT_THAT(obstacleOf([](engine::Plan& plan) {
                    plan.pipeline = {.schedule = "interleaved", .ranks = 2, .chunks = 2, .microbatches = 8, .customSchedule = {}};
                }),
                testing::HasSubstr("had 1 chunk per rank, the plan has 2;"));
    EXPECT_EQ(obstacleOf([](engine::Plan& plan) { plan.pipeline.schedule = "gpipe"; }), "") << "that is a what-if";
}

TEST_F(WorkbenchTest, ShowsTheTracesAsTheViewSays)
{
    open("hello", "hello");
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    bench.setView(ViewKind::SimulatedOnly);
    EXPECT_EQ(bench.scene().sourceCount(), 1);
    EXPECT_FALSE(bench.otherSource());
    bench.setView(ViewKind::OtherOnly);
    EXPECT_EQ(bench.otherSource(), 0);
    EXPECT_EQ(bench.scene().trace(0).info.label, traces::TraceLabel::Measured);
    bench.setView(ViewKind::Overlaid);
    EXPECT_EQ(bench.scene().sourceCount(), 2);
    bench.closeOther();
    EXPECT_EQ(bench.scene().sourceCount(), 1);
}

TEST_F(WorkbenchTest, OpensATraceAndRefusesToDuringARun)
{
    open("hello", "hold");
    QTemporaryDir folder;
    const QString file = folder.filePath("kept.strace");
    ASSERT_TRUE(traces::saveJournal(*bench.simulation().simulation().trace, fromQt(file)).ok());
    ASSERT_TRUE(bench.openTrace(file).ok());
    EXPECT_EQ(bench.view(), ViewKind::OtherOnly);
    EXPECT_FALSE(bench.otherIsRun());
    EXPECT_EQ(bench.scene().sourceCount(), 1);
    EXPECT_FALSE(bench.openTrace(folder.filePath("missing.strace")).ok());

    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Running));
    EXPECT_FALSE(bench.openTrace(file).ok());
    EXPECT_TRUE(bench.otherIsRun());
    EXPECT_EQ(bench.view(), ViewKind::Stacked) << "the run is to be seen beside its simulation";
    EXPECT_EQ(bench.scene().sourceCount(), 2);
}

TEST_F(WorkbenchTest, GoesBackToTheStackedViewWhenATraceIsClosed)
{
    open("hello", "hello");
    QTemporaryDir folder;
    const QString file = folder.filePath("kept.strace");
    ASSERT_TRUE(traces::saveJournal(*bench.simulation().simulation().trace, fromQt(file)).ok());
    ASSERT_TRUE(bench.openTrace(file).ok());
    QSignalSpy view(&bench, &Workbench::viewChanged);
    bench.closeOther();
    EXPECT_EQ(bench.view(), ViewKind::Stacked);
    EXPECT_EQ(view.size(), 1);
    EXPECT_EQ(bench.simulatedSource(), 0);
}

TEST_F(WorkbenchTest, KeepsRunsThatOthersTookThePlaceOf)
{
    QSignalSpy dropped(&bench, &Workbench::runDropped);
    std::vector<std::shared_ptr<const traces::Trace>> ran;
    for (std::size_t i = 0; i <= Workbench::kMostRuns; ++i) {
        open("hello", "hello");
        ASSERT_TRUE(bench.startRun().ok());
        ASSERT_TRUE(waitFor(SessionState::Finished));
        ran.push_back(bench.run().trace());
    }
    ASSERT_EQ(bench.runs().size(), Workbench::kMostRuns);
    EXPECT_EQ(dropped.size(), 1) << "and it is told";
    EXPECT_EQ(bench.runs().front().trace, ran.back());
    EXPECT_TRUE(bench.otherIsRun());

    bench.showRun(1);
    EXPECT_EQ(bench.other(), ran[ran.size() - 2]);
    EXPECT_FALSE(bench.otherIsRun()) << "the result at hand is the newest run's";
    EXPECT_EQ(bench.view(), ViewKind::Stacked);
    EXPECT_TRUE(sourceLabel(bench.scene().sources()[1]).contains("run of hello")) << "told apart from the newest";

    QTemporaryDir folder;
    const QString file = folder.filePath("kept.strace");
    ASSERT_TRUE(traces::saveJournal(*bench.simulation().simulation().trace, fromQt(file)).ok());
    ASSERT_TRUE(bench.openTrace(file).ok());
    bench.closeOther();
    bench.showRun(0);
    EXPECT_TRUE(bench.otherIsRun());
}

TEST_F(WorkbenchTest, KeepsNoRunThatNeverCameToAnything)
{
    open("hello", "hello");
    bench.run().setCommand({"/no/such/engine", {}});
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Failed));
    bench.run().setCommand({STAGECRAFT_FAKE_WORKER, {}});
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_EQ(bench.runs().size(), 1U);
}

TEST_F(WorkbenchTest, KeepsTheRunsTracesApart)
{
    open("hello", "late"); // leaves something that comes after its end
    QSignalSpy warnings(&bench.run(), &RunController::warning);
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Finished));
    const auto first = bench.run().trace();
    const std::size_t slices = first->sliceCount();
    open("hello", "hello");
    ASSERT_TRUE(bench.startRun().ok());
    EXPECT_NE(bench.run().trace(), first);
    ASSERT_TRUE(waitFor(SessionState::Finished));
    EXPECT_EQ(first->sliceCount(), slices);
    EXPECT_EQ(bench.run().trace()->sliceCount(), slices);
    EXPECT_EQ(warnings.size(), 0);
}

TEST_F(WorkbenchTest, KeepsWhatRanWhenAStageFails)
{
    open("hello", "fail");
    QSignalSpy failed(&bench.run(), &RunController::failed);
    ASSERT_TRUE(bench.startRun().ok());
    ASSERT_TRUE(waitFor(SessionState::Failed));
    ASSERT_EQ(failed.size(), 1);
    const QString text = failed.front().front().toString();
    EXPECT_TRUE(text.contains("stage 1") && text.contains("micro-batch 2") && text.contains("learning rate")) << text.toStdString();
    EXPECT_GT(bench.run().trace()->sliceCount(), 0U);
}

} // namespace
} // namespace stagecraft::ui
