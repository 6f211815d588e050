// SPDX-License-Identifier: Apache-2.0
//
// The live engine, as far as this program has it. Each program of the command line links one file that answers:
// live_engine.cpp (stagecraft-live), start_live_engine.cpp (stagecraft-cli), no_live_engine.cpp (a build without LibTorch).
#pragma once

#include "app/cli/command.h"
#include "engine/session/session.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft::cli {

// A session in this process; an error with the remedy in a build without LibTorch.
Expected<std::unique_ptr<engine::Session>> makeSession();

// Could a run of the plan begin, whatever lies in the files that it names and however much memory there is? Where this says no, it is what
// the plan asks for that does not go together. Without LibTorch nothing is known against it.
bool couldBegin(const engine::Plan& plan);

// Hands this process over to the program that links LibTorch, with the arguments as they were; returns only with the error
// that kept it from that. Does nothing where LibTorch is linked already.
Expected<void> enterLiveEngine();

// The processes of a run in mode processes, of which this is one.
class Team {
public:
    virtual ~Team() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int speaker() const = 0; // for all: rank 0, or the first that is left of them
    [[nodiscard]] bool speaks() const { return rank() == speaker(); }
    // All call each of these, in the same order, and about the same.
    virtual Expected<std::string> fromFirst(std::string_view about, const Expected<std::string>& own) = 0; // what rank 0 has, or its error
    virtual Expected<void> agree(std::string_view about, const Expected<void>& own) = 0;                   // the first error of all
    virtual void leave() = 0; // at the end; nothing where one is lost

    virtual std::unique_ptr<engine::Session> makeSession() = 0;
    [[nodiscard]] virtual bool couldBegin(const engine::Plan& plan) const = 0; // as the function above, with these processes
};

// Where processes meet that torchrun has started, or whatever sets its variables.
struct LaunchMeeting {
    int rank = 0;
    std::string host;
    int port = 0;
    bool served = false; // by torchrun itself; else by rank 0
    bool byHand = false; // without torchrun, which shows in one place what all of them say
    std::string round;   // which of torchrun's runs and attempts
};
struct Launch {
    int size = 1;     // processes
    int together = 1; // of them on this host
    std::optional<LaunchMeeting> meeting = {}; // without one, mpirun has started them

    [[nodiscard]] const char* launcher() const { return meeting ? "torchrun" : "mpirun"; }
};
// Waits for all of them; an error with the remedy where one does not come, and under mpirun in a build without MPI.
Expected<std::unique_ptr<Team>> joinTeam(const Launch& launch);

// The LibTorch that this build is made for; empty without one.
struct LibTorchBuild {
    std::string version;           // "2.11.0"
    std::filesystem::path library; // libtorch_cpu.so
    std::string abilities;         // "AVX512, MKL ..."; empty where it is not loaded
};
LibTorchBuild libTorchBuild();

} // namespace stagecraft::cli
