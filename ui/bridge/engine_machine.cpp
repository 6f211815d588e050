// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/engine_machine.h"

#include "ui/bridge/text.h"

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStringList>

#include <cstring>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

namespace {

constexpr int kPollMs = 50;   // how soon a stop is heeded
constexpr int kReapMs = 1000; // a killed process is gone at once, where the kernel lets it
constexpr qint64 kMostBytes = 1 << 20;
constexpr qsizetype kErrorBytes = 2000; // of the end of what it complains of

struct Machine { // where its texts are translated
    Q_DECLARE_TR_FUNCTIONS(EngineMachine)
};

// What keeps a run from GPUs by one of the doctor's findings; empty: nothing.
QString obstacleOf(const QJsonObject& finding)
{
    if (!finding["found"].toBool()) return finding["reason"].toString();
    return finding["disables"].toString();
}

EngineMachine silent(const QString& why) { return {.gpus = {}, .noGpus = Machine::tr("The engine did not tell of GPUs: %1").arg(why), .told = false}; }

QString lastLine(const QByteArray& text)
{
    const QStringList lines = QString::fromLocal8Bit(text).split('\n', Qt::SkipEmptyParts);
    return lines.isEmpty() ? Machine::tr("without a word") : lines.last().trimmed();
}

} // namespace

Expected<EngineMachine> readEngineMachine(const QByteArray& json)
{
    QJsonParseError error;
    const QJsonObject findings = QJsonDocument::fromJson(json, &error).object();
    if (error.error != QJsonParseError::NoError) return Error{fromQt(error.errorString())};
    const QJsonObject found = findings["gpus"].toObject();
    if (!found.contains("found") || !found["list"].isArray()) return Error{"it says nothing of GPUs"};

    EngineMachine machine{.gpus = {}, .noGpus = {}, .told = true};
    const QJsonArray gpus = found["list"].toArray();
    for (const QJsonValue& gpu : gpus)
        machine.gpus.push_back({.name = gpu["name"].toString(),
                                .memory = gpu["memory_bytes"].toInteger(),
                                .capability = gpu["compute_capability"].toString()});
    // The first that fails is the reason of those after it.
    for (const char* key : {"libtorch", "cuda", "gpus"}) {
        const QString obstacle = obstacleOf(findings[QLatin1String(key)].toObject());
        if (obstacle.isEmpty()) continue;
        machine.noGpus = Machine::tr("No GPU can be used where the engine runs: %1").arg(obstacle);
        break;
    }
    return machine;
}

QString gpuLines(const std::vector<EngineGpu>& gpus)
{
    QStringList lines;
    for (const EngineGpu& gpu : gpus) {
        QString line = Machine::tr("%1: %2, %3").arg(lines.size()).arg(gpu.name, toQt(traces::formatSize(gpu.memory)));
        if (!gpu.capability.isEmpty()) line += Machine::tr(", compute capability %1").arg(gpu.capability);
        lines << line;
    }
    return lines.join('\n');
}

EngineMachine askEngine(const WorkerCommand& command, std::chrono::milliseconds patience, const std::stop_token& stop)
{
    QProcess process;
    process.setStandardInputFile(QProcess::nullDevice());
    process.start(command.program, command.arguments);
    const QDeadlineTimer deadline(patience);
    const auto tooMuch = [&process] { return process.bytesAvailable() > kMostBytes; };
    QByteArray complaints;
    while (process.state() != QProcess::NotRunning && !stop.stop_requested() && !deadline.hasExpired() && !tooMuch()) {
        process.waitForFinished(kPollMs);
        complaints = (complaints + process.readAllStandardError()).right(kErrorBytes);
    }

    if (process.state() != QProcess::NotRunning) {
        process.kill();
        process.waitForFinished(kReapMs);
        if (tooMuch()) return silent(Machine::tr("\"%1\" writes on and on.").arg(command.text()));
        return silent(Machine::tr("\"%1\" has not answered within %2 s.").arg(command.text()).arg(std::chrono::duration<double>(patience).count()));
    }
    if (process.error() == QProcess::FailedToStart)
        return silent(Machine::tr("\"%1\" could not be started: %2.").arg(command.text(), process.errorString()));
    if (process.exitStatus() == QProcess::CrashExit)
        return silent(Machine::tr("\"%1\" was killed by signal %2 (%3).")
                          .arg(command.text()).arg(process.exitCode()).arg(QString::fromLocal8Bit(strsignal(process.exitCode()))));
    if (process.exitCode() != 0)
        return silent(Machine::tr("\"%1\" ended with exit status %2: %3")
                          .arg(command.text()).arg(process.exitCode()).arg(lastLine(complaints)));
    Expected<EngineMachine> machine = readEngineMachine(process.readAllStandardOutput());
    if (machine.ok()) return std::move(machine).value();
    return silent(Machine::tr("what \"%1\" answers cannot be read: %2. It must be a stagecraft-cli of the same version, and nothing else may "
                              "write to its standard output (a login script, for instance).")
                      .arg(command.text(), toQt(machine.error().message)));
}

} // namespace stagecraft::ui
