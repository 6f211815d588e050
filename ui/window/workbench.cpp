// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/workbench.h"

#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/lab/run_section.h"

#include <QFileInfo>

#include <algorithm>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

namespace {

std::vector<StuckRank> stuckRanks(const std::vector<engine::WaitingRank>& circle)
{
    std::vector<StuckRank> ranks;
    for (const engine::WaitingRank& rank : circle)
        ranks.push_back({rank.rank, Workbench::tr("%1 waits for %2").arg(toQt(rank.action), toQt(rank.waitsFor)), rank.waitsForRank});
    return ranks;
}

} // namespace

Workbench::Workbench(QObject* parent) : QObject(parent), obstacle_(ui::whyNotRunnable(document_.plan()))
{
    connect(&document_, &PlanDocument::changed, this, [this] {
        obstacle_ = whyNotRunnable(document_.plan());
        simulation_.setPlan(document_.plan());
    });
    connect(&simulation_, &SimulationController::changed, this, &Workbench::updateSources);
    connect(&simulation_, &SimulationController::problemChanged, this, &Workbench::updateSources);
    connect(&run_, &RunController::started, this, [this] {
        // The run is to be seen beside its simulation, whatever was looked at alone before.
        if (view_ != ViewKind::Overlaid) view_ = ViewKind::Stacked;
        keepRun();
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

QString Workbench::whyNotRunnable(const engine::Plan& plan) const
{
    const QString unsound = ui::whyNotRunnable(plan);
    return unsound.isEmpty() && machine_.told ? troubleWithGpus(plan, machine_) : unsound;
}

void Workbench::setEngineMachine(const EngineMachine& machine)
{
    machine_ = machine;
    obstacle_ = whyNotRunnable(document_.plan());
    emit runnableChanged();
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
                           false, SourceRole::Simulation, stuckRanks(simulation_.simulation().deadlock)});
    }
    if (other_ && view_ != ViewKind::SimulatedOnly) {
        otherSource_ = static_cast<int>(sources.size());
        sources.push_back({other_, otherLabel(), otherIsRun() && run_.active(), SourceRole::Other, {}});
    }
    scene_.setSources(std::move(sources), view_ == ViewKind::Overlaid ? Arrangement::Overlaid : Arrangement::Stacked);
}

QString Workbench::otherWord() const
{
    const traces::TraceLabel label = other_ ? other_->info.label : traces::TraceLabel::Measured;
    return label == traces::TraceLabel::Simulated ? tr("opened") : toQt(labelText(label));
}

QString Workbench::otherLabel() const
{
    const QString label = toQt(labelText(other_->info.label));
    if (!otherFile_.isEmpty()) return tr("%1: %2").arg(label, QFileInfo(otherFile_).fileName());
    if (otherIsRun()) return {}; // by its own title
    const auto kept = std::find_if(runs_.begin(), runs_.end(), [this](const KeptRun& run) { return run.trace == other_; });
    return kept == runs_.end() ? QString() : tr("%1: %2").arg(label, kept->label);
}

void Workbench::keepRun()
{
    std::erase_if(runs_, [](const KeptRun& run) { return run.trace->sliceCount() == 0; }); // it never came to anything
    runs_.insert(runs_.begin(), {run_.trace(), run_.label(), false});
    if (runs_.size() > kMostRuns) {
        const QString oldest = runs_.back().label;
        runs_.pop_back();
        emit runDropped(oldest);
    }
    emit runsChanged();
}

void Workbench::showRun(std::size_t index)
{
    if (run_.active() || index >= runs_.size()) return;
    if (view_ != ViewKind::Overlaid) view_ = ViewKind::Stacked;
    setOther(runs_[index].trace, {});
    emit viewChanged();
}

std::vector<KeptRun> Workbench::unsavedRuns() const
{
    std::vector<KeptRun> unsaved = runs_;
    std::erase_if(unsaved, [](const KeptRun& run) { return run.saved || run.trace->sliceCount() == 0; });
    return unsaved;
}

void Workbench::markSaved(const std::shared_ptr<const traces::Trace>& trace)
{
    for (KeptRun& run : runs_)
        if (run.trace == trace) run.saved = true;
}

Expected<void> Workbench::startRun() { return run_.start(document_.plan()); }

Expected<void> Workbench::whyNoOtherTrace() const
{
    if (run_.active()) return Error{"a run is going on; stop it before another trace is opened"};
    return {};
}

Expected<void> Workbench::showTrace(traces::Trace trace, const QString& file)
{
    if (Expected<void> free = whyNoOtherTrace(); !free.ok()) return free;
    view_ = ViewKind::OtherOnly;
    setOther(std::make_shared<const traces::Trace>(std::move(trace)), file);
    emit viewChanged();
    return {};
}

Expected<void> Workbench::openTrace(const QString& file)
{
    Expected<traces::Trace> trace = traces::loadTrace(fromQt(file));
    if (!trace.ok()) return trace.error();
    return showTrace(std::move(trace).value(), file);
}

Expected<engine::Plan> Workbench::tracePlan() const
{
    if (!other_) return Error{fromQt(tr("There is only the simulated trace."))};
    if (other_->info.planJson.empty()) return Error{fromQt(tr("The trace carries no plan."))};
    if (!readPlan_ || readJson_ != other_->info.planJson) {
        readJson_ = other_->info.planJson;
        readPlan_ = engine::readPlan(readJson_);
    }
    if (!readPlan_->ok()) return readPlan_->error().in(fromQt(tr("The plan in the trace cannot be used")));
    if (readPlan_->value() == document_.plan()) return Error{fromQt(tr("The lab shows the trace's plan already."))};
    return readPlan_->value();
}

Expected<void> Workbench::useTracePlan()
{
    Expected<engine::Plan> plan = tracePlan();
    if (!plan.ok()) return plan.error();
    document_.edit(std::move(plan).value(), tr("the trace's plan"));
    return {};
}

QString Workbench::meetTracePlan(TracePlan itsPlan)
{
    Expected<engine::Plan> plan = tracePlan();
    if (!plan.ok()) return toQt(plan.error().message);
    if (itsPlan == TracePlan::Offer || document_.modified())
        return tr("The trace carries another plan than the lab's; Run > Use the trace's plan takes it over.");
    document_.startFrom(std::move(plan).value());
    return tr("The lab has taken over the plan that the trace carries: %1.").arg(document_.title());
}

QStringList Workbench::openedCaveats() const
{
    QStringList told;
    if (!other_ || otherFile_.isEmpty()) return told; // a run's were told as they came
    for (const std::string& caveat : traces::caveatsOf(*other_))
        told << tr("%1: %2").arg(QFileInfo(otherFile_).fileName(), toQt(caveat));
    return told;
}

QStringList Workbench::openedInformation() const
{
    QStringList told;
    if (!other_ || otherFile_.isEmpty()) return told; // as above
    for (const std::string& text : other_->information()) told << tr("%1: %2").arg(QFileInfo(otherFile_).fileName(), toQt(text));
    return told;
}

void Workbench::closeOther()
{
    if (!other_ || run_.active()) return;
    view_ = ViewKind::Stacked;
    setOther(nullptr, {});
    emit viewChanged();
}

QString Workbench::whyNoMeasuredCosts() const
{
    if (run_.active()) return tr("The run is still going on.");
    if (!run_.result()) return tr("There is no finished run whose times could be used.");
    const Expected<engine::Plan> plan = withMeasuredCosts(document_.plan(), run_.plan(), *run_.result(), run_.label());
    return plan.ok() ? QString() : toQt(plan.error().message);
}

Expected<void> Workbench::useMeasuredCosts()
{
    const QString obstacle = whyNoMeasuredCosts();
    if (!obstacle.isEmpty()) return Error{fromQt(obstacle)};
    Expected<engine::Plan> plan = withMeasuredCosts(document_.plan(), run_.plan(), *run_.result(), run_.label());
    if (!plan.ok()) return plan.error();
    document_.edit(std::move(plan).value(), tr("measured costs"));
    if (otherIsRun()) setView(ViewKind::Overlaid);
    return {};
}

} // namespace stagecraft::ui
