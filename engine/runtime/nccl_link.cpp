// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_link.h"

#include <chrono>

namespace stagecraft::runtime {

NcclLink::NcclLink(const NcclSource& source, const Seats& seats, const Watch& watch)
    : device_(seats.members.front().device), useDevice_(seats.useDevice), watch_(watch),
      clock_(source.clock != nullptr ? *source.clock : watch.clock),
      clique_({.api = source.api, .clock = clock_, .patience = source.patience},
              {.size = seats.size,
               .members = seats.members,
               .useDevice = seats.useDevice,
               .faulty = [this](const NcclFault& fault) { failWith(fault); }}),
      watchdog_(clique_, std::chrono::milliseconds(10), [this] { beforeLook(); })
{
}

// On a device of the clique: to ask about an event while another is the thread's would wake up that one.
void NcclLink::beforeLook()
{
    static_cast<void>(useDevice_(device_)); // connect() tells where that fails
    clock_.tick(watch_.standsStill());
    if (watch_.control.ending()) clique_.giveUp("the run ends");
}

void NcclLink::fail(const Error& error)
{
    const std::optional<NcclFault> first = clique_.fault();
    failWith(first ? *first : NcclFault{.rank = -1, .text = error.message});
}

// Before the communicators end: from then on what this rank computes is nothing, and its reasons would be none.
void NcclLink::failWith(const NcclFault& fault)
{
    if (watch_.control.ending()) return; // which is why
    engine::FailureMessage failure;
    failure.text = watch_.what + " failed: " + fault.text + ". Without NCCL: " + watch_.without;
    if (fault.rank >= 0) failure.rank = fault.rank;
    watch_.control.fail(std::move(failure));
}

} // namespace stagecraft::runtime
