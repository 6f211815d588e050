// SPDX-License-Identifier: Apache-2.0
//
// This process' rank in the clique of a run, with the watchdog that ends it: after a fault of NCCL the run fails with its reason, and where
// the run ends for another one, nobody waits in NCCL for a rank that does not come any more. Lives from before the ranks connect until no
// thread uses the communicator.
//
//   NcclLink link(source, {.rank = 1, .size = 2, .device = 1, .useDevice = setDevice}, {control, clock, standsStill});
//   if (auto met = link.connect(id); !met.ok()) return met;
//   ...                                     // link.communicator(), the rank's thread alone
//   link.finish();
#pragma once

#include "engine/runtime/run_control.h"
#include "engine/transport/nccl/clique.h"
#include "engine/transport/nccl/nccl_source.h"
#include "engine/transport/nccl/standing_clock.h"

#include <functional>

namespace stagecraft::runtime {

class NcclLink {
public:
    struct Member {
        int rank = 0;
        int size = 1;
        int device = 0;
        std::function<Expected<void>(int device)> useDevice; // makes it the calling thread's
    };
    struct Watch {
        RunControl& control;
        const Clock& clock;
        std::function<bool()> standsStill; // on purpose: paused, or held
    };
    NcclLink(const NcclSource& source, const Member& member, const Watch& watch);
    NcclLink(const NcclLink&) = delete;
    NcclLink& operator=(const NcclLink&) = delete;

    // Waits for the other ranks; not where the run ends.
    Expected<void> connect(const NcclId& id) { return clique_.connect(id); }
    [[nodiscard]] NcclCommunicator& communicator() { return clique_.of(rank_); }
    Expected<void> finish() { return clique_.finish(); } // waits for what was issued everywhere

private:
    void beforeLook(); // the watchdog's
    void failWith(const NcclFault& fault);

    int rank_;
    int device_;
    std::function<Expected<void>(int)> useDevice_;
    Watch watch_;
    StandingClock clock_;
    NcclClique clique_;
    NcclWatchdog watchdog_; // last: it uses the others
};

} // namespace stagecraft::runtime
