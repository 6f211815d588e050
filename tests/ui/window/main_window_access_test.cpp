// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window by keyboard and by screen reader.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/overview_strip.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/figures_panel.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"

#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QTabBar>
#include <QToolBar>
#include <QToolButton>

#include <qcustomplot.h>

#include <map>
#include <set>

namespace stagecraft::ui {
namespace {

// Every command of a menu and of the menus in it says more than its text, and the menu shows it. Qt gives an action its
// text for a tooltip where it has none.
int expectExplained(const QMenu& menu)
{
    int count = 0;
    EXPECT_TRUE(menu.toolTipsVisible()) << menu.title().toStdString();
    for (const QAction* action : menu.actions()) {
        if (action->isSeparator()) continue;
        if (action->menu()) {
            count += expectExplained(*action->menu());
            continue;
        }
        ++count;
        QString text = action->text();
        text.remove('&').remove(QStringLiteral("…"));
        EXPECT_GT(action->toolTip().size(), text.size() + 3) << text.toStdString() << ": " << action->toolTip().toStdString();
        EXPECT_FALSE(action->statusTip().isEmpty()) << text.toStdString();
    }
    return count;
}

std::string described(const QWidget& widget)
{
    std::string text = widget.metaObject()->className();
    for (const QWidget* at = &widget; at; at = at->parentWidget())
        if (!at->objectName().isEmpty()) text += " in " + at->objectName().toStdString();
    return text;
}

// What a screen reader calls it.
QString spokenName(QWidget& widget)
{
    QAccessibleInterface* spoken = QAccessible::queryAccessibleInterface(&widget);
    return spoken ? spoken->text(QAccessible::Name) : QString();
}

bool isInteractive(const QWidget& widget)
{
    return qobject_cast<const QAbstractButton*>(&widget) || qobject_cast<const QComboBox*>(&widget) ||
           qobject_cast<const QAbstractSpinBox*>(&widget) || qobject_cast<const QLineEdit*>(&widget) ||
           qobject_cast<const QAbstractItemView*>(&widget) || qobject_cast<const QPlainTextEdit*>(&widget) ||
           qobject_cast<const TimelineWidget*>(&widget) || qobject_cast<const OverviewStrip*>(&widget) ||
           (widget.focusPolicy() & Qt::TabFocus);
}

// The window's own, that can be seen: what Qt puts into a control or a title is Qt's to name.
std::vector<QWidget*> interactiveIn(QWidget& window)
{
    std::vector<QWidget*> found;
    for (QWidget* widget : window.findChildren<QWidget*>()) {
        const QWidget* in = widget->parentWidget();
        const bool inner = widget->objectName().startsWith("qt_") || qobject_cast<const QAbstractItemView*>(in) ||
                           qobject_cast<const QComboBox*>(in) || qobject_cast<const QLineEdit*>(in) || qobject_cast<const QTabBar*>(in);
        if (!inner && widget->isVisible() && widget->window() == &window && isInteractive(*widget)) found.push_back(widget);
    }
    return found;
}

using engine::SessionState;

// A key that two have goes to neither at once.
TEST_F(MainWindowTest, GivesEachKeyWithAltToOneMenuOrField)
{
    std::map<QChar, QString> taken;
    const auto take = [&](const QString& text) {
        const qsizetype at = text.indexOf('&');
        if (at < 0) return;
        const auto [known, fresh] = taken.emplace(text.at(at + 1).toLower(), text);
        EXPECT_TRUE(fresh) << text.toStdString() << " and " << known->second.toStdString();
    };
    for (const QAction* menu : window->menuBar()->actions()) take(menu->text());
    for (const QLabel* label : window->findChildren<QLabel*>())
        if (label->buddy()) take(label->text());
    for (const QAbstractButton* button : window->findChildren<QAbstractButton*>())
        if (!qobject_cast<const QToolButton*>(button)) take(button->text()); // those of the run bar show a command of a menu
    EXPECT_GT(taken.size(), 15U);
}

TEST_F(MainWindowTest, ShowsAllKeys)
{
    KeyboardHelp help(window->actions().keys());
    QString all;
    for (const QLabel* label : help.findChildren<QLabel*>()) all += label->text();
    EXPECT_TRUE(all.contains("F5"));
    EXPECT_TRUE(all.contains("Undo"));
    for (const TimelineWidget::KeyHelp& key : TimelineWidget::keyHelp()) EXPECT_TRUE(all.contains(key.what.toHtmlEscaped()));
}

TEST_F(MainWindowTest, ExplainsEveryCommandAndUsesEachKeyOnce)
{
    QStringList keys;
    for (const QAction* action : window->findChildren<QAction*>()) {
        for (const QKeySequence& key : action->shortcuts()) {
            EXPECT_FALSE(keys.contains(key.toString())) << key.toString().toStdString();
            keys << key.toString();
        }
    }
    EXPECT_GT(keys.size(), 20);
    int explained = 0;
    for (const QAction* menu : window->menuBar()->actions()) explained += expectExplained(*menu->menu());
    EXPECT_GT(explained, 40);
}

TEST_F(MainWindowTest, NamesAndExplainsWhatTabReaches)
{
    runUntil("hello", SessionState::Finished);
    for (const char* name : {"Run", "Pause", "Stop", "Use measured times"}) {
        int found = 0;
        for (const QToolButton* button : the<QToolBar>("runBar").findChildren<QToolButton*>())
            if (button->accessibleName() == name && (button->focusPolicy() & Qt::TabFocus)) ++found;
        EXPECT_EQ(found, 1) << name;
    }
    for (const QWidget* panel : {static_cast<QWidget*>(&the<QDockWidget>("labDock")), static_cast<QWidget*>(&the<QDockWidget>("selectionDock")),
                                 static_cast<QWidget*>(&the<QDockWidget>("logDock")), static_cast<QWidget*>(&the<QToolBar>("runBar"))}) {
        for (const QLabel* label : panel->findChildren<QLabel*>()) {
            if (!(label->textInteractionFlags() & Qt::TextSelectableByMouse) || label->isHidden()) continue;
            EXPECT_TRUE(label->focusPolicy() & Qt::TabFocus) << label->objectName().toStdString() << ": " << label->text().toStdString();
        }
    }
    EXPECT_FALSE(window->log().toolTip().isEmpty());
    window->timeline().setFocus();
    window->timeline().selectNext();
    EXPECT_TRUE(the<QLabel>("selectionLines").accessibleName().contains(':'));
}

// Values are labels: Tab comes to one line of them, arrows go on, and each says all that stands in it.
TEST_F(MainWindowTest, ReadsTheFiguresByKeyboard)
{
    runUntil("hello", SessionState::Finished);
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    the<QWidget>("figuresStep").setFocus();
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    const std::vector<FigureRow>& rows = window->figures().rows();
    ASSERT_GT(rows.size(), 6U);
    for (const FigureRow& row : rows) {
        ASSERT_TRUE(QApplication::focusWidget());
        const QString spoken = spokenName(*QApplication::focusWidget());
        for (const QString& part : {row.name, row.formula, row.byFormula, row.simulated, row.other})
            EXPECT_TRUE(spoken.contains(part)) << spoken.toStdString() << ": " << part.toStdString();
        EXPECT_TRUE(row.other.isEmpty() || spoken.contains("measured " + row.other)) << spoken.toStdString();
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Down);
    }
    EXPECT_TRUE(spokenName(*QApplication::focusWidget()).startsWith(rows.back().name)) << "below the last there is none";
    QWidget* last = QApplication::focusWidget();
    EXPECT_TRUE(window->figures().viewport()->rect().contains(last->mapTo(window->figures().viewport(), last->rect().center())));
    QTest::keySequence(last, QKeySequence::Copy);
    EXPECT_EQ(QApplication::clipboard()->text(), spokenName(*last));
    QTest::keyClick(last, Qt::Key_Tab);
    EXPECT_EQ(QApplication::focusWidget()->objectName(), "rankFigures") << "one stop of Tab for all the lines";
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab, Qt::ShiftModifier);
    EXPECT_EQ(QApplication::focusWidget(), last) << "back to where it was read";
    QTest::keyClick(last, Qt::Key_Home);
    EXPECT_TRUE(spokenName(*QApplication::focusWidget()).startsWith(rows.front().name));
}

TEST_F(MainWindowTest, NamesAllThatCanBePressedAndTabComesToAllOfIt)
{
    runUntil("hello", SessionState::Finished);
    window->workbench().document().edit([this] {
        engine::Plan plan = window->workbench().document().plan();
        plan.pipeline.schedule = "interleaved"; // with a number that does not fit: a button to mend it
        plan.pipeline.chunks = 1;
        return plan;
    }(), "schedule", {});
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    QCoreApplication::processEvents();
    std::set<QWidget*> reached;
    window->timeline().setFocus();
    do {
        reached.insert(QApplication::focusWidget());
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
        ASSERT_TRUE(QApplication::focusWidget());
    } while (reached.insert(QApplication::focusWidget()).second);
    const std::vector<QWidget*> all = interactiveIn(*window);
    EXPECT_GT(all.size(), 40U);
    for (QWidget* widget : all) {
        EXPECT_FALSE(spokenName(*widget).isEmpty()) << described(*widget) << " has no name";
        EXPECT_TRUE(!widget->isEnabled() || reached.contains(widget)) << described(*widget) << " is not reached by Tab";
    }
    for (QWidget* widget : reached) EXPECT_FALSE(spokenName(*widget).isEmpty()) << described(*widget) << " has no name";
}

TEST_F(MainWindowTest, LeadsAClickOnAPlotToTheKeysOfTheTimeline)
{
    runUntil("hello", SessionState::Finished);
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    for (QCustomPlot* plot : window->findChildren<QCustomPlot*>()) {
        the<QWidget>("figuresStep").setFocus();
        QTest::mouseClick(plot, Qt::LeftButton);
        EXPECT_TRUE(window->timeline().hasFocus());
    }
}

} // namespace
} // namespace stagecraft::ui
