// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_queue_torch.h"

#include <algorithm>
#include <iterator>

namespace stagecraft::runtime {

using traces::ActionKind;
using traces::Work;

void InputsInUse::hold(const Work& work, const at::Tensor& input)
{
    if (input.defined()) ofUnit_[{work.flow, work.stage, work.microbatch}].push_back(input.storage());
}

void InputsInUse::hold(const Work& work, std::vector<c10::Storage> blocks)
{
    std::vector<c10::Storage>& held = ofUnit_[{work.flow, work.stage, work.microbatch}];
    held.insert(held.end(), std::make_move_iterator(blocks.begin()), std::make_move_iterator(blocks.end()));
}

std::vector<c10::Storage> InputsInUse::usedUp(const Work& work, bool inference)
{
    const bool last = work.kind == ActionKind::Backward || work.kind == ActionKind::WeightGrad || (work.kind == ActionKind::Forward && inference);
    if (!last) return {};
    auto unit = ofUnit_.extract({work.flow, work.stage, work.microbatch});
    return unit ? std::move(unit.mapped()) : std::vector<c10::Storage>();
}

DeviceQueue::~DeviceQueue()
{
    try {
        device_.drain();
    } catch (...) { // a device that has failed uses nothing any more
    }
}

void DeviceQueue::add(const RunEvent& event, const DeviceTimes& times, std::vector<c10::Storage> held)
{
    asked_.push_back({event, times, std::move(held)});
}

void DeviceQueue::settle()
{
    const RankDevice::Scope here = device_.enter(); // asking an event of another device than the thread's would wake up that one
    while (!asked_.empty() && asked_.front().times.end->reached()) settleFirst();
    while (asked_.size() > kAhead) awaitFirst();
}

void DeviceQueue::settleAll()
{
    const RankDevice::Scope here = device_.enter();
    while (!asked_.empty()) awaitFirst();
}

void DeviceQueue::drain(traces::Step step)
{
    settleAll();
    const DeviceWatch::Wait here(watch_, rank_, step);
    device_.drain();
}

void DeviceQueue::awaitFirst()
{
    {
        const DeviceWatch::Wait here(watch_, rank_, asked_.front().event.step, asked_.front().event.work);
        asked_.front().times.end->wait();
    }
    settleFirst();
}

void DeviceQueue::settleFirst()
{
    Asked& asked = asked_.front();
    RunEvent& event = asked.event;
    if (timed_) {
        event.begin = std::max(asked.times.begin->time(), waited_);
        event.end = std::max(asked.times.end->time(), event.begin);
        if (asked.times.ready) event.value[RunEvent::kReady] = asked.times.ready->time();
        if (asked.times.gathered) event.value[RunEvent::kGathered] = asked.times.gathered->time();
        if (event.value[RunEvent::kAvailable] >= 0) event.value[RunEvent::kAvailable] = std::max(event.end, event.value[RunEvent::kSent]);
    }
    lastEnd_ = std::max(lastEnd_, event.end);
    ring_.push(event);
    asked_.pop_front();
}

} // namespace stagecraft::runtime
