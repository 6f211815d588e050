// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_run_torch.h"

#include "engine/runtime/nccl_handoff_torch.h"
#include "engine/runtime/nccl_link.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>

namespace stagecraft::runtime {

namespace {

bool standsStill(const Execution& run)
{
    if (run.control.pausing()) return true;
    for (int s = 0; s < run.schedule.stages(); ++s)
        if (run.trouble.holds(traces::Stage{s})) return true;
    return false;
}

NcclLink::Member memberOf(const ProcessRun& all, c10::Device device)
{
    const auto use = [type = device.type()](int gpu) -> Expected<void> {
        try {
            c10::impl::VirtualGuardImpl(type).setDevice(c10::Device(type, static_cast<c10::DeviceIndex>(gpu)));
            return {};
        } catch (const std::exception& error) {
            return Error{error.what()};
        }
    };
    return {.rank = all.rank(), .size = all.group().size(), .device = device.index(), .useDevice = use};
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

class ConnectedRun final : public NcclRun {
public:
    ConnectedRun(const Execution& run, ProcessRun& all, const HandoffPlace& place, const NcclWish& wish)
        : link_(*wish.source, memberOf(all, place.device.device()), {run.control, run.clock, [&run] { return standsStill(run); }}),
          handoff_(all, run.schedule, {link_.communicator(), wish.order}, place)
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
