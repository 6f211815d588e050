// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/run_bar.h"

#include "ui/bridge/plain_tip.h"
#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/window/file_controller.h"
#include "ui/window/window_actions.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QLabel>
#include <QPainter>
#include <QProgressBar>
#include <QSignalBlocker>
#include <QStyle>
#include <QToolButton>

namespace stagecraft::ui {

using engine::SessionState;

namespace {

// A line that ends in … where there is no room for it; text() stays whole.
class ElidedLabel : public QLabel {
public:
    using QLabel::QLabel;

protected:
    void paintEvent(QPaintEvent*) override
    {
        QPainter painter(this);
        const QRect room = contentsRect();
        style()->drawItemText(&painter, room, Qt::AlignLeft | Qt::AlignVCenter, palette(), isEnabled(),
                              fontMetrics().elidedText(text(), Qt::ElideRight, room.width()), foregroundRole());
    }
};

} // namespace

RunBar::RunBar(Workbench& workbench, const FileController& files, const WindowActions& actions, QWidget* parent)
    : QToolBar(parent), workbench_(workbench), files_(files), status_(new ElidedLabel), progress_(new QProgressBar),
      view_(new QComboBox)
{
    setObjectName("runBar");
    setWindowTitle(tr("Run bar"));
    setMovable(false);
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setIconSize({16, 16});

    for (QAction* action : {actions.run, actions.pause, actions.stop}) addButton(*action);

    progress_->setObjectName("runProgress");
    progress_->setRange(0, 1000);
    progress_->setTextVisible(false);
    progress_->setFixedSize(120, 8);
    describe(*progress_, tr("Progress"), tr("How much is done of the run, or of the file that is read or written."));
    status_->setObjectName("runStatus");
    status_->setTextFormat(Qt::PlainText);
    status_->setContentsMargins(8, 0, 8, 0);
    status_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    status_->setMinimumWidth(40); // whole in its tooltip; the boxes beside it come first
    describe(*status_, tr("State of the run"), tr("What the run is doing."));
    addWidget(progress_);
    addWidget(status_);

    // Only while there is something to cancel: the action itself stays in the menu.
    auto* cancel = new QToolButton;
    cancel->setObjectName("cancelButton");
    cancel->setFocusPolicy(Qt::TabFocus);
    cancel->setText(tr("Cancel"));
    describe(*cancel, tr("Cancel"), actions.cancelWork->statusTip());
    connect(cancel, &QToolButton::clicked, actions.cancelWork, &QAction::trigger);
    cancel_ = addWidget(cancel);
    addButton(*actions.useMeasured);
    auto* viewLabel = new QLabel(tr("View"));
    viewLabel->setBuddy(view_);
    viewLabel->setContentsMargins(8, 0, 4, 0);
    view_->setObjectName("view");
    view_->addItem(tr("stacked"), static_cast<int>(ViewKind::Stacked));
    view_->addItem(tr("overlaid"), static_cast<int>(ViewKind::Overlaid));
    view_->addItem(tr("simulated only"), static_cast<int>(ViewKind::SimulatedOnly));
    view_->addItem({}, static_cast<int>(ViewKind::OtherOnly)); // named by refresh()
    addWidget(viewLabel);
    addWidget(view_);
    connect(view_, &QComboBox::activated, this,
            [this] { workbench_.setView(static_cast<ViewKind>(view_->currentData().toInt())); });
}

QToolButton& RunBar::addButton(QAction& action)
{
    addAction(&action);
    auto* button = qobject_cast<QToolButton*>(widgetForAction(&action));
    button->setFocusPolicy(Qt::TabFocus);
    // The button's name follows what the action says at the moment: Pause, Resume.
    const auto name = [button, &action] { button->setAccessibleName(action.text().remove('&')); };
    name();
    connect(&action, &QAction::changed, button, name);
    return *button;
}

QStringList RunBar::runParts() const
{
    const RunController& run = workbench_.run();
    QStringList parts;
    const QString manner = mannerText(run.plan().run);
    switch (run.state()) {
    case SessionState::Idle: {
        const QString& obstacle = workbench_.whyNotRunnable();
        parts << (obstacle.isEmpty() ? tr("ready to run (%1)").arg(mannerText(workbench_.document().plan().run)) : obstacle);
        return parts;
    }
    case SessionState::Preparing: parts << tr("preparing (%1)").arg(manner); break;
    case SessionState::Running: parts << tr("running (%1)").arg(manner); break;
    case SessionState::Paused: parts << tr("paused"); break;
    case SessionState::Stopping: parts << tr("stopping: ranks finish their action"); break;
    case SessionState::Finished: parts << tr("finished (%1)").arg(manner); break;
    case SessionState::Stopped: parts << tr("stopped"); break;
    case SessionState::Failed: parts << tr("failed, see the log"); break;
    }
    if (!run.progressText().isEmpty() && run.active()) parts << run.progressText();
    else if (run.finishedSteps() > 0) parts << counted(run.finishedSteps(), "step");
    if (const auto loss = run.lastLoss()) parts << tr("loss %1").arg(*loss, 0, 'g', 5);
    if (run.result() && run.result()->gradientCheck != engine::GradientCheck::Off)
        parts << tr("gradients: %1").arg(toQt(engine::gradientCheckText(run.result()->gradientCheck)));
    return parts;
}

QString RunBar::statusText() const
{
    QStringList parts;
    if (files_.busy()) parts << tr("%1…").arg(files_.doing());
    if (workbench_.simulation().busy()) parts << tr("simulating… (shown until then: the plan before)");
    // A run that goes on comes first: it is what the bar is about.
    parts = workbench_.run().active() ? runParts() + parts : parts + runParts();
    return parts.join(QStringLiteral(" · "));
}

void RunBar::showProgress()
{
    const RunController& run = workbench_.run();
    const bool simulating = workbench_.simulation().busy();
    const bool unknown = simulating && !run.active() && !files_.busy(); // a simulation does not tell how far it is
    progress_->setRange(0, unknown ? 0 : 1000);
    const double done = run.active()     ? run.progress()
                        : files_.busy() ? files_.progress()
                        : run.state() == SessionState::Finished ? 1
                                                                : run.progress();
    progress_->setValue(static_cast<int>(done * 1000));
    progress_->setEnabled(run.active() || simulating || files_.busy());
    cancel_->setVisible(simulating || files_.busy());
}

void RunBar::refresh()
{
    const QString text = statusText();
    if (text != status_->text()) {
        status_->setText(text);
        status_->setToolTip(plainTip(text));
    }
    showProgress();

    const QSignalBlocker quiet(view_);
    const QString word = workbench_.otherWord();
    view_->setItemText(view_->findData(static_cast<int>(ViewKind::OtherOnly)), tr("%1 only").arg(word));
    describe(*view_, tr("View"), tr("How the simulated and the %1 trace are shown together.").arg(word));
    view_->setCurrentIndex(view_->findData(static_cast<int>(workbench_.view())));
    setCapability(*view_, workbench_.other() != nullptr, tr("There is only the simulated trace; run the plan or open a trace."));
}

} // namespace stagecraft::ui
