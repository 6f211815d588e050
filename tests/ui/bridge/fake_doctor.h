// SPDX-License-Identifier: GPL-3.0-or-later
//
// An engine command that answers `doctor --json` as on a machine with GPUs, or as a script says: a shell script in a folder of the test.
//
//   const FakeDoctor doctor;
//   doctor.answer(kTwoGpus);
//   inquiry.ask(doctorCommand(doctor.command(), {}));
#pragma once

#include <QByteArray>
#include <QFile>
#include <QString>
#include <QTemporaryDir>

#include <stdexcept>

namespace stagecraft::ui {

// As app/cli/doctor.cpp prints them.
inline constexpr const char* kTwoGpus = R"json({
  "libtorch": {"found": true, "version": "2.11.0", "reason": null, "disables": null},
  "cuda": {"found": true, "version": "for CUDA 13.0", "reason": null, "disables": null},
  "gpus": {"found": true, "version": "2: NVIDIA H200 (139.8 GiB), NVIDIA T4 (14.56 GiB)", "reason": null, "disables": null, "list": [
    {"name": "NVIDIA H200", "memory_bytes": 150119178240, "compute_capability": "9.0"},
    {"name": "NVIDIA T4", "memory_bytes": 15636037632, "compute_capability": null}]}
})json";
inline constexpr const char* kNoDriver = R"json({
  "libtorch": {"found": true, "version": "2.11.0", "reason": null, "disables": null},
  "cuda": {"found": false, "version": null, "reason": "libcuda.so.1 is not on this machine: no NVIDIA driver", "disables": "runs on GPUs"},
  "gpus": {"found": false, "version": null, "reason": "no NVIDIA driver", "disables": "runs on GPUs", "list": []}
})json";

class FakeDoctor {
public:
    [[nodiscard]] QString command() const { return folder_.filePath("engine"); }
    [[nodiscard]] QString asked() const // the arguments of each time, a line each
    {
        QFile file(folder_.filePath("asked"));
        return file.open(QFile::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }
    void answer(const char* json) const
    {
        write("answer.json", json, QFile::ReadOwner);
        run("cat '" + folder_.filePath("answer.json").toUtf8() + "'");
    }
    // A part of a script for /bin/sh.
    void run(const QByteArray& script) const
    {
        const QByteArray log = folder_.filePath("asked").toUtf8();
        write("engine", "#!/bin/sh\necho \"$@\" >> '" + log + "'\n" + script + "\n", QFile::ReadOwner | QFile::ExeOwner);
    }

private:
    void write(const char* name, const QByteArray& content, QFile::Permissions permissions) const
    {
        QFile file(folder_.filePath(name));
        file.remove();
        if (!file.open(QFile::WriteOnly) || file.write(content) != content.size()) throw std::runtime_error(name);
        file.close();
        file.setPermissions(permissions);
    }

    QTemporaryDir folder_;
};

} // namespace stagecraft::ui
