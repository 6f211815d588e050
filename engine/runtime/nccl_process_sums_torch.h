// SPDX-License-Identifier: Apache-2.0
//
// The sums of replicas by NCCL's all-reduce where each rank is a process with a GPU, and what goes from rank to rank goes by NCCL as well.
// The rank's thread issues both, for NCCL asks for one order on all GPUs, also of what goes through several communicators:
//
//   first the exchanges of the step, in their order (transfer_order.h), then the sums, from the last stage to the first, of each stage its
//   buckets in theirs
//
// That is one line for all ranks of all replicas, and every rank issues its part of it in that order, and a sum once its last exchange is over on its GPU; so the first of it that is not over
// can be carried out by all that it needs, even where a GPU has room for one kernel of NCCL alone. What is given before its turn waits: a
// rank with nothing more to hand over sums beside its backward, the others once they have sent their last gradient.
//
// wait() is for the device: what the rank asks for next needs no other rank. A sum lasts from when this rank has made its part until it is
// over on its stream. Private to the runtime.
//
//   NcclProcessSums sums(run, rank, cliques, handoffThrough);
#pragma once

#include "engine/runtime/nccl_cliques_torch.h"
#include "engine/runtime/sum_maker_torch.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

class NcclProcessSums final : public SumMaker {
public:
    struct Exchanges { // of the step
        std::function<bool()> over;
        std::function<void()> wait; // once all are issued
    };

    NcclProcessSums(const Execution& run, Rank rank, NcclCliques& cliques, Exchanges exchanges); // `rank`: of all replicas
    ~NcclProcessSums() override; // waits: what was given may be in use

    void give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made) override;
    [[nodiscard]] bool done(const std::vector<Turn>& turns) override;
    std::optional<TimeNs> wait(const std::vector<Turn>& turns) override;
    [[nodiscard]] DeviceMark doneAt(const Turn& turn) const override { return sums_.at(turn.collective).end; }
    void settle(Rank) override {}
    [[nodiscard]] std::vector<MemorySample> takeNoted(Rank) override { return {}; }

private:
    struct Sum {
        std::size_t member = 0;
        traces::Step step{};
        std::vector<at::Tensor> values; // given, and not issued yet
        DeviceMark made;
        DeviceMark begin;
        DeviceMark end; // once it is issued
        bool given = false;
    };
    void issueWhatMay();
    void issue(const Collective& collective, Sum& sum);
    [[nodiscard]] DeviceWatch::Wait awaitingOthers() const;
    void awaitMade(const Collective& collective, const Sum& sum) const;
    void record(const Collective& collective, const Sum& sum);

    const Execution& run_;
    const Rank rank_;
    const RankDevice& device_; // its stream for sums
    NcclCliques& cliques_;
    const Exchanges exchanges_;
    std::vector<const Collective*> order_; // of the rank's
    std::size_t next_ = 0;                 // of those, in this step
    std::map<const Collective*, Sum> sums_;
    std::deque<const Collective*> issued_; // not recorded
};

} // namespace stagecraft::runtime
