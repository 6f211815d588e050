// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/what_if_window.h"

#include "engine/plan/plan_json.h"
#include "engine/simulate/simulate.h"
#include "tests/ui/support/traces.h"
#include "ui/explore/schedule_list.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using engine::WhatIfKind;
using testing::HasSubstr;

std::string errorOf(const engine::Plan& plan, const WhatIfChanges& changes)
{
    const traces::Expected<std::vector<engine::Plan>> plans = changedPlans(plan, changes);
    return plans.ok() ? "" : plans.error().message;
}

TEST(WhatIfChanges, BecomeAPlanForEachScheduleWithTheChunksThatItTakes)
{
    const engine::Plan plan = engine::presetPlan("gpt-small").value(); // 1F1B on 2 ranks
    const auto plans = changedPlans(plan, {.schedules = {"gpipe", "interleaved", "1f1b"}, .microbatches = "16"}).value();
    ASSERT_EQ(plans.size(), 3U);
    EXPECT_EQ(plans[0].pipeline.schedule, "gpipe");
    EXPECT_EQ(plans[1].pipeline.chunks, 2);
    for (const engine::Plan& other : plans) EXPECT_EQ(other.pipeline.microbatches, 16);
    const auto slower = changedPlans(plan, {.schedules = {}, .stageTimes = "1, 2.5"}).value();
    ASSERT_EQ(slower.size(), 1U);
    EXPECT_EQ(slower[0].costs.stageScale, (std::vector<double>{1, 2.5}));
    EXPECT_EQ(changedPlans(plan, {.schedules = {"gpipe"}, .partition = "2, 8"}).value()[0].partition, (engine::Partition{2, 8}));
    EXPECT_EQ(changedPlans(plan, {.schedules = {"gpipe"}, .partition = "Et*3|t*5,L"}).value()[0].partition, (engine::Partition{4, 6}));
    EXPECT_EQ(partitionOf(changedPlans(plan, {.schedules = {"gpipe"}, .partition = "uniform"}).value()[0]).value(), (engine::Partition{5, 5}));
}

TEST(WhatIfChanges, SayWhatCannotBe)
{
    const engine::Plan plan = engine::presetPlan("gpt-small").value();
    EXPECT_THAT(errorOf(plan, {}), HasSubstr("nothing is changed"));
    EXPECT_THAT(errorOf(plan, {.schedules = {"1f1b"}}), HasSubstr("nothing is changed"));
    EXPECT_THAT(errorOf(plan, {.schedules = {}, .microbatches = "0"}), HasSubstr("micro-batches: \"0\" is no whole number"));
    EXPECT_THAT(errorOf(plan, {.schedules = {}, .partition = "1,1"}), HasSubstr("they sum up to 2, and the model has 10 layers"));
    EXPECT_THAT(errorOf(plan, {.schedules = {}, .partition = "even"}), HasSubstr("layers of each stage: no rule (flops, uniform"));
    EXPECT_THAT(errorOf(plan, {.schedules = {}, .stageTimes = "1"}), HasSubstr("it has 1 entry, and there are 2 stages"));
    EXPECT_THAT(errorOf(plan, {.schedules = {}, .stageTimes = "1,fast"}), HasSubstr("\"fast\" is no factor"));
    EXPECT_THAT(errorOf({}, {.schedules = {}, .partition = "1,1,1,1"}), HasSubstr("no model"));
}

class WhatIfWindowTest : public testing::Test {
protected:
    WhatIfWindowTest() { window.show(); }

    // A simulated trace of the plan 1f1b on 4 ranks with 8 micro-batches.
    void openSimulation()
    {
        const engine::Plan plan;
        traces::Trace trace = engine::simulate(engine::scheduleOf(plan).value(), engine::costsOf(plan).value()).value();
        trace.info.planJson = engine::writePlan(plan);
        ASSERT_TRUE(bench.showTrace(std::move(trace), "folder/one.strace").ok());
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = window.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    bool predict(const std::vector<std::string>& schedules)
    {
        the<ScheduleList>("whatIfSchedules").check(schedules);
        QSignalSpy predicted(&window, &WhatIfWindow::predicted);
        QTest::mouseClick(&the<QPushButton>("whatIfStart"), Qt::LeftButton);
        return predicted.wait();
    }

    Workbench bench;
    WhatIfWindow window{bench};
};

TEST_F(WhatIfWindowTest, WaitsForATraceAndNamesIt)
{
    EXPECT_FALSE(the<QPushButton>("whatIfStart").isEnabled());
    EXPECT_TRUE(the<QPushButton>("whatIfStart").toolTip().contains("No trace is open"));
    openSimulation();
    EXPECT_TRUE(the<QPushButton>("whatIfStart").isEnabled());
    EXPECT_EQ(the<QComboBox>("whatIfTrace").currentText(), "one.strace");
    bench.closeOther();
    EXPECT_FALSE(the<QPushButton>("whatIfStart").isEnabled());
}

// 33 slots of F = 1, B = 2 for 1F1B and GPipe with p = 4, m = 8; ZB-H1: 27.
TEST_F(WhatIfWindowTest, PredictsEachScheduleAndHowFarOffItIsForTheTraceItself)
{
    openSimulation();
    ASSERT_TRUE(predict({"gpipe", "zb-h1"}));
    ASSERT_EQ(window.rows().size(), 4U);
    EXPECT_EQ(window.rows()[0].kind, WhatIfKind::Trace);
    EXPECT_EQ(window.rows()[1].kind, WhatIfKind::Same);
    EXPECT_EQ(window.rows()[1].predictionError, 0.0);
    const auto& table = the<QTableWidget>("whatIfTable");
    EXPECT_EQ(table.item(2, 1)->text(), "GPipe");
    EXPECT_EQ(table.item(2, 3)->text(), "33 ms");
    EXPECT_EQ(table.item(3, 1)->text(), "ZB-H1");
    EXPECT_EQ(table.item(3, 3)->text(), "27 ms");
    EXPECT_EQ(table.item(3, 5)->text(), "1.222"); // 33 / 27
    EXPECT_EQ(window.scene().sourceCount(), 2) << "the trace, and the first that is other";
}

TEST_F(WhatIfWindowTest, ShowsTheChosenPredictionBelowTheTrace)
{
    openSimulation();
    ASSERT_TRUE(predict({"gpipe", "zb-h1"}));
    the<QTableWidget>("whatIfTable").selectRow(3);
    ASSERT_EQ(window.scene().sourceCount(), 2);
    EXPECT_EQ(window.scene().sources()[1].label, "ZB-H1, predicted");
    EXPECT_EQ(window.scene().sources()[1].trace->extent().length(), 27'000'000);
}

TEST_F(WhatIfWindowTest, TellsWhatItCannotPredictAndKeepsTheRest)
{
    openSimulation();
    the<QLineEdit>("whatIfMicrobatches").setText("6");
    ASSERT_TRUE(predict({"gpipe", "dualpipe"}));
    EXPECT_EQ(window.rows().size(), 3U);
    EXPECT_TRUE(the<QLabel>("whatIfProblem").text().startsWith("dualpipe: "));
    the<QLineEdit>("whatIfMicrobatches").setText("many");
    ASSERT_TRUE(predict({"gpipe"}));
    EXPECT_EQ(window.rows().size(), 2U) << "the trace itself, and its own prediction";
    EXPECT_TRUE(the<QLabel>("whatIfProblem").text().contains("\"many\""));
}

TEST_F(WhatIfWindowTest, RunsNothingForATraceThatWasNoRun)
{
    openSimulation();
    ASSERT_TRUE(predict({"gpipe"}));
    EXPECT_FALSE(the<QPushButton>("whatIfRun").isEnabled());
    EXPECT_TRUE(the<QPushButton>("whatIfRun").toolTip().contains("The trace is simulated"));
}

} // namespace
} // namespace stagecraft::ui
