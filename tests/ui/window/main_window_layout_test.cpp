// SPDX-License-Identifier: GPL-3.0-or-later
//
// Panels, sizes and themes.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/lab/fold_box.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/log_panel.h"
#include "ui/window/selection_panel.h"

#include <QComboBox>
#include <QDockWidget>
#include <QHeaderView>
#include <QScrollBar>
#include <QSpinBox>
#include <QSplitter>
#include <QStyleOptionComboBox>
#include <QTableView>
#include <QToolButton>

#include <algorithm>

namespace stagecraft::ui {
namespace {

TEST_F(MainWindowTest, PutsThePanelsOnTheRightIntoTabsOnANarrowScreen)
{
    auto& figures = the<QDockWidget>("figuresDock");
    auto& selection = the<QDockWidget>("selectionDock");
    const auto tabbed = [&] { return window->tabifiedDockWidgets(&figures).contains(&selection); };
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_TRUE(tabbed());
    openPlan("hello", "hello");
    window->timeline().selectNext();
    EXPECT_FALSE(selection.visibleRegion().isEmpty()) << "what was asked for is in front";
    window->timeline().clearSelection();
    EXPECT_FALSE(figures.visibleRegion().isEmpty());
    window->resize(1920, 1080);
    QCoreApplication::processEvents();
    EXPECT_FALSE(tabbed());
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_TRUE(tabbed());
}

// A formula of many terms takes a second line instead.
TEST_F(MainWindowTest, LeavesTheTimelineItsWidthHoweverLongAFormulaIs)
{
    window->resize(1280, 800);
    openPlan("imbalanced", "hops");
    engine::Plan plan = window->workbench().document().plan();
    plan.costs.stageScale.clear();
    plan.costs.latency = 100'000; // 1F1B's makespan has a term for hops
    window->workbench().document().edit(plan, "latency");
    const auto& simulation = window->workbench().simulation();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !simulation.busy() && simulation.simulation().costs.transfer > 0; }));
    QCoreApplication::processEvents();
    const std::vector<FigureRow>& rows = window->figures().rows();
    ASSERT_TRUE(std::any_of(rows.begin(), rows.end(), [](const FigureRow& row) { return row.formula.size() > 60; }));
    EXPECT_LE(the<QDockWidget>("figuresDock").width(), 380);
}

// Half of a small screen is the timeline's; the panels share the rest, each whole.
TEST_F(MainWindowTest, PutsAllPanelsIntoOneColumnOnASmallScreen)
{
    const auto front = [&] {
        QStringList names;
        for (const char* name : {"labDock", "figuresDock", "selectionDock"})
            if (!the<QDockWidget>(name).visibleRegion().isEmpty()) names << name;
        return names.join(' ').toStdString();
    };
    runUntil("hello", engine::SessionState::Finished); // three columns of figures
    for (const QSize size : {QSize(1000, 700), QSize(800, 600)}) { // by and by, as a mouse does
        window->resize(size);
        QCoreApplication::processEvents();
    }
    EXPECT_EQ(window->size(), QSize(800, 600)) << "it can be as small as that";
    EXPECT_EQ(front(), "labDock");
    EXPECT_GE(window->timeline().width(), 360);
    EXPECT_GE(window->timeline().height(), 120);
    EXPECT_GE(window->log().width(), 300);
    window->timeline().selectNext();
    EXPECT_EQ(front(), "selectionDock") << "what was asked for";
    window->timeline().clearSelection();
    EXPECT_EQ(front(), "labDock") << "what was there before";
    the<QDockWidget>("figuresDock").raise();
    QCoreApplication::processEvents();
    EXPECT_EQ(front(), "figuresDock");
    window->timeline().selectNext();
    window->timeline().clearSelection();
    EXPECT_EQ(front(), "figuresDock");
    const QWidget& viewport = *window->figures().viewport();
    for (const QLabel* label : window->figures().findChildren<QLabel*>()) {
        if (!label->isVisible()) continue;
        EXPECT_LE(label->mapTo(&viewport, label->rect().topRight()).x(), viewport.width()) << label->text().toStdString();
    }
    window->actions().engineCommand->trigger();
    EXPECT_EQ(front(), "labDock") << "where the field is";
    window->resize(1280, 800);
    QCoreApplication::processEvents();
    EXPECT_EQ(front(), "labDock figuresDock");
    window->resize(1920, 1080);
    QCoreApplication::processEvents();
    EXPECT_EQ(front(), "labDock figuresDock selectionDock");
    window->resize(800, 600);
    QCoreApplication::processEvents();
    EXPECT_EQ(front(), "labDock");
    window->addDockWidget(Qt::RightDockWidgetArea, &the<QDockWidget>("selectionDock")); // the user's own place
    window->resize(1920, 1080);
    QCoreApplication::processEvents();
    EXPECT_TRUE(window->tabifiedDockWidgets(&the<QDockWidget>("labDock")).contains(&the<QDockWidget>("figuresDock")));
}

TEST_F(MainWindowTest, KeepsTheViewInTheBarOnASmallScreen)
{
    openPlan("hello", "hello");
    window->resize(800, 600);
    the<QSpinBox>("microbatches").setValue(1'000'000); // is simulated beside the window: there is a button to cancel it
    ASSERT_TRUE(QTest::qWaitFor([&] { return the<QToolButton>("cancelButton").isVisible(); }));
    EXPECT_TRUE(the<QComboBox>("view").isVisible());
    the<QToolButton>("cancelButton").click();
}

TEST_F(MainWindowTest, ScrollsASelectionThatDoesNotFit)
{
    SelectionPanel panel;
    panel.resize(300, 80);
    panel.show();
    ItemDetails details;
    details.title = "0F0";
    for (int i = 0; i < 20; ++i) details.lines.push_back({"Name", "value"});
    panel.showDetails(details);
    QCoreApplication::processEvents();
    EXPECT_GT(panel.verticalScrollBar()->maximum(), 0);
}

// At the size that the window has at first; eight stages are what the model has layers for.
TEST_F(MainWindowTest, CutsNothingOffInTheLab)
{
    window->resize(1280, 800);
    openPlan("mlp", "mlp");
    engine::Plan plan = withShape(window->workbench().document().plan(), 8, 1);
    plan.costs.source = engine::CostSource::Model;
    window->workbench().document().edit(plan, "ranks", "ranks");
    for (FoldBox* box : window->findChildren<FoldBox*>()) box->setOpen(true);
    QCoreApplication::processEvents(); // layouts
    auto& partition = the<QLineEdit>("partition");
    EXPECT_EQ(partition.text(), "1, 1, 1, 1, 1, 1, 1, 1");
    EXPECT_GE(partition.contentsRect().width() - 4, partition.fontMetrics().horizontalAdvance("16, 16, 16, 16, 16, 16, 16, 16"));
    for (const char* name : {"model", "partitionRule", "schedule", "costSource", "runMode", "device", "tracing", "check", "optimizer", "rateCourse", "dataSource",
                             "dataTokens", "handoff", "activationAccount"}) {
        auto& box = the<QComboBox>(name);
        QStyleOptionComboBox option;
        option.initFrom(&box);
        const QRect field = box.style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, &box);
        for (int i = 0; i < box.count(); ++i)
            EXPECT_GE(field.width(), box.fontMetrics().horizontalAdvance(box.itemText(i))) << name << ": " << box.itemText(i).toStdString();
    }
    for (const char* name : {"stageCosts", "layers"}) {
        auto& table = the<QTableView>(name);
        for (int column = 0; column < table.model()->columnCount(); ++column) {
            const int width = table.columnWidth(column);
            const std::string title = table.model()->headerData(column, Qt::Horizontal).toString().toStdString();
            EXPECT_GE(width, table.horizontalHeader()->sectionSizeHint(column)) << name << ": " << title;
            EXPECT_GE(width, static_cast<QAbstractItemView&>(table).sizeHintForColumn(column)) << name << ": " << title;
        }
        EXPECT_LE(table.horizontalHeader()->length(), table.viewport()->width()) << name;
    }
}

TEST_F(MainWindowTest, SwitchesAndKeepsTheTheme)
{
    openPlan("hello", "hello");
    const QColor light = window->palette().color(QPalette::Window);
    press(window->actions().dark);
    EXPECT_LT(window->palette().color(QPalette::Window).lightness(), light.lightness());
    EXPECT_EQ(window->timeline().theme().kind, ThemeKind::Dark);
    EXPECT_TRUE(window->actions().dark->isChecked());
    window.reset();
    openWindow();
    EXPECT_EQ(window->theme().kind, ThemeKind::Dark);
    press(window->actions().light);
    EXPECT_EQ(window->theme().kind, ThemeKind::Light);
}

TEST_F(MainWindowTest, TakesAThemeOfTheCommandLineForOnce)
{
    press(window->actions().light);
    window.reset();
    openWindow(ThemeKind::Dark);
    EXPECT_EQ(window->theme().kind, ThemeKind::Dark);
    EXPECT_TRUE(window->actions().dark->isChecked());
    window.reset();
    openWindow();
    EXPECT_EQ(window->theme().kind, ThemeKind::Light);
}

TEST_F(MainWindowTest, WritesTheLogAnewInTheColoursOfAnotherTheme)
{
    press(window->actions().light);
    window->log().problem("it went wrong");
    window->log().warn("take care");
    const QString text = window->log().toPlainText();
    const auto uses = [&](const QColor& colour) { return window->log().document()->toHtml().contains(colour.name()); };
    const Theme light = Theme::of(ThemeKind::Light);
    const Theme dark = Theme::of(ThemeKind::Dark);
    EXPECT_TRUE(uses(light.error) && uses(light.warning));
    press(window->actions().dark);
    EXPECT_TRUE(uses(dark.error) && uses(dark.warning));
    EXPECT_FALSE(uses(light.error) || uses(light.warning) || uses(light.mutedText));
    EXPECT_EQ(window->log().toPlainText(), text);
    EXPECT_EQ(window->log().problemCount(), 1);
}

TEST_F(MainWindowTest, RestoresItsPanels)
{
    window->resize(1100, 700);
    the<QDockWidget>("selectionDock").hide();
    EXPECT_TRUE(window->close());
    window.reset();
    openWindow();
    EXPECT_FALSE(the<QDockWidget>("selectionDock").isVisible());
    EXPECT_EQ(window->size(), QSize(1100, 700));
    press(window->actions().resetLayout);
    EXPECT_TRUE(the<QDockWidget>("selectionDock").isVisible());
}

TEST_F(MainWindowTest, RestoresTheCentreAndTheFoldedPartsOfTheLab)
{
    openPlan("hello", "hello");
    QCoreApplication::processEvents();
    const QList<int> first = the<QSplitter>("centreSplitter").sizes();
    the<QSplitter>("centreSplitter").setSizes({first[0] - 60, first[1] + 60});
    const QList<int> moved = the<QSplitter>("centreSplitter").sizes();
    ASSERT_NE(moved, first);
    the<FoldBox>("costsBox").setOpen(false);
    EXPECT_TRUE(window->close());
    window.reset();
    openWindow();
    openPlan("hello", "hello");
    QCoreApplication::processEvents();
    EXPECT_EQ(the<QSplitter>("centreSplitter").sizes(), moved);
    EXPECT_FALSE(the<FoldBox>("costsBox").isOpen());
    EXPECT_TRUE(the<FoldBox>("modelBox").isOpen());
    press(window->actions().resetLayout);
    EXPECT_TRUE(the<FoldBox>("costsBox").isOpen());
    EXPECT_NEAR(the<QSplitter>("centreSplitter").sizes()[0], first[0], 40);
}

} // namespace
} // namespace stagecraft::ui
