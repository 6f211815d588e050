// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/run_controller.h"

#include "engine/plan/partition_rules.h"
#include "engine/plan/plan_json.h"
#include "traces/store/record.h"
#include "ui/bridge/text.h"
#include "ui/window/result_notes.h"

#include <QDateTime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

namespace {

constexpr int kMostMisfits = 10; // told one by one

QString placeOf(const engine::FailureMessage& failure)
{
    QStringList place;
    if (failure.step) place << RunController::tr("step %1").arg(*failure.step);
    if (failure.rank) place << RunController::tr("rank %1").arg(*failure.rank);
    if (failure.stage) place << RunController::tr("stage %1").arg(*failure.stage);
    if (failure.microbatch) place << RunController::tr("micro-batch %1").arg(*failure.microbatch);
    return place.join(", ");
}

} // namespace

RunController::RunController(QObject* parent) : QObject(parent)
{
    connect(&session_, &WorkerSession::begun, this, &RunController::begin);
    connect(&session_, &WorkerSession::recordsArrived, this, &RunController::take);
    connect(&session_, &WorkerSession::stateChanged, this, &RunController::stateChanged);
    connect(&session_, &WorkerSession::progressed, this, [this](const QString& text, double fraction) {
        progressText_ = text;
        progress_ = fraction;
        emit progressed();
    });
    connect(&session_, &WorkerSession::failed, this, [this](const engine::FailureMessage& failure) {
        const QString place = placeOf(failure);
        const QString told = place.isEmpty() ? toQt(failure.text) : tr("%1: %2").arg(place, toQt(failure.text));
        if (!failure_ && trace_) { // whoever opens the trace is to know why it ends
            failureNote_ = "the run failed: " + fromQt(told);
            trace_->addNote(failureNote_);
        }
        if (!failure_) failure_ = failure;
        emit failed(told);
    });
    connect(&session_, &WorkerSession::resulted, this, [this](const engine::RunResult& result) {
        result_ = result;
        for (const QString& line : resultNotes(result)) emit note(line);
        emit resulted();
    });
    connect(&session_, &WorkerSession::workerSaid, this,
            [this](const QString& line) { emit note(tr("engine: %1").arg(line)); });
    connect(&session_, &WorkerSession::recordsLost, this, [this](qint64 count) {
        emit warning(tr("Missing from the trace: %1 that came faster than the window takes them.").arg(counted(count, "event")));
    });
}

Expected<void> RunController::start(const engine::Plan& plan)
{
    if (session_.active()) return Error{"a run is going on; stop it before the next one starts"};
    const QString obstacle = whyNotRunnable(plan);
    if (!obstacle.isEmpty()) return Error{fromQt(obstacle)};
    // What cannot be read again the engine does not take: it would not answer with a run.
    if (const Expected<engine::Plan> read = engine::readPlan(engine::writePlan(plan)); !read.ok()) return read.error();
    next_ = plan;
    if (Expected<void> accepted = session_.start(plan); !accepted.ok()) return accepted;
    emit started();
    return {};
}

// Not in start(): the session has first to hand over what the last run left.
void RunController::begin()
{
    plan_ = next_;
    startedAt_ = QDateTime::currentDateTime().toString("yyyy-MM-dd HH:mm");
    trace_ = std::make_shared<traces::Trace>();
    trace_->info.label = plan_.run.mode == engine::RunMode::Emulated ? traces::TraceLabel::Emulated : traces::TraceLabel::Measured;
    trace_->info.ranks = plan_.machine.replicas * plan_.pipeline.ranks;
    result_.reset();
    failure_.reset();
    failureNote_.clear();
    progressText_.clear();
    progress_ = 0;
    misfits_ = 0;
    notesSeen_ = 0;
    informationSeen_ = 0;
}

void RunController::take(const std::vector<traces::Record>& records)
{
    if (!trace_) return;
    for (const traces::Record& record : records) {
        const Expected<void> applied = traces::apply(*trace_, record);
        if (applied.ok()) continue;
        ++misfits_;
        if (misfits_ <= kMostMisfits) emit warning(tr("An event of the run was left out: %1").arg(toQt(applied.error().message)));
        if (misfits_ == kMostMisfits) emit warning(tr("Further events that do not fit are left out without being told."));
    }
    tellNewCaveats();
    emit grew();
}

// At once: a run that may not fit into memory could end without another word.
void RunController::tellNewCaveats()
{
    const std::vector<std::string>& notes = trace_->notes();
    for (; notesSeen_ < notes.size(); ++notesSeen_) {
        const auto now = notes.begin() + static_cast<std::ptrdiff_t>(notesSeen_);
        if (*now != failureNote_ && std::find(notes.begin(), now, *now) == now) emit warning(tr("The %1: %2").arg(label(), toQt(*now)));
    }
    for (; informationSeen_ < trace_->information().size(); ++informationSeen_)
        emit note(tr("The %1: %2").arg(label(), toQt(trace_->information()[informationSeen_])));
}

std::optional<double> RunController::lastLoss() const
{
    if (!trace_) return std::nullopt;
    for (auto step = trace_->steps().rbegin(); step != trace_->steps().rend(); ++step)
        if (step->loss) return step->loss;
    return std::nullopt;
}

QString RunController::label() const
{
    return tr("run of %1, %2, %3, %4")
        .arg(plan_.name.empty() ? tr("an unnamed plan") : toQt(plan_.name), counted(plan_.pipeline.ranks, "rank"),
             mannerText(plan_.run), startedAt_);
}

QString mannerText(const engine::RunSpec& run)
{
    const QString mode = toQt(engine::runModeText(run.mode));
    return run.device == engine::DeviceKind::Cuda ? RunController::tr("%1 on GPUs").arg(mode) : mode;
}

QString whyNotRunnable(const engine::Plan& plan)
{
    if (plan.model.empty()) return RunController::tr("This plan has no model to run; choose one under Model.");
    if (const Expected<void> sound = checkPlan(plan); !sound.ok()) return toQt(sound.error().message);
    return {};
}

namespace {

std::string layersText(const engine::Plan& plan)
{
    const Expected<engine::Partition> partition = partitionOf(plan);
    return partition.ok() ? fmt::format("{}", fmt::join(partition.value(), ", ")) : "none that fit";
}

// How the plan differs from the one that ran in what decides over the time of a stage; empty: in nothing.
std::string measuredOtherwise(const engine::Plan& ran, const engine::Plan& plan)
{
    if (ran.stages() != plan.stages()) return fmt::format("the run had {}, the plan has {}", traces::counted(ran.stages(), "stage"), plan.stages());
    if (ran.pipeline.chunks != plan.pipeline.chunks)
        return fmt::format("the run had {} per rank, the plan has {}", traces::counted(ran.pipeline.chunks, "chunk"), plan.pipeline.chunks);
    if (ran.model.microbatchRows != plan.model.microbatchRows)
        return fmt::format("the run had micro-batches of {}, the plan has {}", traces::counted(ran.model.microbatchRows, "row"),
                           plan.model.microbatchRows);
    if (ran.model != plan.model) return "the run trained another model than the plan's";
    const std::string ranLayers = layersText(ran);
    const std::string layers = layersText(plan);
    if (ranLayers != layers) return fmt::format("the run had {} layers per stage, the plan has {}", ranLayers, layers);
    return {};
}

} // namespace

Expected<engine::Plan> withMeasuredCosts(engine::Plan plan, const engine::Plan& ran, const engine::RunResult& result, const QString& from)
{
    std::string difference = measuredOtherwise(ran, plan);
    if (difference.empty() && static_cast<int>(result.measuredCosts.size()) != plan.stages())
        difference = fmt::format("the run measured {}, the plan has {}", traces::counted(result.measuredCosts.size(), "stage"), plan.stages());
    if (!difference.empty()) return Error{difference + "; run the plan as it is now first"};
    engine::keepPartition(plan);
    plan.costs.source = engine::CostSource::Measured;
    plan.costs.measured = result.measuredCosts;
    plan.costs.measuredFrom = fromQt(from);
    // The hand-off was measured as a whole: it becomes the latency, and no bytes are counted beside it.
    plan.costs.latency = result.measuredTransferNs;
    plan.costs.bandwidth = 0;
    plan.costs.jitter = 0;
    return plan;
}

} // namespace stagecraft::ui
