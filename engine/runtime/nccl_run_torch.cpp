// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_run_torch.h"

#include "engine/runtime/nccl_device_torch.h"
#include "engine/runtime/nccl_handoff_torch.h"
#include "engine/runtime/nccl_link.h"

#include <c10/core/DeviceGuard.h>

#include <stdexcept>

namespace stagecraft::runtime {

namespace {

NcclLink::Seats seatOf(const ProcessRun& all, c10::Device device)
{
    return {.size = all.group().size(), .members = {{.rank = all.rank(), .device = device.index()}}, .useDevice = setsDevice(device.type())};
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
        : link_(*wish.source, seatOf(all, place.device.device()), {.control = run.control, .clock = run.clock, .standsStill = [&run] { return run.standsStill(); }}),
          handoff_(all, run.schedule, {link_.communicator(all.rank()), wish.order}, place, bookOf(run, all))
    {
        awaitAll(all); // one may be long in coming: rank 0 computes what the check compares with
        const c10::DeviceGuard before(place.device.device()); // the caller's device is its own again
        const Expected<void> met = link_.connect(wish.id);
        if (!met.ok()) throw std::runtime_error(met.error().message);
    }
    void meetPeers() override { handoff_.meetPeers(); }
    Handoff<Boundary>& handoff() override { return handoff_; }
    Expected<void> finish() override { return link_.finish(); }

private:
    NcclLink link_;
    NcclHandoff handoff_;
};

} // namespace

std::unique_ptr<NcclRun> connectNccl(const Execution& run, ProcessRun& all, const HandoffPlace& place, const NcclWish& wish)
{
    return std::make_unique<ConnectedRun>(run, all, place, wish);
}

} // namespace stagecraft::runtime
