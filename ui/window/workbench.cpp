// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/workbench.h"

#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"

#include <QFileInfo>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

Workbench::Workbench(QObject* parent) : QObject(parent)
{
    connect(&document_, &PlanDocument::changed, this, [this] { simulation_.setPlan(document_.plan()); });
    connect(&simulation_, &SimulationController::changed, this, &Workbench::updateSources);
    connect(&simulation_, &SimulationController::problemChanged, this, &Workbench::updateSources);
    connect(&run_, &RunController::started, this, [this] {
        if (view_ == ViewKind::SimulatedOnly) view_ = ViewKind::Stacked;
        setOther(run_.trace(), {});
        emit viewChanged();
    });
    connect(&run_, &RunController::grew, this, [this] {
        if (otherIsRun() && otherSource_) scene_.dataArrived();
    });
    connect(&run_, &RunController::stateChanged, this, [this](engine::SessionState state) {
        if (engine::finished(state) && otherIsRun() && otherSource_) scene_.setGrowing(*otherSource_, false);
    });
}

void Workbench::setView(ViewKind view)
{
    if (view == view_) return;
    view_ = view;
    updateSources();
    emit viewChanged();
}

void Workbench::setOther(std::shared_ptr<const traces::Trace> trace, const QString& file)
{
    other_ = std::move(trace);
    otherFile_ = file;
    updateSources();
    emit otherChanged();
}

void Workbench::updateSources()
{
    // The indices are set when the scene tells of its change, and before nobody hears of one.
    std::vector<TraceSource> sources;
    simulatedSource_.reset();
    otherSource_.reset();
    const std::shared_ptr<const traces::Trace>& simulated = simulation_.simulation().trace;
    if (simulated && (view_ != ViewKind::OtherOnly || !other_)) {
        simulatedSource_ = static_cast<int>(sources.size());
        const bool outdated = !simulation_.problem().isEmpty();
        sources.push_back({simulated,
                           outdated ? tr("simulated: %1 (the last plan that could be simulated)").arg(toQt(simulated->info.title))
                                    : QString(),
                           false});
    }
    if (other_ && view_ != ViewKind::SimulatedOnly) {
        otherSource_ = static_cast<int>(sources.size());
        sources.push_back({other_, otherFile_.isEmpty() ? QString() : tr("%1: %2").arg(toQt(labelText(other_->info.label)), QFileInfo(otherFile_).fileName()),
                           otherIsRun() && run_.active()});
    }
    scene_.setSources(std::move(sources), view_ == ViewKind::Overlaid ? Arrangement::Overlaid : Arrangement::Stacked);
}

Expected<void> Workbench::startRun() { return run_.start(document_.plan()); }

Expected<void> Workbench::openTrace(const QString& file)
{
    if (run_.active()) return Error{"a run is going on; stop it before another trace is opened"};
    Expected<traces::Trace> trace = traces::loadTrace(fromQt(file));
    if (!trace.ok()) return trace.error();
    view_ = ViewKind::OtherOnly;
    setOther(std::make_shared<const traces::Trace>(std::move(trace).value()), file);
    emit viewChanged();
    return {};
}

void Workbench::closeOther()
{
    if (!other_ || run_.active()) return;
    setOther(nullptr, {});
}

QString Workbench::whyNoMeasuredCosts() const
{
    if (run_.active()) return tr("The run is still going on.");
    if (!run_.result()) return tr("There is no finished run whose times could be used.");
    const Expected<engine::Plan> plan = withMeasuredCosts(document_.plan(), *run_.result(), run_.label());
    return plan.ok() ? QString() : toQt(plan.error().message);
}

Expected<void> Workbench::useMeasuredCosts()
{
    const QString obstacle = whyNoMeasuredCosts();
    if (!obstacle.isEmpty()) return Error{fromQt(obstacle)};
    Expected<engine::Plan> plan = withMeasuredCosts(document_.plan(), *run_.result(), run_.label());
    if (!plan.ok()) return plan.error();
    document_.edit(std::move(plan).value(), tr("measured costs"), "measured");
    if (otherIsRun()) setView(ViewKind::Overlaid);
    return {};
}

} // namespace stagecraft::ui
