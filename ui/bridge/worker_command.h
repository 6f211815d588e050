// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the engine process is started: the command line program beside this one, or whatever the user gives in its place,
// such as "ssh gpu-host stagecraft-cli". What it is to do is added: the word "worker", or the question what its machine has.
//
//   workerCommand("ssh gpu-host stagecraft-cli", binaryFolder).text() == "ssh gpu-host stagecraft-cli worker"
//   doctorCommand("", "/opt/bin").text() == "/opt/bin/stagecraft-cli doctor --json"
#pragma once

#include <QString>
#include <QStringList>

namespace stagecraft::ui {

struct WorkerCommand {
    QString program;
    QStringList arguments;

    [[nodiscard]] QString text() const; // as one would type it
    bool operator==(const WorkerCommand&) const = default;
};

// `prefix` empty: stagecraft-cli in `programFolder`. Quotes in the prefix work as in a shell.
WorkerCommand workerCommand(const QString& prefix, const QString& programFolder);
WorkerCommand doctorCommand(const QString& prefix, const QString& programFolder);

} // namespace stagecraft::ui
