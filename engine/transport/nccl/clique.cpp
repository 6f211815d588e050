// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/clique.h"

#include "engine/transport/nccl/nccl_errors.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

NcclClique::NcclClique(const NcclGround& ground, NcclCliqueSpec spec) : context_(ground), spec_(std::move(spec))
{
    for (const NcclMember& member : spec_.members) communicators_.emplace_back(context_, member.rank, spec_.size, member.known.value_or(member.rank));
}

NcclClique::~NcclClique() { endAll(); }

NcclCommunicator& NcclClique::of(int rank)
{
    return *std::find_if(communicators_.begin(), communicators_.end(), [&](const NcclCommunicator& each) { return each.rank() == rank; });
}

// In one group, since each waits for the others: the same for one, and for several devices that one thread begins.
Expected<void> NcclClique::beginAll(const NcclId& id, int generation)
{
    const NcclApi& api = context_.api;
    if (const NcclResult begun = api.groupStart(); begun != kNcclSuccess) return ncclError(api, "begin to connect the ranks", begun);
    Expected<void> all;
    auto member = spec_.members.begin();
    for (NcclCommunicator& communicator : communicators_) {
        const std::string who = communicator.named();
        if (Expected<void> used = spec_.useDevice(member++->device); !used.ok()) {
            all = used.error().in(who);
            break;
        }
        const NcclResult result = communicator.begin(id, generation);
        if (result == kNcclSuccess || result == kNcclInProgress) continue;
        all = ncclError(api, "connect it", result).in(who);
        break;
    }
    const NcclResult ended = api.groupEnd();
    for (NcclCommunicator& communicator : communicators_) communicator.opened();
    if (!all.ok()) return all;
    if (ended != kNcclSuccess && ended != kNcclInProgress) return ncclError(api, "connect the ranks", ended);
    return {};
}

Expected<void> NcclClique::connect(const NcclId& id)
{
    endAll();
    const int generation = context_.fault.begin();
    Expected<void> met = beginAll(id, generation);
    if (!met.ok()) context_.fault.keep(generation, -1, met.error().message);
    for (NcclCommunicator& communicator : communicators_)
        if (met.ok()) met = communicator.settle("connect it with the other ranks", kNcclInProgress, context_.patience.connect);
    if (!met.ok()) endAll();
    return met;
}

Expected<void> NcclClique::finish()
{
    if (const std::optional<NcclFault> known = fault()) return Error{known->text};
    // All begin before one is waited for: those of a process wait for each other.
    std::vector<NcclResult> begun;
    for (NcclCommunicator& communicator : communicators_) begun.push_back(communicator.finalize());
    Expected<void> all;
    auto result = begun.begin();
    for (NcclCommunicator& communicator : communicators_) {
        if (all.ok()) all = communicator.settle("finish what was issued", *result, context_.patience.transfer);
        ++result;
    }
    if (!all.ok()) {
        endAll();
        return all;
    }
    for (NcclCommunicator& communicator : communicators_) communicator.destroy();
    return {};
}

void NcclClique::endAll()
{
    for (NcclCommunicator& communicator : communicators_) communicator.end();
}

bool NcclClique::look()
{
    for (NcclCommunicator& communicator : communicators_) communicator.look();
    if (!context_.fault.any()) return true;
    const std::optional<NcclFault> first = fault();
    if (spec_.faulty && first && std::exchange(told_, generation()) != generation()) spec_.faulty(*first);
    endAll();
    return false;
}

NcclWatchdog::NcclWatchdog(NcclClique& clique, std::chrono::milliseconds period, std::function<void()> before)
    : thread_([&clique, period, before = std::move(before)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
              if (before) before();
              clique.look();
              std::this_thread::sleep_for(period);
          }
      })
{
    pthread_setname_np(thread_.native_handle(), "nccl watchdog");
}

} // namespace stagecraft::runtime
