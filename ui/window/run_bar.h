// SPDX-License-Identifier: GPL-3.0-or-later
//
// The bar on top: run, pause, stop; what the run is doing, its step and loss, and what is at work beside it, with a button
// that cancels that; how the traces are shown.
#pragma once

#include "ui/theme/theme.h"

#include <QStringList>
#include <QToolBar>

class QComboBox;
class QLabel;
class QProgressBar;
class QToolButton;

namespace stagecraft::ui {

class FileController;
class Workbench;
struct WindowActions;

class RunBar : public QToolBar {
    Q_OBJECT
public:
    // All must outlive the bar.
    RunBar(Workbench& workbench, const FileController& files, const WindowActions& actions, QWidget* parent = nullptr);

    void refresh(); // after anything about the run, the plan, the view or the work beside it changed

private:
    QToolButton& addButton(QAction& action);
    [[nodiscard]] QStringList runParts() const;
    [[nodiscard]] QString statusText() const;
    void showProgress();

    Workbench& workbench_;
    const FileController& files_;
    QLabel* status_;
    QProgressBar* progress_;
    QAction* cancel_; // the button's place in the bar
    QComboBox* view_;
};

} // namespace stagecraft::ui
