// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/rank_figures_model.h"

#include "tests/ui/support/traces.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

QString cause(const RankFiguresModel& model, int row)
{
    return model.data(model.index(row, RankFiguresModel::Cause)).toString();
}

TEST(RankFiguresModel, NamesTheStageThatARankWaitsFor)
{
    const auto trace = support::twoRanks();
    const traces::StepFigures figures = traces::stepFigures(*trace, traces::Step{0}).value();
    const GapTable gaps(traces::gapsOf(*trace, traces::Step{0}));
    RankFiguresModel model;
    model.setFigures(&figures, gaps.idle());
    EXPECT_EQ(cause(model, 0), "stage 1"); // 3 of 9 ms
    EXPECT_EQ(cause(model, 1), "draining"); // 2 ms, against 1 ms of filling
    EXPECT_TRUE(model.data(model.index(0, 0), Qt::ToolTipRole).toString().contains("waiting for stage 1: 3 ms"));
    model.setFigures(&figures); // the gaps of a long step come later
    EXPECT_EQ(cause(model, 0), "waiting for stage");
}

} // namespace
} // namespace stagecraft::ui
