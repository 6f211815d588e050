// SPDX-License-Identifier: Apache-2.0
//
// A rank's hand-off by NCCL with all that it stands on: the clique, its watchdog, the stream; and with replicas the sums of their gradients. A build without NCCL's header has one that
// throws, and no run there comes to it. Private to the runtime.
//
//   const std::unique_ptr<NcclRun> nccl = connectNccl(run, all, place, wish);  // waits for the other ranks
//   nccl->meetPeers();                                                         // on the rank's thread, which alone uses what follows
//   runRank(run, {nccl->handoff(), ...}, rank);
//   nccl->finish();                                                            // where the run has not ended before
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/process_handoff_torch.h"
#include "engine/runtime/runnable.h"
#include "engine/runtime/sum_maker_torch.h"

#include <memory>

namespace stagecraft::runtime {

class NcclRun {
public:
    virtual ~NcclRun() = default;
    virtual void meetPeers() = 0; // throws what went wrong
    [[nodiscard]] virtual Handoff<Boundary>& handoff() = 0;
    [[nodiscard]] virtual SumMaker* sums() = 0; // of the replicas; none where there is one
    virtual Expected<void> finish() = 0;
};

// Throws what went wrong.
std::unique_ptr<NcclRun> connectNccl(const Execution& run, ProcessRun& all, const HandoffPlace& place, const NcclWish& wish);

} // namespace stagecraft::runtime
