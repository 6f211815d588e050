// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_run_torch.h"

#include "engine/runtime/nccl_cliques_torch.h"
#include "engine/runtime/nccl_device_torch.h"
#include "engine/runtime/nccl_handoff_torch.h"
#include "engine/runtime/nccl_link.h"
#include "engine/runtime/nccl_process_sums_torch.h"

#include <c10/core/DeviceGuard.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

namespace {

// Among the ranks of its replica.
NcclLink::Seats seatOf(const ProcessRun& all, int ranks, c10::Device device)
{
    return {.size = ranks, .members = {{.rank = all.rank() % ranks, .device = device.index(), .known = all.rank()}}, .useDevice = setsDevice(device.type())};
}

void awaitAll(ProcessRun& all)
{
    PostOffice& office = all.group().office();
    const auto await = [&](int from) {
        bool heard = false;
        office.waitUntil([&] { return (heard = office.find(MailKind::Ready, from).has_value()) || all.ending(); });
        if (!heard) throw PreparationStopped{};
    };
    if (all.rank() != 0) {
        office.send(0, MailKind::Ready, "");
        return await(0);
    }
    for (int r = 1; r < all.group().size(); ++r) await(r);
    office.sendToAll(MailKind::Ready, "");
}

ExchangeBook bookOf(const Execution& run, const ProcessRun& all)
{
    if (run.plan.run.tracing < traces::TraceLevel::Kernels) return {};
    return {run.recorder.ring(traces::Rank{all.rank()}), traces::Step{run.firstStep}};
}

class ConnectedRun final : public NcclRun {
public:
    ConnectedRun(const Execution& run, ProcessRun& all, const HandoffPlace& place, const NcclWish& wish)
        : rank_(all.rank()), link_(*wish.source, seatOf(all, run.schedule.ranks, place.device.device()), {.control = run.control, .clock = run.clock, .standsStill = [&run] { return run.standsStill(); }}),
          handoff_(all, run.schedule, {link_.communicator(all.rank() % run.schedule.ranks), wish.order, run.watch}, place, bookOf(run, all))
    {
        awaitAll(all); // one may be long in coming: rank 0 computes what the check compares with
        const c10::DeviceGuard before(place.device.device()); // the caller's device is its own again
        const Expected<void> met = link_.connect(wish.id);
        if (!met.ok()) throw std::runtime_error(met.error().message);
        if (run.sums == nullptr) return;
        const Rank own{all.rank()};
        cliques_.emplace(run, NcclCliques::Way{.source = *wish.source, .ids = wish.sumIds, .without = "--transport host"},
                         std::vector<NcclCliques::Seat>{{own, &run.pipeline.sumDevice(Rank{own.value % run.schedule.ranks})}});
        sums_.emplace(run, own, *cliques_, NcclProcessSums::Exchanges{[this] { return handoff_.through(); }, [this] { handoff_.waitThrough(); }});
    }
    void meetPeers() override
    {
        handoff_.meetPeers();
        if (cliques_) cliques_->meet(rank_);
    }
    Handoff<Boundary>& handoff() override { return handoff_; }
    SumMaker* sums() override { return sums_ ? &*sums_ : nullptr; }
    Expected<void> finish() override
    {
        Expected<void> all = link_.finish();
        if (Expected<void> sums = cliques_ ? cliques_->finish() : Expected<void>(); all.ok()) all = std::move(sums);
        return all;
    }

private:
    const Rank rank_; // of all replicas
    NcclLink link_;
    NcclHandoff handoff_;
    std::optional<NcclCliques> cliques_;
    std::optional<NcclProcessSums> sums_; // last: it uses the others
};

} // namespace

std::unique_ptr<NcclRun> connectNccl(const Execution& run, ProcessRun& all, const HandoffPlace& place, const NcclWish& wish)
{
    return std::make_unique<ConnectedRun>(run, all, place, wish);
}

} // namespace stagecraft::runtime
