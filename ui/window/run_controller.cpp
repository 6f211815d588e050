// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/run_controller.h"

#include "traces/store/record.h"
#include "ui/bridge/text.h"

#include <QDateTime>

#include <fmt/format.h>

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
    connect(&session_, &WorkerSession::recordsArrived, this, &RunController::take);
    connect(&session_, &WorkerSession::stateChanged, this, &RunController::stateChanged);
    connect(&session_, &WorkerSession::progressed, this, [this](const QString& text, double fraction) {
        progressText_ = text;
        progress_ = fraction;
        emit progressed();
    });
    connect(&session_, &WorkerSession::failed, this, [this](const engine::FailureMessage& failure) {
        if (!failure_) failure_ = failure;
        const QString place = placeOf(failure);
        emit failed(place.isEmpty() ? toQt(failure.text) : tr("%1: %2").arg(place, toQt(failure.text)));
    });
    connect(&session_, &WorkerSession::resulted, this, [this](const engine::RunResult& result) {
        result_ = result;
        emit resulted();
    });
    connect(&session_, &WorkerSession::workerSaid, this,
            [this](const QString& line) { emit note(tr("engine: %1").arg(line)); });
    connect(&session_, &WorkerSession::recordsLost, this, [this](qint64 count) {
        emit warning(tr("%n event(s) came faster than the window takes them and are missing from the trace.", nullptr,
                        static_cast<int>(std::min<qint64>(count, std::numeric_limits<int>::max()))));
    });
}

Expected<void> RunController::start(const engine::Plan& plan)
{
    if (session_.active()) return Error{"a run is going on; stop it before the next one starts"};
    const QString obstacle = whyNotRunnable(plan);
    if (!obstacle.isEmpty()) return Error{fromQt(obstacle)};
    plan_ = plan;
    startedAt_ = QDateTime::currentDateTime().toString("yyyy-MM-dd HH:mm");
    trace_ = std::make_shared<traces::Trace>();
    trace_->info.label = plan.run.mode == engine::RunMode::Emulated ? traces::TraceLabel::Emulated : traces::TraceLabel::Measured;
    trace_->info.ranks = plan.pipeline.ranks;
    result_.reset();
    failure_.reset();
    progressText_.clear();
    progress_ = 0;
    misfits_ = 0;
    Expected<void> accepted = session_.start(plan);
    emit started();
    return accepted;
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
    emit grew();
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
    return tr("run of %1, %n rank(s), %2, %3", nullptr, plan_.pipeline.ranks)
        .arg(plan_.name.empty() ? tr("an unnamed plan") : toQt(plan_.name), toQt(engine::runModeText(plan_.run.mode)), startedAt_);
}

QString whyNotRunnable(const engine::Plan& plan)
{
    if (plan.model.empty()) return RunController::tr("This plan has no model to run; choose one under Model.");
    const Expected<void> sound = checkPlan(plan);
    return sound.ok() ? QString() : toQt(sound.error().message);
}

Expected<engine::Plan> withMeasuredCosts(engine::Plan plan, const engine::RunResult& result, const QString& from)
{
    if (static_cast<int>(result.measuredCosts.size()) != plan.stages())
        return Error{fmt::format("the run had {} stages, the plan has {}; run the plan as it is now first",
                                 result.measuredCosts.size(), plan.stages())};
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
