// SPDX-License-Identifier: GPL-3.0-or-later
//
// A live run as the window knows it: the session with the engine, the trace that grows from its records, losses, progress,
// the first failure and the result. What came stays after a stop, a failure or a killed engine, until the next start.
#pragma once

#include "engine/session/session_message.h"
#include "traces/store/trace.h"
#include "ui/bridge/worker_session.h"

#include <QObject>
#include <QString>

#include <memory>
#include <optional>

namespace stagecraft::ui {

// How a run of the plan is carried out: "threads", "emulated on GPUs".
QString mannerText(const engine::RunSpec& run);

class RunController : public QObject {
    Q_OBJECT
public:
    explicit RunController(QObject* parent = nullptr);

    void setCommand(const WorkerCommand& command) { session_.setCommand(command); }

    // An error where the plan cannot run at all; later failures come by failed().
    traces::Expected<void> start(const engine::Plan& plan);
    void pause() { session_.pause(); }
    void resume() { session_.resume(); }
    void stop() { session_.stop(); }
    void trouble(const engine::StageTrouble& trouble) { session_.trouble(trouble); }

    [[nodiscard]] engine::SessionState state() const { return session_.state(); }
    [[nodiscard]] bool active() const { return session_.active(); }
    [[nodiscard]] WorkerSession& session() { return session_; }

    [[nodiscard]] std::shared_ptr<const traces::Trace> trace() const { return trace_; } // null before the first run
    [[nodiscard]] const engine::Plan& plan() const { return plan_; }                    // of the run
    [[nodiscard]] const std::optional<engine::RunResult>& result() const { return result_; }
    [[nodiscard]] const std::optional<engine::FailureMessage>& failure() const { return failure_; }
    [[nodiscard]] const QString& progressText() const { return progressText_; }
    [[nodiscard]] double progress() const { return progress_; }
    [[nodiscard]] std::optional<double> lastLoss() const;
    [[nodiscard]] int finishedSteps() const { return trace_ ? static_cast<int>(trace_->steps().size()) : 0; }

    // How the run's measured times are called in a plan: "run of gpt-small, 2 ranks, threads on GPUs, 2026-11-28 14:03".
    [[nodiscard]] QString label() const;

signals:
    void started();  // trace() is a new one
    void grew();     // trace() got longer, once a tick
    void stateChanged(engine::SessionState state);
    void progressed();
    void failed(const QString& text);
    void resulted();
    void note(const QString& text);    // for the log
    void warning(const QString& text); // for the log

private:
    void begin();
    void take(const std::vector<traces::Record>& records);
    void tellNewCaveats();

    WorkerSession session_;
    engine::Plan next_; // being started
    std::shared_ptr<traces::Trace> trace_;
    engine::Plan plan_;
    QString startedAt_;
    std::optional<engine::RunResult> result_;
    std::optional<engine::FailureMessage> failure_;
    std::string failureNote_; // that says so in the trace
    QString progressText_;
    double progress_ = 0;
    int misfits_ = 0; // records that did not fit
    std::size_t notesSeen_ = 0; // of the trace
    std::size_t informationSeen_ = 0;
};

// Why this plan cannot be run, or empty.
QString whyNotRunnable(const engine::Plan& plan);

// The plan with what a run of `ran` measured as its costs. An error where that says nothing about this plan's stages: they
// hold other layers, or their micro-batches have another number of rows.
traces::Expected<engine::Plan> withMeasuredCosts(engine::Plan plan, const engine::Plan& ran, const engine::RunResult& result,
                                                 const QString& from);

} // namespace stagecraft::ui
