// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_watch.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using namespace traces;

std::optional<DeviceWatch::Awaited> DeviceWatch::silent() const
{
    const TimeNs now = clock_.now();
    const TimeNs endsSince = endsSince_.load();
    std::optional<Awaited> longest;
    for (const Slot& slot : slots_) {
        std::optional<Awaited> awaited;
        {
            const std::lock_guard lock(slot.mutex);
            awaited = slot.awaited;
        }
        if (!awaited) continue;
        if (awaited->ofOthers) awaited->since = std::max(awaited->since, endsSince);
        if (now - awaited->since > patience_ && (!longest || awaited->since < longest->since)) longest = awaited;
    }
    return longest;
}

void DeviceWatch::runEnds()
{
    TimeNs goesOn = kGoesOn;
    endsSince_.compare_exchange_strong(goesOn, clock_.now());
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

DeviceWatch::Wait::Wait(DeviceWatch* watch, Rank rank, std::string_view doing, Thread thread)
    : watch_(watch), slot_(kThreads * index(rank) + static_cast<std::size_t>(thread))
{
    begin({.rank = rank, .doing = doing});
}

DeviceWatch::Wait::Wait(DeviceWatch* watch, Rank rank, OfOthers what) : watch_(watch), slot_(kThreads * index(rank) + static_cast<std::size_t>(Thread::Own))
{
    begin({.rank = rank, .doing = what.doing, .ofOthers = true});
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
