// SPDX-License-Identifier: Apache-2.0
//
// The sums and gathers of an emulation's replicas: what a virtual rank gives to them while an action runs, at which virtual moment, and
// when what comes of it is there. Made on the CPU or on GPUs; how long one takes is the plan's machine's to say (emulated_replicas.h).
// Private to the runtime.
//
//   std::optional<EmulatedSums> sums;                        // where there are replicas
//   if (run.sums != nullptr) sums.emplace(ranks, memory);
//   sums->beginStep(step);
//   sums->beginAction({begin, clock.now(), device.mark()});  // what its stage makes is given meanwhile
//   ...
//   sums->endAction();
//   sums->giveFromDevice();                                  // where a GPU made it, once the action is over there
//   sums->settle(rank, work, end);
#pragma once

#include "engine/runtime/device_collectives_torch.h"
#include "engine/runtime/emulated_replicas.h"
#include "engine/runtime/virtual_memory.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// The ranks of all replicas, those of replica 0 first.
struct VirtualRanks {
    const std::vector<Execution>& replicas;

    [[nodiscard]] int replicaOf(Rank rank) const { return rank.value / replicas.front().schedule.ranks; }
    [[nodiscard]] Rank inReplica(Rank rank) const { return Rank{rank.value % replicas.front().schedule.ranks}; }
    [[nodiscard]] const Execution& runOf(Rank rank) const { return replicas[static_cast<std::size_t>(replicaOf(rank))]; }
    [[nodiscard]] RankDevice& deviceOf(Rank rank) const { return runOf(rank).pipeline.device(inReplica(rank)); }
};

class EmulatedSums {
public:
    // Asks the stages for their gradients as they come to be final, until it ends.
    EmulatedSums(VirtualRanks ranks, VirtualMemory& memory);
    ~EmulatedSums();
    EmulatedSums(const EmulatedSums&) = delete;
    EmulatedSums& operator=(const EmulatedSums&) = delete;

    void beginStep(traces::Step step) { step_ = step; }

    // When the replicas have the sum of their gradients of a stage; nothing while they have not.
    [[nodiscard]] std::optional<TimeNs> summedAt(Rank rank, const Place& place) const;
    // When the weights are there that the work uses or gives up, -1 where no UNSHARD gathers them; nothing while another replica has not
    // come to that.
    [[nodiscard]] std::optional<TimeNs> gatheredAt(Rank rank, const traces::Work& work) const;
    // A rank's last collective ends, and from when on it has another one that is made elsewhere.
    [[nodiscard]] TimeNs freeAt(Rank rank) const { return virtual_.freeAt(rank); }
    void occupy(Rank rank, TimeNs until) { virtual_.occupy(rank, until); }

    // An action that gives what it makes.
    struct ActionBegin {
        TimeNs at = 0;   // virtual
        TimeNs real = 0; // the run's clock
        DeviceMark mark; // none on the CPU
    };
    void beginAction(const ActionBegin& begin);
    void endAction() { asking_ = false; } // all of it is asked for
    void giveFromDevice();
    void settle(Rank rank, const traces::Work& work, TimeNs end);

    // What UNSHARD and REDUCE_GRAD begin.
    void begin(Rank rank, const traces::Work& work, TimeNs at);

    // Gives back what was kept for sums that are over by then.
    void endUntil(TimeNs time);

private:
    void giveGradients(const Execution& replica, const Place& place, int layer);
    void give(const Turn& turn, TimeNs at, std::vector<at::Tensor> values);
    void make();
    void keepOwnGradients(const Collective& sum, TimeNs at);

    const VirtualRanks ranks_;
    const Execution& run_; // the first: what they share
    VirtualMemory& memory_;
    CollectiveWork onCpu_;
    std::unique_ptr<DeviceCollectives> onDevices_; // where some rank is on a GPU
    EmulatedReplicas virtual_;
    traces::Step step_{};
    ActionBegin action_; // the one that runs
    bool asking_ = false;
    std::vector<std::pair<Turn, DeviceMark>> givenWithin_;
};

} // namespace stagecraft::runtime
