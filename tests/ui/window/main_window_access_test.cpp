// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window by keyboard and by screen reader.
#include "tests/ui/window/main_window_fixture.h"

#include "ui/timeline/timeline_widget.h"
#include "ui/window/keyboard_help.h"
#include "ui/window/log_panel.h"

#include <QDockWidget>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>

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

using engine::SessionState;

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

} // namespace
} // namespace stagecraft::ui
