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

void DeviceWatch::goesOn()
{
    const TimeNs now = clock_.now();
    for (std::size_t i = static_cast<std::size_t>(Thread::Preparing); i < slots_.size(); i += kThreads) {
        const std::lock_guard lock(slots_[i].mutex);
        if (slots_[i].awaited) slots_[i].awaited->since = now;
    }
}

DeviceWatch::Wait::Wait(DeviceWatch* watch, Rank rank, Step step, const Work& work, Thread thread)
    : watch_(watch), slot_(kThreads * index(rank) + static_cast<std::size_t>(thread))
{
    begin({.rank = rank, .step = step, .work = work});
}

DeviceWatch::Wait::Wait(DeviceWatch* watch, Rank rank, std::string_view doing)
    : watch_(watch), slot_(kThreads * index(rank) + static_cast<std::size_t>(Thread::Preparing))
{
    begin({.rank = rank, .doing = doing});
}

void DeviceWatch::Wait::begin(const Awaited& awaited)
{
    if (watch_ == nullptr) return;
    Slot& slot = watch_->slots_[slot_];
    const std::lock_guard lock(slot.mutex);
    outer_ = std::exchange(slot.awaited, awaited);
    slot.awaited->since = watch_->clock_.now();
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
