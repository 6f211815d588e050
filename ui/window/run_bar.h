// SPDX-License-Identifier: GPL-3.0-or-later
//
// The bar on top: run, pause, stop; what the run is doing, its step and loss; how the traces are shown.
#pragma once

#include "ui/theme/theme.h"

#include <QToolBar>

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;

namespace stagecraft::ui {

struct WindowActions;
class Workbench;

class RunBar : public QToolBar {
    Q_OBJECT
public:
    // Both must outlive the bar.
    RunBar(Workbench& workbench, WindowActions& actions, QWidget* parent = nullptr);

    void refresh(); // after anything about the run, the plan or the view changed

private:
    [[nodiscard]] QString statusText() const;

    Workbench& workbench_;
    WindowActions& actions_;
    QLabel* status_;
    QProgressBar* progress_;
    QComboBox* view_;
};

} // namespace stagecraft::ui
