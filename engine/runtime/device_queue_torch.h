// SPDX-License-Identifier: Apache-2.0
//
// What a rank has asked its GPU for and is not known to be done: in order, with what must not be let go of before. An action's times are
// the device's own, so its event is recorded once they are known. The thread asks for a few actions ahead and then waits: enough for the
// device to find the next one ready, and not more, for what is asked for takes its memory at once, and a pause or a view of the run would
// be far from what the device does. Of the rank's thread. Private to the runtime.
//
//   queue.add(event, {.begin = begin, .end = end}, inputs.usedUp(work, inference));   // after the action was asked for
//   queue.settle();                   // records what is done
//   queue.settleAll();                // waits; at the end of a step
#pragma once

#include "engine/probe/event_ring.h"
#include "engine/runtime/device_watch.h"
#include "engine/runtime/rank_device_torch.h"
#include "engine/runtime/run_event.h"
#include "traces/base/trace_level.h"

#include <deque>
#include <map>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

struct DeviceTimes {
    DeviceMark ready = {}; // of its input
    DeviceMark gathered = {}; // of the weights, where they come from other replicas
    DeviceMark begin = {};
    DeviceMark end = {};
    at::Tensor source = {}; // of a copy that is its input
};

// What came from another stream, by the unit that uses it.
class InputsInUse {
public:
    void hold(const traces::Work& work, const at::Tensor& input);
    void hold(const traces::Work& work, std::vector<c10::Storage> blocks); // the same of several, without their tensors
    // To be let go of when the action is over, where it is the unit's last: after its backward, or the part of it that is done last,
    // nothing of a unit is asked for any more, and of an inference after its forward.
    [[nodiscard]] std::vector<c10::Storage> usedUp(const traces::Work& work, bool inference);

private:
    std::map<std::tuple<traces::Flow, traces::Stage, traces::MicroBatch>, std::vector<c10::Storage>> ofUnit_;
};

class DeviceQueue {
public:
    static constexpr std::size_t kAhead = 4; // actions

    // Below level Events the times stay those at which the action was asked for. Its waits are told to `watch`, if any, as those of `rank`.
    DeviceQueue(const RankDevice& device, EventRing<RunEvent>& ring, traces::TraceLevel level, DeviceWatch* watch, traces::Rank rank)
        : device_(device), ring_(ring), timed_(level >= traces::TraceLevel::Events), watch_(watch), rank_(rank)
    {
    }
    ~DeviceQueue(); // waits: what it holds may be in use
    DeviceQueue(const DeviceQueue&) = delete;
    DeviceQueue& operator=(const DeviceQueue&) = delete;

    // `held` until it is done.
    void add(const RunEvent& event, const DeviceTimes& times, std::vector<c10::Storage> held);
    // Throws what the device failed with.
    void settle();
    void settleAll();
    void drain(traces::Step step); // and waits for what else the device was asked for
    [[nodiscard]] TimeNs lastEnd() const { return lastEnd_; } // of what is settled
    // The rank has waited until then, by the host's clock: what comes next is shown behind that, whatever the device's differs by.
    void waitedUntil(TimeNs time) { waited_ = time; }
    // What is not settled, and was asked for first: where settling throws, what failed is it, or what came before it unseen.
    [[nodiscard]] const RunEvent* oldest() const { return asked_.empty() ? nullptr : &asked_.front().event; }

private:
    struct Asked {
        RunEvent event;
        DeviceTimes times;
        std::vector<c10::Storage> held;
    };
    void awaitFirst();
    void settleFirst();

    const RankDevice& device_;
    EventRing<RunEvent>& ring_;
    bool timed_;
    DeviceWatch* watch_;
    traces::Rank rank_;
    std::deque<Asked> asked_;
    TimeNs lastEnd_ = 0;
    TimeNs waited_ = 0;
};

} // namespace stagecraft::runtime
