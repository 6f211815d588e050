// SPDX-License-Identifier: Apache-2.0
//
// The communicators of this process in one NCCL clique: one rank where each has a process, several where each has a thread. They begin
// together and end together: after a fault of one, all are ended (ncclCommAbort), since the others would wait for ever, and a new
// clique can be connected by a new id.
//
//   NcclClique clique({.api = nccl.api, .clock = monotonicClock()}, {.size = 2, .members = {{0, 0}, {1, 1}}, .useDevice = setDevice});
//   if (auto met = clique.connect(newNcclId(nccl.api).value()); !met.ok()) return met.error();
//   {
//       const NcclWatchdog watchdog(clique);
//       ...                                            // clique.of(rank).exchange(...), each rank on its thread
//   }
//   clique.finish();
//
// connect() and finish() belong to one thread, while no rank's issues anything; giveUp() and fault() to any.
#pragma once

#include "engine/transport/nccl/communicator.h"

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stagecraft::runtime {

struct NcclMember {
    int rank = 0;
    int device = 0;
    std::optional<int> known = {}; // as what messages and faults name it; none: by its rank
};

struct NcclCliqueSpec {
    int size = 1; // ranks, of all processes
    std::vector<NcclMember> members; // of this process; each on a GPU of its own: checkOneRankPerGpu()
    std::function<Expected<void>(int device)> useDevice; // makes it the calling thread's
    std::function<void(const NcclFault&)> faulty = {};   // once after each connect(): look() calls it before it ends all
};

class NcclClique {
public:
    NcclClique(const NcclGround& ground, NcclCliqueSpec spec);
    ~NcclClique(); // what is not finished is ended
    NcclClique(const NcclClique&) = delete;
    NcclClique& operator=(const NcclClique&) = delete;

    // Waits for all ranks of all processes, which have the id of one of them. Again after a fault or finish(), with a new id.
    Expected<void> connect(const NcclId& id);
    // Waits for what was issued everywhere; then there are no communicators.
    Expected<void> finish();

    [[nodiscard]] NcclCommunicator& of(int rank);
    [[nodiscard]] int generation() const { return context_.fault.generation(); } // how often it was connected

    // Something outside of NCCL is wrong, such as a rank that died: all end at the next look.
    void giveUp(std::string reason) { context_.fault.keep(generation(), -1, std::move(reason)); }
    [[nodiscard]] std::optional<NcclFault> fault() const { return context_.fault.first(); }

    // The watchdog's: looks for errors and for what does not move, and ends all after the first fault. False then. One thread.
    bool look();

private:
    Expected<void> beginAll(const NcclId& id, int generation);
    void endAll();

    NcclContext context_;
    NcclCliqueSpec spec_;
    int told_ = 0; // of which generation the fault was; the watchdog's
    std::list<NcclCommunicator> communicators_; // as the members
};

// Looks at a clique while it lives, on a thread of its own. `before`, if any, is called on that before each look.
class NcclWatchdog {
public:
    explicit NcclWatchdog(NcclClique& clique, std::chrono::milliseconds period = std::chrono::milliseconds(10), std::function<void()> before = {});

private:
    std::jthread thread_;
};

} // namespace stagecraft::runtime
