// SPDX-License-Identifier: GPL-3.0-or-later
//
// What GPUs the engine finds where it runs. The window has no LibTorch, and the engine may be on another host: so the engine's own
// program is asked, by `doctor --json`. Why there is none to use is an answer too, and so is why nobody answered.
//
//   const EngineMachine machine = askEngine(doctorCommand("ssh gpu-host stagecraft-cli", folder), 30s, stop);
//   if (!machine.noGpus.isEmpty()) say(machine.noGpus);
#pragma once

#include "traces/base/expected.h"
#include "traces/base/units.h"
#include "ui/bridge/worker_command.h"

#include <QByteArray>
#include <QString>

#include <chrono>
#include <stop_token>
#include <vector>

namespace stagecraft::ui {

struct EngineGpu {
    QString name;
    traces::Bytes memory = 0;
    QString capability; // of CUDA, "9.0"; empty where the driver does not tell
    bool operator==(const EngineGpu&) const = default;
};

struct EngineMachine {
    std::vector<EngineGpu> gpus; // in the order of their numbers; also where a run cannot use them
    QString noGpus;              // why a run cannot compute on a GPU there, or why nobody knows; empty: it can
    bool told = false;           // by the engine
    bool operator==(const EngineMachine&) const = default;
};

// Of what `doctor --json` printed.
traces::Expected<EngineMachine> readEngineMachine(const QByteArray& json);

// A line for each GPU: "0: NVIDIA H200, 139.8 GiB, compute capability 9.0"
QString gpuLines(const std::vector<EngineGpu>& gpus);

// Starts the command and waits for its answer, for `patience` at most, or until it is asked to stop. Not for the GUI thread.
EngineMachine askEngine(const WorkerCommand& command, std::chrono::milliseconds patience, const std::stop_token& stop);

} // namespace stagecraft::ui
