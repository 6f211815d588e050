// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/screenshot.h"

#include "traces/base/text.h"
#include "traces/format/output_file.h"
#include "ui/bridge/engine_inquiry.h"
#include "ui/bridge/text.h"
#include "ui/explore/explore_windows.h"
#include "ui/window/main_window.h"
#include "ui/window/statistics_panel.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QPixmap>

#include <cstdio>

namespace stagecraft::desktop {

Screenshot::Screenshot(ui::MainWindow& window, QWidget* beside, const WindowCommand& command)
    : window_(window), beside_(beside), command_(command)
{
    if (beside_)
        connect(&window.explore(), &ui::ExploreWindows::settled, this, [this] {
            settled_ = true;
            QMetaObject::invokeMethod(this, &Screenshot::check, Qt::QueuedConnection);
        });
    ui::Workbench& bench = window.workbench();
    // Queued: the panels have drawn what the signal told before the picture is taken.
    connect(&bench.simulation(), &ui::SimulationController::changed, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&bench.simulation(), &ui::SimulationController::problemChanged, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&bench.run(), &ui::RunController::grew, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&bench.run(), &ui::RunController::stateChanged, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&bench.scene(), &ui::TimelineScene::analysed, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&window.statistics(), &ui::StatisticsPanel::settled, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&window.engineInquiry(), &ui::EngineInquiry::told, this, &Screenshot::check, Qt::QueuedConnection);
    connect(&bench.run(), &ui::RunController::failed, this, [this](const QString& text) { failure_ = text; });
    QMetaObject::invokeMethod(this, &Screenshot::check, Qt::QueuedConnection);
}

bool Screenshot::stepIsHalfDone(int step) const
{
    const ui::Workbench& bench = window_.workbench();
    if (!bench.otherSource()) return false;
    const ui::StepTable& steps = bench.scene().steps(*bench.otherSource());
    if (steps.find(traces::Step{step + 1})) return true;
    const ui::StepPlace* now = steps.find(traces::Step{step});
    if (!now) return false;
    const ui::StepPlace* before = steps.find(traces::Step{step - 1});
    const traces::Trace* simulated = bench.simulation().simulation().trace.get();
    const std::size_t whole = before ? before->slices : simulated ? simulated->sliceCount() : 0;
    return 2 * now->slices >= whole;
}

void Screenshot::check()
{
    if (done_) return;
    const ui::Workbench& bench = window_.workbench();
    if (bench.simulation().busy() || (beside_ && !settled_)) return;
    // A plan for GPUs is shown with what the engine says of them.
    if (bench.document().plan().run.device == engine::DeviceKind::Cuda && window_.engineInquiry().asking()) return;
    if (command_.statistics && !bench.scene().growing() && window_.statistics().busy()) return;
    if (!command_.run) {
        take();
        return;
    }
    const engine::SessionState state = bench.run().state();
    if (state == engine::SessionState::Failed) {
        fail(failure_);
        return;
    }
    const bool over = engine::finished(state);
    if (over || (command_.at.step && stepIsHalfDone(*command_.at.step))) take();
}

void Screenshot::take()
{
    done_ = true;
    // What the last events set off (layouts, queued replots) comes before the picture.
    QCoreApplication::sendPostedEvents();
    QCoreApplication::processEvents(QEventLoop::ExcludeUserInputEvents);
    QBuffer png;
    png.open(QIODevice::WriteOnly);
    const QPixmap picture = beside_ ? beside_->grab() : window_.grab();
    // Drawing it asks for bubbles and phases; those of a long step come a little later, and call for another picture.
    if (!beside_ && window_.workbench().scene().calculating() && !window_.workbench().scene().growing()) {
        done_ = false;
        return;
    }
    if (!picture.save(&png, "PNG")) {
        fail(tr("%1: the picture could not be encoded as PNG.").arg(command_.screenshot));
        return;
    }
    const traces::Expected<void> written =
        traces::writeWholeFile(ui::fromQt(command_.screenshot), {png.data().constData(), static_cast<std::size_t>(png.size())});
    if (!written.ok()) {
        fail(ui::toQt(written.error().message));
        return;
    }
    QCoreApplication::exit(0);
}

void Screenshot::fail(const QString& text)
{
    done_ = true;
    std::fprintf(stderr, "stagecraft: %s\n", traces::harmless(ui::fromQt(text)).c_str());
    QCoreApplication::exit(1);
}

} // namespace stagecraft::desktop
