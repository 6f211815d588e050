// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/run_bar.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/window/window_actions.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QSignalBlocker>
#include <QToolButton>

namespace stagecraft::ui {

using engine::SessionState;

RunBar::RunBar(Workbench& workbench, WindowActions& actions, QWidget* parent)
    : QToolBar(parent), workbench_(workbench), actions_(actions), status_(new QLabel), progress_(new QProgressBar),
      view_(new QComboBox)
{
    setObjectName("runBar");
    setWindowTitle(tr("Run bar"));
    setMovable(false);
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setIconSize({16, 16});

    for (QAction* action : {actions.run, actions.pause, actions.stop}) addAction(action);
    for (QAction* action : {actions.run, actions.pause, actions.stop}) widgetForAction(action)->setFocusPolicy(Qt::TabFocus);

    progress_->setObjectName("runProgress");
    progress_->setRange(0, 1000);
    progress_->setTextVisible(false);
    progress_->setFixedSize(120, 8);
    describe(*progress_, tr("Progress"), tr("How much of the run, or of a long simulation, is done."));
    status_->setObjectName("runStatus");
    status_->setContentsMargins(8, 0, 8, 0);
    status_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    status_->setMinimumWidth(120);
    describe(*status_, tr("State of the run"), tr("What the run is doing."));
    addWidget(progress_);
    addWidget(status_);

    addAction(actions.useMeasured);
    widgetForAction(actions.useMeasured)->setFocusPolicy(Qt::TabFocus);
    addAction(actions.follow);
    widgetForAction(actions.follow)->setFocusPolicy(Qt::TabFocus);
    auto* viewLabel = new QLabel(tr("View"));
    viewLabel->setBuddy(view_);
    viewLabel->setContentsMargins(8, 0, 4, 0);
    view_->setObjectName("view");
    view_->addItem(tr("stacked"), static_cast<int>(ViewKind::Stacked));
    view_->addItem(tr("overlaid"), static_cast<int>(ViewKind::Overlaid));
    view_->addItem(tr("simulated only"), static_cast<int>(ViewKind::SimulatedOnly));
    view_->addItem(tr("measured only"), static_cast<int>(ViewKind::OtherOnly));
    describe(*view_, tr("View"), tr("How the simulated and the measured trace are shown together."));
    addWidget(viewLabel);
    addWidget(view_);
    connect(view_, &QComboBox::activated, this,
            [this] { workbench_.setView(static_cast<ViewKind>(view_->currentData().toInt())); });
}

QString RunBar::statusText() const
{
    const RunController& run = workbench_.run();
    if (workbench_.simulation().busy()) return tr("simulating…");
    QStringList parts;
    const QString mode = toQt(engine::runModeText(run.plan().run.mode));
    switch (run.state()) {
    case SessionState::Idle: {
        const QString obstacle = whyNotRunnable(workbench_.document().plan());
        return obstacle.isEmpty() ? tr("simulated; ready to run (%1)").arg(toQt(engine::runModeText(workbench_.document().plan().run.mode))) : obstacle;
    }
    case SessionState::Preparing: parts << tr("preparing (%1)").arg(mode); break;
    case SessionState::Running: parts << tr("running (%1)").arg(mode); break;
    case SessionState::Paused: parts << tr("paused"); break;
    case SessionState::Stopping: parts << tr("stopping: ranks finish their action"); break;
    case SessionState::Finished: parts << tr("finished (%1)").arg(mode); break;
    case SessionState::Stopped: parts << tr("stopped"); break;
    case SessionState::Failed: parts << tr("failed, see the log"); break;
    }
    if (!run.progressText().isEmpty() && run.active()) parts << run.progressText();
    else if (run.finishedSteps() > 0) parts << tr("%n step(s)", nullptr, run.finishedSteps());
    if (const auto loss = run.lastLoss()) parts << tr("loss %1").arg(*loss, 0, 'g', 5);
    if (run.result() && run.result()->gradientCheck != engine::GradientCheck::Off)
        parts << tr("gradients: %1").arg(toQt(engine::gradientCheckText(run.result()->gradientCheck)));
    return parts.join(QStringLiteral(" · "));
}

void RunBar::refresh()
{
    const RunController& run = workbench_.run();
    const QString text = statusText();
    if (text != status_->text()) {
        status_->setText(text);
        status_->setToolTip(text);
    }
    const bool simulating = workbench_.simulation().busy();
    progress_->setVisible(true);
    if (simulating) progress_->setRange(0, 0);
    else progress_->setRange(0, 1000);
    progress_->setValue(run.state() == SessionState::Finished ? 1000 : static_cast<int>(run.progress() * 1000));
    progress_->setEnabled(run.active() || simulating);

    const QSignalBlocker quiet(view_);
    view_->setCurrentIndex(view_->findData(static_cast<int>(workbench_.view())));
    setCapability(*view_, workbench_.other() != nullptr, tr("There is only the simulated trace; run the plan or open a trace."));
}

} // namespace stagecraft::ui
