// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/worker_session.h"

#include "engine/session/serve.h"
#include "ui/bridge/text.h"
#include "ui/bridge/worker_process.h"

#include <QDeadlineTimer>

#include <cstring>

namespace stagecraft::ui {

using engine::SessionState;
using traces::Error;
using traces::Expected;
using traces::Record;

WorkerSession::WorkerSession(QObject* parent)
    : QObject(parent), inbox_(std::make_shared<RecordInbox>()), lines_(std::make_shared<LineInbox>()), thread_(new QThread),
      process_(new WorkerProcess(inbox_, lines_))
{
    thread_->setObjectName("worker-reader");
    process_->moveToThread(thread_);
    connect(thread_, &QThread::finished, process_, &QObject::deleteLater);
    connect(process_, &WorkerProcess::couldNotStart, this, &WorkerSession::onCouldNotStart);
    connect(process_, &WorkerProcess::said, &timer_, qOverload<>(&QTimer::start)); // an idle worker is heard too
    connect(process_, &WorkerProcess::streamBroken, this, &WorkerSession::onStreamBroken);
    connect(process_, &WorkerProcess::exited, this, &WorkerSession::onExited);
    timer_.setInterval(kTickMs);
    connect(&timer_, &QTimer::timeout, this, &WorkerSession::tick);
    thread_->start();
}

WorkerSession::~WorkerSession()
{
    process_->disconnect(this);
    QMetaObject::invokeMethod(process_, &WorkerProcess::endThread);
    const int patienceMs = WorkerProcess::kQuitMs + WorkerProcess::kTerminateMs + 500;
    if (thread_->wait(QDeadlineTimer(patienceMs))) delete thread_;
    // else: a process that even SIGKILL does not end (it hangs in the kernel); the window must still close, so the thread
    // is left to the end of this program
}

qint64 WorkerSession::workerPid() const { return process_->pid(); }

bool WorkerSession::active() const { return state_ != SessionState::Idle && !engine::finished(state_); }

void WorkerSession::setCommand(const WorkerCommand& command) { command_ = command; }

Expected<void> WorkerSession::start(const engine::Plan& plan)
{
    if (active()) return Error{"a run is going on; stop it before the next one starts"};
    tick(); // what the last run left belongs to it
    inbox_->beginRun();
    awaitingRun_ = true;
    emit begun();
    startLine_ = QByteArray::fromStdString(engine::writeCommand({.kind = engine::CommandKind::Start, .plan = plan}));
    if (worker_ == Worker::Running && launchedBy_ != command_) shutDown();
    setState(SessionState::Preparing);
    timer_.start();
    if (worker_ == Worker::None) launch();
    if (worker_ != Worker::Ending) sendStart();
    return {};
}

void WorkerSession::sendStart()
{
    sentLine_ = std::exchange(startLine_, {});
    QMetaObject::invokeMethod(process_, [process = process_, line = sentLine_] { process->send(line); });
}

void WorkerSession::launch()
{
    worker_ = Worker::Running;
    launchedBy_ = command_;
    QMetaObject::invokeMethod(process_, [process = process_, command = command_] { process->launch(command); });
}

void WorkerSession::send(const engine::SessionCommand& command)
{
    const QByteArray line = QByteArray::fromStdString(engine::writeCommand(command));
    QMetaObject::invokeMethod(process_, [process = process_, line] { process->send(line); });
}

void WorkerSession::pause()
{
    if (active()) send({.kind = engine::CommandKind::Pause, .plan = {}});
}

void WorkerSession::resume()
{
    if (active()) send({.kind = engine::CommandKind::Resume, .plan = {}});
}

void WorkerSession::trouble(const engine::StageTrouble& trouble)
{
    if (active()) send({.kind = engine::CommandKind::Trouble, .plan = {}, .trouble = trouble});
}

void WorkerSession::stop()
{
    if (!active()) return;
    if (state_ == SessionState::Stopping) {
        shutDown();
        return;
    }
    if (!startLine_.isEmpty()) { // it has not been sent yet
        startLine_.clear();
        setState(SessionState::Stopped);
        return;
    }
    setState(SessionState::Stopping);
    send({.kind = engine::CommandKind::Stop, .plan = {}});
}

void WorkerSession::shutDown()
{
    if (worker_ == Worker::None) return;
    worker_ = Worker::Ending;
    QMetaObject::invokeMethod(process_, [process = process_] { process->shutDown(); });
}

void WorkerSession::tick()
{
    takeLines();
    takeRecords();
    if (!active()) timer_.stop();
}

void WorkerSession::takeLines()
{
    const LineInbox::Contents contents = lines_->take();
    for (const QString& line : contents.lines) emit workerSaid(line);
    if (contents.leftOut > 0)
        emit workerSaid(tr("… and %1, left out because so many came at once").arg(counted(contents.leftOut, "more line")));
}

void WorkerSession::takeRecords()
{
    RecordInbox::Contents contents = inbox_->take();
    std::vector<Record> ofTrace;
    ofTrace.reserve(contents.records.size());
    std::vector<engine::SessionMessage> messages;
    std::int64_t late = 0;
    for (Record& record : contents.records) {
        const auto* session = std::get_if<traces::SessionRecord>(&record);
        if (!session) {
            // The engine puts what opens a trace before all else, its first state too.
            awaitingRun_ = awaitingRun_ && !std::holds_alternative<traces::InfoRecord>(record);
            if (awaitingRun_) ++late;
            else ofTrace.push_back(std::move(record));
            continue;
        }
        Expected<engine::SessionMessage> message = engine::readMessage(session->json);
        if (!message.ok()) {
            emit workerSaid(tr("The worker sent a message that cannot be read: %1").arg(toQt(message.error().message)));
            continue;
        }
        // Where no trace comes of it, the answer to a start is a state, or a failure; what comes before is of the run before.
        awaitingRun_ = awaitingRun_ && !std::holds_alternative<engine::StateMessage>(message.value()) &&
                       !std::holds_alternative<engine::FailureMessage>(message.value());
        if (awaitingRun_) continue;
        messages.push_back(std::move(message).value());
    }
    if (late > 0) emit workerSaid(tr("Left out, for the run before had ended: %1 of it.").arg(counted(late, "event")));
    if (contents.lost > 0) {
        ofTrace.emplace_back(traces::LostRecord{contents.lost});
        emit recordsLost(contents.lost);
    }
    // The trace first: whoever hears "finished" finds all of it.
    if (!ofTrace.empty()) emit recordsArrived(ofTrace);
    for (const engine::SessionMessage& message : messages) take(message);
}

void WorkerSession::take(const engine::SessionMessage& message)
{
    if (const auto* state = std::get_if<engine::StateMessage>(&message)) {
        // A worker that has not read the stop yet still says "running".
        if (state_ == SessionState::Stopping && !engine::finished(state->state)) return;
        if (active()) setState(state->state);
    } else if (const auto* progress = std::get_if<engine::ProgressMessage>(&message)) {
        emit progressed(toQt(progress->text), progress->fraction);
    } else if (const auto* failure = std::get_if<engine::FailureMessage>(&message)) {
        emit failed(*failure);
    } else {
        emit resulted(std::get<engine::ResultMessage>(message).result);
    }
}

void WorkerSession::setState(SessionState state)
{
    if (state == state_) return;
    state_ = state;
    emit stateChanged(state);
}

void WorkerSession::fail(const QString& text)
{
    engine::FailureMessage failure;
    failure.text = fromQt(text);
    emit failed(failure);
    setState(SessionState::Failed);
}

void WorkerSession::onCouldNotStart(const QString& reason)
{
    worker_ = Worker::None;
    startLine_.clear();
    if (!active()) return;
    fail(tr("The engine could not be started: \"%1\": %2. Check that the command exists and may be executed, or give "
            "another one under Run > Engine command (leave it empty for the program beside this one).")
             .arg(launchedBy_.text(), reason));
}

void WorkerSession::onStreamBroken(const QString& reason)
{
    const bool wasActive = active();
    shutDown();
    if (!wasActive) return;
    tick();
    fail(tr("What \"%1\" writes cannot be read: %2. It must be a stagecraft-cli of the same version, and nothing else may "
            "write to its standard output (a login script, for instance).")
             .arg(launchedBy_.text(), reason));
}

void WorkerSession::onExited(int code, bool killed)
{
    tick();
    const bool asked = worker_ == Worker::Ending;
    worker_ = Worker::None;
    const bool spent = !killed && code == engine::kSpentStatus; // said by the run that it happened to
    if (spent && active() && awaitingRun_) startLine_ = std::exchange(sentLine_, {});
    if (!startLine_.isEmpty()) { // a start waited for this one to end
        launch();
        sendStart();
        return;
    }
    if (active()) {
        const QString how = killed ? tr("was killed by signal %1 (%2)").arg(code).arg(QString::fromLocal8Bit(strsignal(code)))
                                   : tr("ended with exit status %1").arg(code);
        if (asked) {
            emit workerSaid(tr("The engine was ended by force, for its ranks did not stop."));
            setState(SessionState::Stopped);
        } else {
            fail(tr("The engine %1 during the run. What ran until then is kept; the next run starts a new engine.").arg(how));
        }
    } else if (!asked && !spent && (killed || code != 0)) {
        emit workerSaid(tr("The idle engine ended (exit status or signal %1); the next run starts a new one.").arg(code));
    }
}

} // namespace stagecraft::ui
