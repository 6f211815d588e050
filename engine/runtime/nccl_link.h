// SPDX-License-Identifier: Apache-2.0
//
// The ranks of this process in a clique of a run, with the watchdog that ends it: after a fault of NCCL the run fails with its reason, and
// where the run ends for another one, nobody waits in NCCL for a rank that does not come any more. Lives from before the ranks connect
// until no thread uses a communicator.
//
//   NcclLink link(source, {.size = 2, .members = {{.rank = 1, .device = 1}}, .useDevice = setDevice}, {control, clock, standsStill});
//   if (auto met = link.connect(id); !met.ok()) return met;
//   ...                                     // link.communicator(1), the rank's thread alone
//   link.finish();
#pragma once

#include "engine/runtime/run_control.h"
#include "engine/transport/nccl/clique.h"
#include "engine/transport/nccl/nccl_source.h"
#include "engine/transport/nccl/standing_clock.h"

#include <functional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

class NcclLink {
public:
    struct Seats {
        int size = 1;                    // ranks, of all processes
        std::vector<NcclMember> members; // of this process; known by their number in the run
        std::function<Expected<void>(int device)> useDevice; // makes it the calling thread's
    };
    struct Watch {
        RunControl& control;
        const Clock& clock;
        std::function<bool()> standsStill; // on purpose: paused, or held
        std::string what = "the hand-over from GPU to GPU"; // that failed, where it does
        std::string without = "--transport host";           // how a run does without it
    };
    NcclLink(const NcclSource& source, const Seats& seats, const Watch& watch);
    NcclLink(const NcclLink&) = delete;
    NcclLink& operator=(const NcclLink&) = delete;

    // Waits for the other ranks; not where the run ends.
    Expected<void> connect(const NcclId& id) { return clique_.connect(id); }
    [[nodiscard]] NcclCommunicator& communicator(int rank) { return clique_.of(rank); }
    Expected<void> finish() { return clique_.finish(); } // waits for what was issued everywhere
    // A call has failed, on any thread: the run ends with the clique's first fault, which this is or which it came of.
    void fail(const Error& error);

private:
    void beforeLook(); // the watchdog's
    void failWith(const NcclFault& fault);

    int device_; // of the first
    std::function<Expected<void>(int)> useDevice_;
    Watch watch_;
    StandingClock clock_;
    NcclClique clique_;
    NcclWatchdog watchdog_; // last: it uses the others
};

} // namespace stagecraft::runtime
