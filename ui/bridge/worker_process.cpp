// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/worker_process.h"

#include "engine/session/session_message.h"
#include "ui/bridge/text.h"

#include <QThread>

namespace stagecraft::ui {

WorkerProcess::WorkerProcess(std::shared_ptr<RecordInbox> inbox, std::shared_ptr<LineInbox> lines)
    : inbox_(std::move(inbox)), lines_(std::move(lines)), process_(this), patience_(this)
{
    patience_.setSingleShot(true);
    connect(&patience_, &QTimer::timeout, this, [this] {
        if (terminated_) {
            process_.kill();
            return;
        }
        terminated_ = true;
        process_.terminate();
        patience_.start(kTerminateMs);
    });
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        patience_.stop(); // a shutDown() may have come before: there is nothing to end, and the next process is another
        pid_ = 0;
        emit couldNotStart(process_.errorString());
        if (threadEnds_) QThread::currentThread()->quit();
    });
    connect(&process_, &QProcess::readyReadStandardOutput, this, &WorkerProcess::readRecords);
    connect(&process_, &QProcess::readyReadStandardError, this, &WorkerProcess::readErrors);
    connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        patience_.stop();
        pid_ = 0;
        readRecords();
        readErrors();
        if (lines_->finish()) emit said();
        emit exited(code, status == QProcess::CrashExit);
        if (threadEnds_) QThread::currentThread()->quit();
    });
}

WorkerProcess::~WorkerProcess()
{
    process_.disconnect(this); // its destructor kills and reaps; nobody listens any more
}

void WorkerProcess::launch(const WorkerCommand& command)
{
    journal_ = std::make_unique<traces::JournalReader>();
    broken_ = false;
    terminated_ = false;
    process_.start(command.program, command.arguments);
    pid_ = process_.processId();
}

void WorkerProcess::send(const QByteArray& line)
{
    if (process_.state() != QProcess::NotRunning) process_.write(line + '\n');
}

void WorkerProcess::shutDown()
{
    if (process_.state() == QProcess::NotRunning || patience_.isActive()) return;
    send(QByteArray::fromStdString(engine::writeCommand({.kind = engine::CommandKind::Quit, .plan = {}})));
    process_.closeWriteChannel();
    patience_.start(kQuitMs);
}

void WorkerProcess::endThread()
{
    threadEnds_ = true;
    if (process_.state() == QProcess::NotRunning) QThread::currentThread()->quit();
    else shutDown();
}

void WorkerProcess::readRecords()
{
    const QByteArray bytes = process_.readAllStandardOutput();
    if (broken_ || bytes.isEmpty()) return;
    std::vector<traces::Record> records;
    const traces::Expected<void> fed =
        journal_->feed({bytes.constData(), static_cast<std::size_t>(bytes.size())}, records);
    inbox_->push(std::move(records));
    if (!fed.ok()) {
        broken_ = true;
        emit streamBroken(toQt(fed.error().message));
    }
}

void WorkerProcess::readErrors()
{
    const QByteArray bytes = process_.readAllStandardError();
    if (lines_->push(bytes)) emit said();
}

} // namespace stagecraft::ui
