// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/worker_command.h"

#include <QDir>
#include <QProcess>

namespace stagecraft::ui {

QString WorkerCommand::text() const
{
    QStringList words{program};
    words += arguments;
    for (QString& word : words)
        if (word.contains(' ')) word = '"' + word + '"';
    return words.join(' ');
}

namespace {

WorkerCommand commandTo(const QStringList& verb, const QString& prefix, const QString& programFolder)
{
    QStringList words = QProcess::splitCommand(prefix);
    if (words.isEmpty()) words << QDir(programFolder).filePath("stagecraft-cli");
    words += verb;
    WorkerCommand command;
    command.program = words.takeFirst();
    command.arguments = words;
    return command;
}

} // namespace

WorkerCommand workerCommand(const QString& prefix, const QString& programFolder) { return commandTo({"worker"}, prefix, programFolder); }

WorkerCommand doctorCommand(const QString& prefix, const QString& programFolder) { return commandTo({"doctor", "--json"}, prefix, programFolder); }

} // namespace stagecraft::ui
