// SPDX-License-Identifier: GPL-3.0-or-later
//
// The engine process seen from the thread that owns it: starts it, writes command lines to it, turns its standard output
// into records and its standard error into lines, each in its inbox, and ends it (asks, then terminates, then kills).
// Lives in WorkerSession's reader thread, so that neither a busy window holds up the worker nor a fast worker the window.
// All calls but pid() belong to that thread.
#pragma once

#include "traces/format/journal.h"
#include "ui/bridge/line_inbox.h"
#include "ui/bridge/record_inbox.h"
#include "ui/bridge/worker_command.h"

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QTimer>

#include <atomic>
#include <memory>

namespace stagecraft::ui {

class WorkerProcess : public QObject {
    Q_OBJECT
public:
    // Patience with a worker that is asked to quit, and again after it was told to terminate.
    static constexpr int kQuitMs = 400;
    static constexpr int kTerminateMs = 300;

    WorkerProcess(std::shared_ptr<RecordInbox> inbox, std::shared_ptr<LineInbox> lines);
    ~WorkerProcess() override;

    [[nodiscard]] qint64 pid() const { return pid_; } // 0 while none runs; any thread

    void launch(const WorkerCommand& command);
    void send(const QByteArray& line);
    void shutDown();
    void endThread(); // shuts down, and ends this object's thread once no process runs any more

signals:
    void couldNotStart(const QString& reason);
    void said(); // there are lines again; not once more until they were taken
    void streamBroken(const QString& reason);
    // Everything that the process wrote is in the inboxes by then. `code` is the signal's number when it was killed.
    void exited(int code, bool killed);

private:
    void readRecords();
    void readErrors();

    std::shared_ptr<RecordInbox> inbox_;
    std::shared_ptr<LineInbox> lines_;
    QProcess process_;
    QTimer patience_;
    std::unique_ptr<traces::JournalReader> journal_;
    std::atomic<qint64> pid_{0};
    bool broken_ = false;
    bool terminated_ = false;
    bool threadEnds_ = false;
};

} // namespace stagecraft::ui
