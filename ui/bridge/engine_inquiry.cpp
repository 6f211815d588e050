// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/engine_inquiry.h"

#include <utility>

namespace stagecraft::ui {

EngineInquiry::EngineInquiry(QObject* parent, std::chrono::milliseconds patience) : QObject(parent), patience_(patience)
{
    forget();
}

void EngineInquiry::ask(const WorkerCommand& command)
{
    if (command == asked_) return;
    asked_ = command;
    setMachine({.gpus = {}, .noGpus = tr("\"%1\" is being asked what GPUs there are.").arg(command.text()), .told = false});
    job_.start([command, patience = patience_](JobControl& control) { return askEngine(command, patience, control.stopToken()); },
               [this](EngineMachine machine) {
                   if (!machine.noGpus.isEmpty()) asked_ = {};
                   setMachine(std::move(machine));
               });
}

void EngineInquiry::forget()
{
    job_.cancel();
    asked_ = {};
    setMachine({.gpus = {}, .noGpus = tr("The engine is asked what GPUs there are when its command is complete (Enter)."), .told = false});
}

void EngineInquiry::setMachine(EngineMachine machine)
{
    if (machine == machine_) return;
    machine_ = std::move(machine);
    emit told();
}

} // namespace stagecraft::ui
