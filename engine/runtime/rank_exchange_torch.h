// SPDX-License-Identifier: Apache-2.0
//
// What a rank does together with others of its replica between the actions of a list: the gradients of a stage that there is twice, and the
// norm of all gradients. The device has done before what it was asked for, and each lies on the lane of collectives. Of the rank's thread.
// Private to the runtime.
//
//   RankExchange exchange({run, links, own, device, queue, failures, memory, replica, ring});
//   const std::optional<TimeNs> end = exchange.sumGradients(action, step);   // none: the run ends
#pragma once

#include "engine/runtime/memory_track.h"
#include "engine/runtime/rank_failures_torch.h"
#include "engine/runtime/rank_worker_torch.h"
#include "engine/runtime/replica_rank_torch.h"

#include <optional>

namespace stagecraft::runtime {

class RankExchange {
public:
    struct Parts {
        const Execution& run;
        const RankLinks& links;
        traces::Rank own; // of the replica
        RankDevice& device;
        DeviceQueue& queue;
        const RankFailures& failures;
        MemoryTrack& memory;
        ReplicaRank* replica; // none where there is one
        // Where a second thread writes to this one, it has nothing to write meanwhile.
        EventRing<RunEvent>& collectives;
    };
    explicit RankExchange(const Parts& parts) : parts_(parts), rank_(parts.run.among(parts.own)) {}

    // With the rank that holds the other copy: each gives its own and adds the other's. Where that is this rank, both at once. When it ended.
    std::optional<TimeNs> sumGradients(const traces::Action& action, traces::Step step);
    // With all ranks: the squares of the norms go from the first to the last, each adds those of its layers, and what they come to goes
    // back. Adding is exact, for every layer is somebody's and 0 for the others. When it ended.
    std::optional<TimeNs> clipGradients(const traces::Work& work, traces::Step step);

private:
    bool waitForSums(const traces::Work& before, traces::Step step); // of the replicas
    bool settleBefore(const traces::Work& work, traces::Step step);
    std::optional<at::Tensor> takeNorms(const BoxAddress& box);
    void takeMemory(TimeNs time);

    Parts parts_;
    traces::Rank rank_; // of all
};

} // namespace stagecraft::runtime
