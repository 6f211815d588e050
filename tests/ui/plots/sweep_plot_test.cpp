// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/sweep_plot.h"

#include "ui/export/plot_export.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <qcustomplot.h>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using engine::SweepFigure;

engine::Sweep sweepOf(const char* axis, std::vector<std::string> schedules)
{
    engine::SweepRequest request{.plan = {}, .schedules = std::move(schedules), .axis = engine::parseSweepAxis(axis).value()};
    return engine::runSweep(request).value();
}

std::vector<double> valuesOf(const QCPGraph& graph)
{
    std::vector<double> values;
    for (int i = 0; i < graph.dataCount(); ++i) values.push_back(graph.data()->at(i)->value);
    return values;
}

QCPGraph* named(SweepPlot& plot, const char* name)
{
    for (int i = 0; i < plot.plot().graphCount(); ++i)
        if (plot.plot().graph(i)->name() == QLatin1String(name)) return plot.plot().graph(i);
    return nullptr;
}

// p = 4: (p-1)/(m+p-1) of the papers
TEST(SweepPlot, DrawsEachScheduleSolidAndItsFormulaDashed)
{
    SweepPlot plot;
    plot.setSweep(sweepOf("microbatches=1,5,12", {"gpipe", "zb-auto"}));
    const QCPGraph* gpipe = named(plot, "GPipe");
    ASSERT_TRUE(gpipe);
    EXPECT_THAT(valuesOf(*gpipe), testing::ElementsAre(testing::DoubleEq(0.75), testing::DoubleEq(0.375), testing::DoubleEq(0.2)));
    EXPECT_EQ(gpipe->pen().style(), Qt::SolidLine);
    const QCPGraph* form = named(plot, "formula");
    ASSERT_TRUE(form);
    EXPECT_EQ(form->pen().style(), Qt::DashLine);
    EXPECT_THAT(valuesOf(*form), testing::ElementsAre(testing::DoubleEq(0.75), testing::DoubleEq(0.375), testing::DoubleEq(0.2)));
    EXPECT_TRUE(named(plot, "by formula")); // in the legend
    EXPECT_EQ(plot.plot().graphCount(), 4); // zb-auto has no formula
}

TEST(SweepPlot, ShowsSeveralFiguresWithOneLegend)
{
    SweepPlot plot;
    const engine::Sweep sweep = sweepOf("microbatches=1..16*2", {"gpipe", "1f1b"});
    plot.setSweep(sweep);
    plot.setFigures(mainFigures(sweep));
    EXPECT_EQ(plot.plot().axisRectCount(), 4);
    EXPECT_EQ(plot.plot().axisRect(0)->axis(QCPAxis::atLeft)->label(), "bubble of the makespan");
    EXPECT_EQ(plot.plot().axisRect(3)->axis(QCPAxis::atLeft)->label(), "throughput in micro-batches/s");
    EXPECT_EQ(plot.plot().axisRect(0)->axis(QCPAxis::atBottom)->scaleType(), QCPAxis::stLogarithmic);
}

TEST(SweepPlot, TellsPointsByTheKeys)
{
    SweepPlot plot;
    plot.resize(500, 300);
    plot.setSweep(sweepOf("microbatches=1,5,12", {"gpipe", "1f1b"}));
    plot.show();
    QSignalSpy told(&plot, &SweepPlot::pointTold);
    QTest::keyClick(&plot, Qt::Key_Right);
    QTest::keyClick(&plot, Qt::Key_Right);
    EXPECT_EQ(told.last().first().toString(),
              "GPipe, micro-batches m 5: bubble of the makespan 37.5 %, by formula 37.5 % = (p−1)/(m+p−1)");
    QTest::keyClick(&plot, Qt::Key_Down);
    EXPECT_TRUE(told.last().first().toString().startsWith("1F1B, micro-batches m 5:"));
    QTest::keyClick(&plot, Qt::Key_End);
    EXPECT_TRUE(told.last().first().toString().startsWith("1F1B, micro-batches m 12:"));
    EXPECT_EQ(plot.accessibleDescription(), told.last().first().toString());
}

TEST(SweepPlot, HasNothingToTellWithoutASweep)
{
    SweepPlot plot;
    plot.show();
    QTest::keyClick(&plot, Qt::Key_Right);
    EXPECT_FALSE(plot.place());
}

TEST(SweepPlot, IsExportedInEachForm)
{
    const QTemporaryDir folder;
    const engine::Sweep sweep = sweepOf("ranks=1..4", {"1f1b"});
    for (const auto& [name, begins] : {std::pair{"a.png", "\x89PNG"}, {"b.svg", "<?xml"}, {"c.pdf", "%PDF"}}) {
        ASSERT_TRUE(exportSweep(sweep, {}, folder.filePath(name)).ok());
        QFile file(folder.filePath(name));
        ASSERT_TRUE(file.open(QIODevice::ReadOnly));
        EXPECT_TRUE(file.readAll().startsWith(begins));
    }
    const traces::Expected<void> wrong = exportSweep(sweep, {}, folder.filePath("d.gif"));
    ASSERT_FALSE(wrong.ok());
    EXPECT_THAT(wrong.error().message, testing::HasSubstr(".png, .svg or .pdf"));
    EXPECT_EQ(sweepTitle(sweep, {SweepFigure::BubbleSpan}), "Bubble of the span against ranks p, m=8");
}

} // namespace
} // namespace stagecraft::ui
