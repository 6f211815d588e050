// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_cliques_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/nccl_device_torch.h"
#include "engine/runtime/run_messages.h"

#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

namespace stagecraft::runtime {

namespace {

NcclAllReduce inPlace(const at::Tensor& values)
{
    if (values.scalar_type() != at::kFloat) throw std::logic_error("gradients are summed in float32");
    return {.from = values.data_ptr(), .to = values.data_ptr(), .count = static_cast<std::size_t>(values.numel())};
}

} // namespace

NcclCommunicator& NcclCliques::Clique::of(Rank rank) const
{
    return link->communicator(static_cast<int>(std::ranges::find(ranks, rank.value) - ranks.begin()));
}

NcclCliques::NcclCliques(const Execution& run, const Way& way, const std::vector<Seat>& seats) : run_(run)
{
    for (const Seat& each : seats) seats_[each.rank] = each;
    const c10::DeviceGuard before(seats.front().sums->device()); // the caller's device is its own again
    const std::vector<std::vector<int>> all = sumCliques(run.schedule, run.plan.machine.replicas);
    for (std::size_t c = 0; c < all.size(); ++c) {
        const bool here = std::ranges::any_of(all[c], [&](int rank) { return seats_.contains(Rank{rank}); });
        if (here) connect(cliques_.emplace_back(Clique{all[c], {}}), way, way.ids[c]);
    }
}

// NCCL ends its kernels, and waits for them.
NcclCliques::~NcclCliques()
{
    for (Clique& each : cliques_) {
        const auto here = std::ranges::find_if(each.ranks, [&](int rank) { return seats_.contains(Rank{rank}); });
        const DeviceWatch::Wait wait(run_.watch, Rank{*here}, DeviceWatch::OfOthers{kEndingSums});
        each.link.reset();
    }
}

void NcclCliques::connect(Clique& clique, const Way& way, const NcclId& id)
{
    NcclLink::Seats seats{.size = static_cast<int>(clique.ranks.size()), .members = {}, .useDevice = {}};
    for (std::size_t r = 0; r < clique.ranks.size(); ++r) {
        const auto seat = seats_.find(Rank{clique.ranks[r]});
        if (seat == seats_.end()) continue;
        const c10::Device device = seat->second.sums->device();
        seats.members.push_back({.rank = static_cast<int>(r), .device = device.index(), .known = clique.ranks[r]});
        seats.useDevice = setsDevice(device.type());
    }
    clique.link = std::make_unique<NcclLink>(way.source, seats,
                                             NcclLink::Watch{.control = run_.control,
                                                             .clock = run_.clock,
                                                             .standsStill = [this] { return run_.standsStill(); },
                                                             .what = "the sum of the replicas' gradients by NCCL",
                                                             .without = way.without});
    const Expected<void> met = clique.link->connect(id);
    if (!met.ok()) throw std::runtime_error(met.error().message);
}

void NcclCliques::meet(Rank rank)
{
    try {
        for (const Clique& each : cliques_)
            if (std::ranges::count(each.ranks, rank.value) > 0) sumOfNothing(each, seats_.at(rank));
    } catch (...) { // the rank finds the run at its end
        if (!run_.control.ending()) run_.control.fail(describeFailure("connecting the GPUs of the replicas", std::current_exception()));
    }
}

void NcclCliques::sumOfNothing(const Clique& clique, const Seat& seat)
{
    seat.sums->useHere();
    const RankDevice::Scope here = seat.sums->enter();
    const AllocationScope nobody({});
    const at::Tensor nothing = at::zeros({1}, at::TensorOptions(seat.sums->device()));
    const NcclAllReduce sum = inPlace(nothing);
    const Expected<void> met = clique.of(seat.rank).allReduce("the first sum", {sum}, handleOf(currentStreamOf(seat.sums->device())));
    if (!met.ok()) clique.link->fail(met.error());
    clique.of(seat.rank).track("the first sum", isOver(seat.sums->mark()));
    const DeviceWatch::Wait wait(run_.watch, seat.rank, DeviceWatch::OfOthers{kEndingSums});
    seat.sums->drain();
}

const NcclCliques::Clique& NcclCliques::of(const Collective& collective, std::size_t member)
{
    const int stage = collective.kind().stage.value;
    const Rank rank = collective.members()[member].rank;
    const auto holds = [&](const Clique& clique) {
        return std::ranges::count(clique.ranks, rank.value) > 0 && clique.ranks.size() == collective.members().size() &&
               std::ranges::all_of(collective.members(), [&](const Collective::Member& each) { return std::ranges::count(clique.ranks, each.rank.value) > 0; });
    };
    const auto found = std::ranges::find_if(cliques_, holds);
    if (found == cliques_.end()) throw std::logic_error("no clique sums stage " + std::to_string(stage));
    return *found;
}

void NcclCliques::sum(const Collective& collective, std::size_t member, const std::vector<at::Tensor>& values)
{
    const Clique& clique = of(collective, member);
    NcclCommunicator& communicator = clique.of(collective.members()[member].rank);
    const std::string what = toText(traces::Action{collective.action(member), {}});
    std::vector<NcclAllReduce> sums;
    for (const at::Tensor& each : values)
        if (each.numel() > 0) sums.push_back(inPlace(each));
    for (std::span<const NcclAllReduce> left(sums); !left.empty();) {
        const std::size_t count = std::min(left.size(), NcclCommunicator::kMostParts);
        const Expected<void> asked = communicator.allReduce(what, left.first(count), handleOf(currentStreamOf(values.front().device())));
        if (!asked.ok()) return clique.link->fail(asked.error());
        left = left.subspan(count);
    }
}

void NcclCliques::track(const Collective& collective, std::size_t member, const DeviceMark& end)
{
    of(collective, member).of(collective.members()[member].rank).track(toText(traces::Action{collective.action(member), {}}), isOver(end));
}

Expected<void> NcclCliques::finish()
{
    Expected<void> all;
    for (const Clique& each : cliques_)
        if (Expected<void> one = each.link->finish(); all.ok()) all = std::move(one);
    return all;
}

} // namespace stagecraft::runtime
