// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/worker_process.h"

#include "engine/session/session_message.h"
#include "ui/bridge/text.h"

#include <QThread>

namespace stagecraft::ui {

WorkerProcess::WorkerProcess(std::shared_ptr<RecordInbox> inbox) : inbox_(std::move(inbox)), process_(this), patience_(this)
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
        pid_ = 0;
        emit couldNotStart(process_.errorString());
        if (threadEnds_) QThread::currentThread()->quit();
    });
    connect(&process_, &QProcess::readyReadStandardOutput, this, &WorkerProcess::readRecords);
    connect(&process_, &QProcess::readyReadStandardError, this, [this] { readErrors(false); });
    connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        patience_.stop();
        pid_ = 0;
        readRecords();
        readErrors(true);
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
    errors_.clear();
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

void WorkerProcess::readErrors(bool untilEnd)
{
    errors_ += process_.readAllStandardError();
    for (qsizetype end = errors_.indexOf('\n'); end >= 0; end = errors_.indexOf('\n')) {
        if (end > 0) emit said(QString::fromUtf8(errors_.left(end)));
        errors_.remove(0, end + 1);
    }
    if (untilEnd && !errors_.isEmpty()) emit said(QString::fromUtf8(std::exchange(errors_, {})));
}

} // namespace stagecraft::ui
