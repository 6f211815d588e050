// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/window_actions.h"

#include "ui/bridge/plain_tip.h"
#include "ui/window/icons.h"
#include "ui/window/workbench.h"

#include <QMainWindow>
#include <QMenuBar>
#include <QUndoStack>

namespace stagecraft::ui {
namespace {

QString tr(const char* text) { return QObject::tr(text); }

constexpr const char* kTipProperty = "stagecraftTip";

} // namespace

QAction* WindowActions::add(QMenu& menu, const QString& text, const QKeySequence& key, const QString& tip)
{
    QAction* action = menu.addAction(text);
    action->setShortcut(key);
    explain(*action, tip);
    all_.push_back(action);
    return action;
}

void WindowActions::explain(QAction& action, const QString& tip)
{
    action.setProperty(kTipProperty, tip);
    setAvailable(action, action.isEnabled(), {});
}

void WindowActions::setAvailable(QAction& action, bool available, const QString& reasonIfNot)
{
    action.setEnabled(available);
    QString tip = action.property(kTipProperty).toString();
    action.setStatusTip(available || reasonIfNot.isEmpty() ? tip : reasonIfNot);
    if (!action.shortcut().isEmpty()) tip += QStringLiteral(" (%1)").arg(action.shortcut().toString(QKeySequence::NativeText));
    action.setToolTip(plainTip(available || reasonIfNot.isEmpty() ? tip : tip + "\n\n" + reasonIfNot));
}

WindowActions::WindowActions(QMainWindow& window, QUndoStack& stack)
{
    QMenuBar& bar = *window.menuBar();
    QMenu& file = *bar.addMenu(tr("&File"));
    presetMenu = file.addMenu(tr("&New from preset"));
    open = add(file, tr("&Open plan…"), QKeySequence::Open, tr("Opens a plan file."));
    recentMenu = file.addMenu(tr("Open &recent"));
    save = add(file, tr("&Save plan"), QKeySequence::Save, tr("Writes the plan to its file."));
    saveAs = add(file, tr("Save plan &as…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), tr("Writes the plan to another file."));
    saveSchedule = add(file, tr("Save sc&hedule…"), {}, tr("Writes the order of every rank into a file, in PyTorch's action text."));
    file.addSeparator();
    openTrace = add(file, tr("Open &trace…"), QKeySequence(Qt::CTRL | Qt::Key_T), tr("Shows a trace that was written earlier."));
    closeTrace = add(file, tr("&Close trace"), QKeySequence(Qt::CTRL | Qt::Key_W), tr("Removes the measured or opened trace from the timeline; runs stay under View > Runs."));
    QMenu& exports = *file.addMenu(tr("&Export"));
    exportShown = add(exports, tr("Timeline as &shown…"), QKeySequence(Qt::CTRL | Qt::Key_E), tr("Draws what the timeline shows now into a PNG, SVG or PDF file."));
    exportWhole = add(exports, tr("&Whole timeline…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E), tr("Draws all of the timeline into a PNG, SVG or PDF file."));
    exportTrace = add(exports, tr("&Trace…"), {}, tr("Writes the trace as Chrome JSON (for Perfetto), as a CSV table or as a Stagecraft trace."));
    file.addSeparator();
    quit = add(file, tr("&Quit"), QKeySequence(Qt::CTRL | Qt::Key_Q), tr("Ends the program; a run that is going on is stopped."));

    QMenu& edit = *bar.addMenu(tr("&Edit"));
    undo = stack.createUndoAction(&window, tr("&Undo"));
    redo = stack.createRedoAction(&window, tr("&Redo"));
    undo->setShortcut(QKeySequence::Undo);
    redo->setShortcut(QKeySequence::Redo);
    explain(*undo, tr("Takes the last change of the plan back."));
    explain(*redo, tr("Makes the change again that was taken back."));
    for (QAction* action : {undo, redo}) {
        edit.addAction(action);
        all_.push_back(action);
    }
    edit.addSeparator();
    find = add(edit, tr("&Find in the timeline…"), QKeySequence::Find, tr("Looks for blocks by name, kind, stage, rank or micro-batch; / does so as well."));
    find->setShortcuts({QKeySequence(QKeySequence::Find), QKeySequence(Qt::Key_Slash)});
    findNext = add(edit, tr("Find &next"), QKeySequence(Qt::Key_F3), tr("Goes to the next block that was looked for."));
    findPrevious = add(edit, tr("Find &previous"), QKeySequence(Qt::SHIFT | Qt::Key_F3), tr("Goes to the previous block that was looked for."));

    edit.addSeparator();
    editOrder = add(edit, tr("Edit the &order"), {}, tr("Lets blocks of the simulated timeline be dragged to another place in their rank's order; E does so as well."));
    editOrder->setCheckable(true);

    QMenu& view = *bar.addMenu(tr("&View"));
    views = new QActionGroup(&window);
    const auto addView = [&](Qt::Key key, ViewKind kind) {
        QAction* action = add(view, {}, QKeySequence(Qt::CTRL | key), {});
        action->setCheckable(true);
        action->setData(static_cast<int>(kind));
        views->addAction(action);
    };
    addView(Qt::Key_1, ViewKind::Stacked);
    addView(Qt::Key_2, ViewKind::Overlaid);
    addView(Qt::Key_3, ViewKind::SimulatedOnly);
    addView(Qt::Key_4, ViewKind::OtherOnly);
    nameViews(tr("measured"));
    view.addSeparator();
    fitAll = add(view, tr("&Fit all"), QKeySequence(Qt::CTRL | Qt::Key_0), tr("Shows all of the timeline."));
    zoomIn = add(view, tr("Zoom &in"), QKeySequence::ZoomIn, tr("Looks closer at the middle of the timeline."));
    zoomOut = add(view, tr("Zoom o&ut"), QKeySequence::ZoomOut, tr("Shows more of the timeline."));
    back = add(view, tr("&Back"), QKeySequence(Qt::ALT | Qt::Key_Left), tr("Goes back to the part of the timeline shown before."));
    forward = add(view, tr("F&orward"), QKeySequence(Qt::ALT | Qt::Key_Right), tr("Undoes going back."));
    follow = add(view, tr("Fo&llow"), QKeySequence(Qt::CTRL | Qt::Key_L), tr("Keeps the newest moment of a live run in sight."));
    follow->setCheckable(true);
    criticalPath = add(view, tr("&Critical path"), {}, tr("Draws the chain of actions and transfers that ends last over the timeline; P does so as well."));
    criticalPath->setCheckable(true);
    statistics = add(view, tr("St&atistics"), QKeySequence(Qt::CTRL | Qt::Key_D),
                     tr("Brings the panel to the front that tells how long actions took, with their spread and what was far out."));
    view.addSeparator();
    runsMenu = view.addMenu(tr("&Runs"));
    panelMenu = view.addMenu(tr("&Panels"));
    QMenu& theme = *view.addMenu(tr("&Theme"));
    light = add(theme, tr("&Light"), {}, tr("Dark on light."));
    dark = add(theme, tr("&Dark"), {}, tr("Light on dark."));
    auto* themes = new QActionGroup(&window);
    for (QAction* action : {light, dark}) {
        action->setCheckable(true);
        themes->addAction(action);
    }
    resetLayout = add(view, tr("&Reset panels"), {}, tr("Puts all panels back where they were at first."));

    QMenu& explore = *bar.addMenu(tr("E&xplore"));
    gallery = add(explore, tr("&Gallery of schedules…"), QKeySequence(Qt::CTRL | Qt::Key_G),
                  tr("Shows every schedule with the plan's ranks and micro-batches, to choose or compare."));
    curves = add(explore, tr("&Curves…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C),
                 tr("Plots bubble, step time, memory and throughput against one quantity of the plan."));
    comparison = add(explore, tr("C&ompare schedules…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O),
                     tr("Sets schedules, and the open trace, below each other on one time axis with a table of differences."));
    whatIf = add(explore, tr("&What if…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_W),
                 tr("Predicts from a run or an opened trace what another schedule, partition or speed would give, and runs it for real."));

    QMenu& runMenu = *bar.addMenu(tr("&Run"));
    run = add(runMenu, tr("&Run"), QKeySequence(Qt::Key_F5), tr("Really trains the plan's model on this schedule."));
    pause = add(runMenu, tr("&Pause"), QKeySequence(Qt::Key_F6), tr("Halts every rank between two actions; nothing is lost."));
    stop = add(runMenu, tr("&Stop"), QKeySequence(Qt::SHIFT | Qt::Key_F5), tr("Ends the run; what it did until now stays."));
    runMenu.addSeparator();
    useMeasured = add(runMenu, tr("&Use measured times"), QKeySequence(Qt::CTRL | Qt::Key_M),
                      tr("Takes the run's measured times over as the plan's costs and lays the new simulation over the run."));
    useTracePlan = add(runMenu, tr("Use the trace's &plan"), {}, tr("Shows the plan that the measured or opened trace carries in the lab."));
    cancelWork = add(runMenu, tr("&Cancel simulation or file"), {},
                     tr("Gives up a long simulation, or a file that is being read or written; what was there before stays."));
    runMenu.addSeparator();
    engineCommand = add(runMenu, tr("&Engine command…"), {}, tr("Goes to the field that says which engine runs, here or on another host."));

    QMenu& help = *bar.addMenu(tr("&Help"));
    keyboard = add(help, tr("&Keyboard"), QKeySequence(Qt::Key_Question), tr("Shows all keys."));
    keyboard->setShortcuts({QKeySequence(Qt::Key_Question), QKeySequence(Qt::SHIFT | Qt::Key_Question), QKeySequence(Qt::Key_F1)});
    about = add(help, tr("&About Stagecraft"), {}, tr("Version and licences."));
    aboutQt = add(help, tr("About &Qt"), {}, tr("The toolkit of this window."));

    const std::pair<QAction*, const char*> names[] = {
        {open, "open"}, {save, "save"}, {saveAs, "saveAs"}, {openTrace, "openTrace"}, {closeTrace, "closeTrace"},
        {exportShown, "exportShown"}, {exportWhole, "exportWhole"}, {exportTrace, "exportTrace"}, {quit, "quit"},
        {editOrder, "editOrder"}, {saveSchedule, "saveScheduleAction"}, {criticalPath, "criticalPath"}, {statistics, "statisticsAction"}, {undo, "undo"}, {redo, "redo"}, {find, "find"}, {findNext, "findNext"}, {findPrevious, "findPrevious"}, {fitAll, "fitAll"}, {follow, "follow"}, {light, "light"}, {dark, "dark"},
        {cancelWork, "cancelWork"}, {run, "run"}, {pause, "pause"}, {stop, "stop"}, {useMeasured, "useMeasured"}, {useTracePlan, "useTracePlan"}, {keyboard, "keyboard"}};
    for (const auto& [action, name] : names) action->setObjectName(name);
    for (QMenu* menu : bar.findChildren<QMenu*>()) menu->setToolTipsVisible(true);
}

void WindowActions::nameViews(const QString& otherWord)
{
    const auto name = [this](ViewKind kind, const QString& text, const QString& tip) {
        QAction& action = *views->actions()[static_cast<int>(kind)];
        action.setText(text);
        explain(action, tip);
    };
    name(ViewKind::Stacked, tr("&Stacked"), tr("Shows the simulated trace above the %1 one.").arg(otherWord));
    name(ViewKind::Overlaid, tr("&Overlaid"), tr("Lays the simulated trace as outlines over the %1 one.").arg(otherWord));
    name(ViewKind::SimulatedOnly, tr("S&imulated only"), tr("Shows the simulated trace alone."));
    name(ViewKind::OtherOnly, tr("%1 o&nly").arg(otherWord.left(1).toUpper() + otherWord.mid(1)),
         tr("Shows the %1 trace alone.").arg(otherWord));
}

void WindowActions::setTheme(const Theme& theme)
{
    run->setIcon(icon(Symbol::Run, theme));
    pause->setIcon(icon(Symbol::Pause, theme));
    stop->setIcon(icon(Symbol::Stop, theme));
    follow->setIcon(icon(Symbol::Follow, theme));
    useMeasured->setIcon(icon(Symbol::Measured, theme));
    (theme.kind == ThemeKind::Dark ? dark : light)->setChecked(true);
}

std::vector<std::pair<QString, QString>> WindowActions::keys() const
{
    std::vector<std::pair<QString, QString>> keys;
    for (const QAction* action : all_) {
        if (action->shortcut().isEmpty()) continue;
        QString text = action->text();
        text.remove('&');
        text.remove(QStringLiteral("…"));
        keys.emplace_back(text, action->shortcut().toString(QKeySequence::NativeText));
    }
    return keys;
}

} // namespace stagecraft::ui
