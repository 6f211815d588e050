// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_collectives_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/nccl_device_torch.h"
#include "engine/runtime/nccl_link.h"
#include "engine/runtime/run_messages.h"

#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace stagecraft::runtime {

namespace {

NcclAllReduce inPlace(const at::Tensor& values)
{
    if (values.scalar_type() != at::kFloat) throw std::logic_error("gradients are summed in float32");
    return {.from = values.data_ptr(), .to = values.data_ptr(), .count = static_cast<std::size_t>(values.numel())};
}

class NcclCollectives final : public DeviceCollectives {
public:
    NcclCollectives(const std::vector<Execution>& replicas, const NcclSource& source) : DeviceCollectives(replicas), run_(replicas.front())
    {
        for (const auto& collective : run_.sums->collectives()) {
            std::vector<int> ranks = ranksOf(*collective);
            const auto known = std::ranges::find(cliques_, ranks, &Clique::ranks);
            cliqueOf_[collective.get()] = static_cast<std::size_t>(known - cliques_.begin());
            if (known == cliques_.end()) cliques_.push_back({std::move(ranks), {}});
        }
        const c10::DeviceGuard before(deviceOf(*run_.sums->collectives().front(), 0).device()); // the caller's device is its own again
        for (Clique& each : cliques_) connect(each, replicas, source);
    }

    [[nodiscard]] int rounds() const override { return 1; }

    // NCCL connects the members of a clique at their first sum, and waits for all. Every rank goes through its cliques in their order.
    void prepare(Rank rank) override
    {
        try {
            for (Clique& each : cliques_)
                if (std::ranges::count(each.ranks, rank.value) > 0) sumOfNothing(each, rank);
        } catch (...) { // the rank finds the run at its end
            if (!run_.control.ending()) run_.control.fail(describeFailure("connecting the GPUs of the replicas", std::current_exception()));
        }
    }

    Expected<void> finish() override
    {
        Expected<void> all;
        for (Clique& each : cliques_)
            if (Expected<void> one = each.link->finish(); all.ok()) all = std::move(one);
        return all;
    }

private:
    struct Clique {
        std::vector<int> ranks; // of all replicas, in rising order: the first is NCCL's rank 0
        std::unique_ptr<NcclLink> link;
        [[nodiscard]] NcclCommunicator& of(Rank rank) const
        {
            return link->communicator(static_cast<int>(std::ranges::find(ranks, rank.value) - ranks.begin()));
        }
    };

    static std::vector<int> ranksOf(const Collective& collective)
    {
        std::vector<int> ranks;
        for (const Collective::Member& member : collective.members()) ranks.push_back(member.rank.value);
        std::ranges::sort(ranks);
        return ranks;
    }

    void connect(Clique& clique, const std::vector<Execution>& replicas, const NcclSource& source)
    {
        NcclLink::Seats seats{.size = static_cast<int>(clique.ranks.size()), .members = {}, .useDevice = {}};
        for (const int rank : clique.ranks) {
            const Execution& replica = replicas[static_cast<std::size_t>(rank / run_.schedule.ranks)];
            const c10::Device device = replica.pipeline.device(Rank{rank % run_.schedule.ranks}).device();
            seats.members.push_back({.rank = static_cast<int>(seats.members.size()), .device = device.index(), .known = rank});
            seats.useDevice = setsDevice(device.type());
        }
        clique.link = std::make_unique<NcclLink>(source, seats,
                                                 NcclLink::Watch{.control = run_.control,
                                                                 .clock = run_.clock,
                                                                 .standsStill = [this] { return run_.standsStill(); },
                                                                 .what = "the sum of the replicas' gradients by NCCL",
                                                                 .without = "--transport auto"});
        const Expected<NcclId> id = newNcclId(source.api);
        const Expected<void> met = id.ok() ? clique.link->connect(id.value()) : id.error();
        if (!met.ok()) throw std::runtime_error(met.error().message);
    }

    void sumOfNothing(Clique& clique, Rank rank)
    {
        RankDevice& device = deviceOf(rank);
        const RankDevice::Scope here = device.enter();
        const AllocationScope nobody({});
        const at::Tensor nothing = at::zeros({1}, at::TensorOptions(device.device()));
        const NcclAllReduce sum = inPlace(nothing);
        const Expected<void> met = clique.of(rank).allReduce("the first sum", {sum}, handleOf(currentStreamOf(device.device())));
        if (!met.ok()) clique.link->fail(met.error());
        device.drain();
    }

    // NCCL's kernel would wait on the GPU for who has not given: it begins when all have.
    void make(const Collective& collective, std::size_t member, int, Cycle& cycle) override
    {
        Member& own = cycle.members[member];
        RankDevice& device = deviceOf(collective, member);
        for (const Member& each : cycle.members) device.await(each.ready);
        own.begin = device.mark();
        const Clique& clique = cliques_[cliqueOf_.at(&collective)];
        NcclCommunicator& communicator = clique.of(collective.members()[member].rank);
        const std::string what = toText(traces::Action{collective.action(member), {}});
        std::vector<NcclAllReduce> sums;
        for (const at::Tensor& values : own.given)
            if (values.numel() > 0) sums.push_back(inPlace(values));
        for (std::span<const NcclAllReduce> left(sums); !left.empty();) {
            const std::size_t count = std::min(left.size(), NcclCommunicator::kMostParts);
            const Expected<void> asked = communicator.allReduce(what, left.first(count), handleOf(currentStreamOf(device.device())));
            if (!asked.ok()) { // nothing here is worth anything any more
                clique.link->fail(asked.error());
                break;
            }
            left = left.subspan(count);
        }
        own.given.clear();
        own.end = device.mark();
        communicator.track(what, [end = own.end] {
            try {
                return end->reached();
            } catch (...) { // the device has failed: who waits for it finds that as well
                return true;
            }
        });
    }

    const Execution& run_;
    std::vector<Clique> cliques_;
    std::map<const Collective*, std::size_t> cliqueOf_;
};

} // namespace

std::unique_ptr<DeviceCollectives> ncclCollectives(const std::vector<Execution>& replicas, const NcclSource& source)
{
    return std::make_unique<NcclCollectives>(replicas, source);
}

} // namespace stagecraft::runtime
