// SPDX-License-Identifier: GPL-3.0-or-later
//
// Asks the engine command beside the GUI thread what GPUs its machine has, and keeps the answer. Only the newest question counts: the
// answer to an earlier one is dropped, however late it comes. GUI thread.
//
//   EngineInquiry inquiry;
//   connect(&inquiry, &EngineInquiry::told, lab, [&] { lab->setEngineMachine(inquiry.machine()); });
//   inquiry.ask(doctorCommand(prefix, programFolder));
#pragma once

#include "ui/bridge/background_job.h"
#include "ui/bridge/engine_machine.h"

#include <QObject>

#include <chrono>

namespace stagecraft::ui {

class EngineInquiry : public QObject {
    Q_OBJECT
public:
    // A host far away answers, a driver that sleeps with eight GPUs wakes up.
    static constexpr std::chrono::seconds kPatience{30};

    explicit EngineInquiry(QObject* parent = nullptr, std::chrono::milliseconds patience = kPatience);

    void ask(const WorkerCommand& command); // nothing happens where this one has told of GPUs to use, or is being asked
    void forget();                          // the command is being written: it is another, and not whole yet
    [[nodiscard]] bool asking() const { return job_.busy(); }
    // Until it is told why it is not known.
    [[nodiscard]] const EngineMachine& machine() const { return machine_; }

signals:
    void told(); // machine() is another

private:
    void setMachine(EngineMachine machine);

    const std::chrono::milliseconds patience_;
    EngineMachine machine_;
    WorkerCommand asked_; // empty: none, or one that is worth to be asked again
    BackgroundJob<EngineMachine> job_;
};

} // namespace stagecraft::ui
