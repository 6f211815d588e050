// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window's side of a live run: the engine in its own process, with the commands and states of engine::Session as
// slots and signals. GUI thread only; no call blocks but the destructor, which waits until the worker has ended (asked,
// then terminated, then killed: about a second at most).
//
//   window --start, pause, ...--> WorkerSession ==queued==> WorkerProcess (reader thread) --stdin--> stagecraft-cli worker
//   window <--recordsArrived---- tick, 40 Hz <--RecordInbox--+<---------------------------stdout--+
//   window <--workerSaid-----------------'   <--LineInbox----+<---------------------------stderr--+
//
// A worker that dies during a run makes the run Failed, with the reason; what came until then has been delivered. The next
// start() launches a new one. Several runs one after another use the same worker.
#pragma once

#include "engine/session/session_message.h"
#include "traces/store/record.h"
#include "ui/bridge/line_inbox.h"
#include "ui/bridge/record_inbox.h"
#include "ui/bridge/worker_command.h"

#include <QObject>
#include <QThread>
#include <QTimer>

#include <memory>
#include <vector>

namespace stagecraft::ui {

class WorkerProcess;

class WorkerSession : public QObject {
    Q_OBJECT
public:
    static constexpr int kTickMs = 25;

    explicit WorkerSession(QObject* parent = nullptr);
    ~WorkerSession() override;

    // Used by the next launch; a worker that is idle and was started by another command is replaced.
    void setCommand(const WorkerCommand& command);
    [[nodiscard]] const WorkerCommand& command() const { return command_; }

    engine::Expected<void> start(const engine::Plan& plan);
    void pause();
    void resume();
    void trouble(const engine::StageTrouble& trouble);
    void stop(); // a second stop() while the ranks still drain ends the worker itself

    [[nodiscard]] engine::SessionState state() const { return state_; }
    [[nodiscard]] bool active() const; // a run is going on, from start() until its last state
    [[nodiscard]] qint64 workerPid() const; // 0 while none runs

    // Ends the worker without blocking; workerPid() is 0 once it has ended.
    void shutDown();

signals:
    // A start was accepted: what recordsArrived() told until now is of the run before, what it tells from now on is not.
    void begun();
    void recordsArrived(const std::vector<traces::Record>& records); // of the trace, once a tick
    void stateChanged(engine::SessionState state);
    void progressed(const QString& text, double fraction);
    void failed(const engine::FailureMessage& failure);
    void resulted(const engine::RunResult& result);
    void workerSaid(const QString& line); // its standard error, for the log; floods are cut short (LineInbox)
    void recordsLost(qint64 count);

private:
    enum class Worker { None, Running, Ending };

    void launch();
    void sendStart();
    void send(const engine::SessionCommand& command);
    void tick();
    void takeLines();
    void takeRecords();
    void take(const engine::SessionMessage& message);
    void setState(engine::SessionState state);
    void fail(const QString& text);
    void onCouldNotStart(const QString& reason);
    void onStreamBroken(const QString& reason);
    void onExited(int code, bool killed);

    std::shared_ptr<RecordInbox> inbox_;
    std::shared_ptr<LineInbox> lines_;
    QThread* thread_;        // runs process_; owned, ended in the destructor
    WorkerProcess* process_; // lives in thread_, deleted there
    QTimer timer_;
    WorkerCommand command_;
    WorkerCommand launchedBy_;
    Worker worker_ = Worker::None;
    QByteArray startLine_; // waits until the worker before has ended
    QByteArray sentLine_;  // once more for a new worker, where the one that got it was about to end
    bool awaitingRun_ = false; // started, but the worker still says what belongs to the run before
    engine::SessionState state_ = engine::SessionState::Idle;
};

} // namespace stagecraft::ui
