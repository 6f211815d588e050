// SPDX-License-Identifier: GPL-3.0-or-later
//
// The menus that list what there is: presets, recent files, kept runs. Fills them, and again whenever that changes.
//
//   new WindowMenus(actions, files, workbench, window);
#pragma once

#include <QObject>

namespace stagecraft::ui {

class FileController;
class Workbench;
struct WindowActions;

class WindowMenus : public QObject {
    Q_OBJECT
public:
    // All three must outlive it.
    WindowMenus(WindowActions& actions, FileController& files, Workbench& workbench, QObject* parent);

private:
    void fillPresetMenu();
    void fillRecentMenu();
    void fillRunsMenu();

    WindowActions& actions_;
    FileController& files_;
    Workbench& workbench_;
};

} // namespace stagecraft::ui
