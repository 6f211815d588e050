// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/trouble_box.h"

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QSpinBox>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using engine::StageTrouble;

class TroubleBoxTest : public testing::Test {
protected:
    TroubleBoxTest()
    {
        QObject::connect(&box, &TroubleBox::asked, [this](const StageTrouble& trouble) { asked.push_back(trouble); });
        engine::Plan plan;
        plan.pipeline.ranks = 3;
        plan.run.slowdown = {1, 2, 1};
        box.beginRun(plan);
        box.setRunning(true);
    }
    TroubleBox box;
    QSpinBox& stage = *box.findChild<QSpinBox*>("troubleStage");
    QDoubleSpinBox& factor = *box.findChild<QDoubleSpinBox*>("troubleFactor");
    QCheckBox& held = *box.findChild<QCheckBox*>("troubleHeld");
    std::vector<StageTrouble> asked;
};

TEST_F(TroubleBoxTest, AsksForTheStageThatIsChosen)
{
    EXPECT_EQ(stage.maximum(), 2);
    stage.setValue(2);
    EXPECT_TRUE(asked.empty()); // looking asks nothing
    factor.setValue(4);
    held.setChecked(true);
    held.setChecked(false);
    EXPECT_EQ(asked, (std::vector<StageTrouble>{{.stage = 2, .factor = 4.0}, {.stage = 2, .held = true}, {.stage = 2, .held = false}}));
}

TEST_F(TroubleBoxTest, ShowsWhatWasAskedForEachStage)
{
    stage.setValue(1);
    EXPECT_EQ(factor.value(), 2); // the plan's
    stage.setValue(0);
    held.setChecked(true);
    stage.setValue(1);
    EXPECT_FALSE(held.isChecked());
    stage.setValue(0);
    EXPECT_TRUE(held.isChecked());
    engine::Plan next;
    next.pipeline.ranks = 1;
    box.beginRun(next); // from the start again
    EXPECT_FALSE(held.isChecked());
    EXPECT_EQ(stage.maximum(), 0);
}

TEST_F(TroubleBoxTest, SaysThatNothingRuns)
{
    EXPECT_TRUE(factor.isEnabled());
    box.setRunning(false);
    EXPECT_FALSE(factor.isEnabled());
    EXPECT_TRUE(factor.toolTip().contains("Nothing runs."));
    EXPECT_FALSE(held.isEnabled());
}

} // namespace
} // namespace stagecraft::ui
