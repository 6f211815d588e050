// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trouble on purpose, while a run goes on: a stage that takes longer, or that stands still. No part of the plan: it asks the run that
// goes on, and shows what was asked for each stage. Without a run it says why nothing can be asked.
//
//   box.beginRun(plan);                                   // as slow as the plan's run.slowdown says, nothing held
//   box.setRunning(true);
//   connect(&box, &TroubleBox::asked, ...);               // to the session
#pragma once

#include "engine/plan/plan.h"
#include "engine/session/session.h"

#include <QWidget>

#include <vector>

class QCheckBox;
class QDoubleSpinBox;
class QSpinBox;

namespace stagecraft::ui {

class TroubleBox : public QWidget {
    Q_OBJECT
public:
    explicit TroubleBox(QWidget* parent = nullptr);

    void beginRun(const engine::Plan& plan);
    void setRunning(bool running);

signals:
    void asked(const stagecraft::engine::StageTrouble& trouble);

private:
    struct StageState {
        double factor = 1;
        bool held = false;
    };
    void showStage();

    std::vector<StageState> stages_;
    QSpinBox* stage_;
    QDoubleSpinBox* factor_;
    QCheckBox* held_;
};

} // namespace stagecraft::ui
