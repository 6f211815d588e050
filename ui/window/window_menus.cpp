// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/window_menus.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"
#include "ui/window/file_controller.h"
#include "ui/window/window_actions.h"
#include "ui/window/workbench.h"

#include <QFileInfo>
#include <QMenu>

namespace stagecraft::ui {

WindowMenus::WindowMenus(WindowActions& actions, FileController& files, Workbench& workbench, QObject* parent)
    : QObject(parent), actions_(actions), files_(files), workbench_(workbench)
{
    fillPresetMenu();
    fillRecentMenu();
    fillRunsMenu();
    connect(&files_.recent(), &RecentFiles::changed, this, &WindowMenus::fillRecentMenu);
    connect(&workbench_, &Workbench::otherChanged, this, &WindowMenus::fillRunsMenu);
    connect(&workbench_, &Workbench::runsChanged, this, &WindowMenus::fillRunsMenu);
    connect(&workbench_.run(), &RunController::stateChanged, this, &WindowMenus::fillRunsMenu);
}

void WindowMenus::fillPresetMenu()
{
    for (const engine::PresetPlan& preset : engine::presetPlans()) {
        QAction* action = actions_.presetMenu->addAction(toQt(preset.name));
        const traces::Expected<engine::Plan> plan = engine::readPlan(preset.json);
        WindowActions::explain(*action, plan.ok() ? toQt(plan.value().description) : toQt(plan.error().message));
        connect(action, &QAction::triggered, this, [this, name = toQt(preset.name)] { files_.startFromPreset(name); });
    }
}

void WindowMenus::fillRecentMenu()
{
    QMenu& menu = *actions_.recentMenu;
    menu.clear();
    for (const QString& file : files_.recent().files()) {
        QAction* action = menu.addAction(QFileInfo(file).fileName());
        WindowActions::explain(*action, file);
        connect(action, &QAction::triggered, this, [this, file] { files_.open(file); }, Qt::QueuedConnection);
    }
    menu.setEnabled(!menu.isEmpty());
    if (menu.isEmpty()) return;
    menu.addSeparator();
    QAction* clear = menu.addAction(tr("&Clear list"));
    WindowActions::explain(*clear, tr("Forgets these names; the files stay."));
    connect(clear, &QAction::triggered, this, [this] { files_.recent().clear(); }, Qt::QueuedConnection);
}

void WindowMenus::fillRunsMenu()
{
    QMenu& menu = *actions_.runsMenu;
    menu.clear();
    const std::vector<KeptRun>& runs = workbench_.runs();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        QAction* action = menu.addAction(runs[i].label);
        action->setCheckable(true);
        action->setChecked(runs[i].trace == workbench_.other());
        action->setEnabled(!workbench_.run().active());
        WindowActions::explain(*action, tr("Shows the trace of this run beside the simulated one."));
        // queued: the menu is filled anew by what this changes
        connect(action, &QAction::triggered, this, [this, i] { workbench_.showRun(i); }, Qt::QueuedConnection);
    }
    menu.setEnabled(!runs.empty());
}

} // namespace stagecraft::ui
