// SPDX-License-Identifier: GPL-3.0-or-later
//
// The commands of the window, each made once with its text, key and one-sentence explanation, and put into the menus.
#pragma once

#include "ui/theme/theme.h"

#include <QAction>
#include <QActionGroup>
#include <QMenu>

#include <utility>
#include <vector>

class QMainWindow;
class QUndoStack;

namespace stagecraft::ui {

struct WindowActions {
    // Makes actions and menus as children of the window.
    WindowActions(QMainWindow& window, QUndoStack& undo);

    void setTheme(const Theme& theme); // icons
    // One sentence about the action, with its key added in the tooltip; kept for setAvailable().
    static void explain(QAction& action, const QString& tip);
    // Enables an action, or disables it with the reason in its tooltip.
    static void setAvailable(QAction& action, bool available, const QString& reasonIfNot);
    // The views, with what stands beside the simulated trace called by Workbench::otherWord().
    void nameViews(const QString& otherWord);
    // All commands with a key, for the keyboard help: what they do, and the key.
    [[nodiscard]] std::vector<std::pair<QString, QString>> keys() const;

    QMenu* presetMenu;
    QAction* open;
    QAction* save;
    QAction* saveAs;
    QMenu* recentMenu;
    QAction* openTrace;
    QAction* closeTrace;
    QAction* exportShown;
    QAction* exportWhole;
    QAction* exportTrace;
    QAction* quit;
    QAction* undo;
    QAction* redo;
    QAction* find;
    QAction* findNext;
    QAction* findPrevious;
    QAction* editOrder;
    QAction* saveSchedule;
    QAction* criticalPath;
    QAction* statistics;
    QActionGroup* views; // data: ViewKind
    QAction* fitAll;
    QAction* zoomIn;
    QAction* zoomOut;
    QAction* back;
    QAction* forward;
    QAction* gallery;
    QAction* curves;
    QAction* comparison;
    QAction* whatIf;
    QMenu* runsMenu;
    QMenu* panelMenu;
    QAction* light;
    QAction* dark;
    QAction* resetLayout;
    QAction* run;
    QAction* pause; // resumes as well
    QAction* stop;
    QAction* useMeasured;
    QAction* useTracePlan;
    QAction* follow;
    QAction* cancelWork; // simulation, reading, writing
    QAction* engineCommand;
    QAction* keyboard;
    QAction* about;
    QAction* aboutQt;

private:
    QAction* add(QMenu& menu, const QString& text, const QKeySequence& key, const QString& tip);
    std::vector<QAction*> all_;
};

} // namespace stagecraft::ui
