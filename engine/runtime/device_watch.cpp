// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_watch.h"

#include <utility>

namespace stagecraft::runtime {

using namespace traces;

std::optional<DeviceWatch::Awaited> DeviceWatch::silent() const
{
    const TimeNs now = clock_.now();
    std::optional<Awaited> longest;
    for (const Slot& slot : slots_) {
        const std::lock_guard lock(slot.mutex);
        if (slot.awaited && now - slot.awaited->since > patience_ && (!longest || slot.awaited->since < longest->since)) longest = slot.awaited;
    }
    return longest;
}

DeviceWatch::Wait::Wait(DeviceWatch* watch, Rank rank, Step step, const Work& work, Thread thread)
    : watch_(watch), slot_(kThreads * index(rank) + static_cast<std::size_t>(thread))
{
    if (watch_ == nullptr) return;
    Slot& slot = watch_->slots_[slot_];
    const std::lock_guard lock(slot.mutex);
    outer_ = std::exchange(slot.awaited, Awaited{rank, step, work, watch_->clock_.now()});
}

DeviceWatch::Wait::~Wait()
{
    if (watch_ == nullptr) return;
    Slot& slot = watch_->slots_[slot_];
    const std::lock_guard lock(slot.mutex);
    slot.awaited = outer_;
    if (slot.awaited) slot.awaited->since = watch_->clock_.now();
}

} // namespace stagecraft::runtime
