// SPDX-License-Identifier: Apache-2.0
//
// Who makes the collectives of replicas for a rank: what it gives, and when what comes of it is there. In one process that is a thread
// beside each rank (SharedSums), between processes messages (process_sums_torch.h) or NCCL (nccl_process_sums_torch.h). Private to the
// runtime.
//
//   maker.give(turn, step, stage.wholeGradients(turn.parameters), device.mark());
//   if (!maker.done(turns)) control.rest(rank);
//   std::optional<TimeNs> since = maker.wait(turns);      // none when the run ends
//   device.await(maker.doneAt(turns.back()));
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/device_collectives_torch.h"
#include "engine/runtime/replica_threads.h"

#include <optional>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// Calls come from the thread of the rank that has the turn.
class SumMaker {
public:
    SumMaker() = default;
    virtual ~SumMaker() = default;
    SumMaker(const SumMaker&) = delete;
    SumMaker& operator=(const SumMaker&) = delete;

    // What is given is made at `made`, on the CPU by now.
    virtual void give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made) = 0;
    [[nodiscard]] virtual bool done(const std::vector<Turn>& turns) = 0; // wait() would not wait
    // Until all members are through with what they have given to these, or on GPUs have asked for it; when the last was.
    virtual std::optional<TimeNs> wait(const std::vector<Turn>& turns) = 0;
    // Of a GPU, when the rank has what comes of it; none where wait() has waited for that.
    [[nodiscard]] virtual DeviceMark doneAt(const Turn& turn) const = 0;
    // Until it is ready to be given to, and all that was waited for is recorded and done.
    virtual void settle(Rank rank) = 0;
    // What a rank holds when it has changed beside its own thread.
    [[nodiscard]] virtual std::vector<MemorySample> takeNoted(Rank rank) = 0;
};

// All members are in this process.
class SharedSums final : public SumMaker {
public:
    // `onDevices`: where some rank is on a GPU. Neither is owned.
    SharedSums(ReplicaThreads& threads, DeviceCollectives* onDevices) : threads_(threads), onDevices_(onDevices) {}

    void give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made) override
    {
        if (onDevices_ != nullptr) {
            onDevices_->take(turn, step, std::move(values), std::move(made));
            return threads_.give(turn, step, {});
        }
        std::vector<Collective::Values> memory = memoryOf(values);
        values.clear(); // who sums last may let go of them before this is over
        threads_.give(turn, step, std::move(memory));
    }
    [[nodiscard]] bool done(const std::vector<Turn>& turns) override { return threads_.done(turns); }
    std::optional<TimeNs> wait(const std::vector<Turn>& turns) override { return threads_.wait(turns); }
    [[nodiscard]] DeviceMark doneAt(const Turn& turn) const override { return onDevices_ != nullptr ? onDevices_->doneAt(turn) : nullptr; }
    void settle(Rank rank) override { threads_.settle(rank); }
    [[nodiscard]] std::vector<MemorySample> takeNoted(Rank rank) override { return threads_.takeNoted(rank); }

private:
    ReplicaThreads& threads_;
    DeviceCollectives* onDevices_;
};

} // namespace stagecraft::runtime
