// SPDX-License-Identifier: Apache-2.0
//
// What of its GPUs' memory is in use while a run goes on, looked at beside its ranks: what LibTorch's allocator has reserved and what of that
// is active, which costs it a lock, and what the driver says is used by anyone. That is asked for when the reserve has changed, and else
// seldom: it takes a lock that launches take as well. Between two looks the allocator remembers the most that was active since the run
// began, so no peak of the run is missed; a lower one in between may be.
//
//   GpuMemorySampler sampler(runnable, given, recorder, clock);   // nothing is under way; the first look
//   ...                                                            // the ranks work
//   // its end is the last look
#pragma once

#include "engine/probe/clock.h"
#include "engine/runtime/device_source.h"
#include "engine/runtime/device_watch.h"
#include "engine/runtime/run_recorder.h"
#include "engine/runtime/runnable.h"

#include <c10/core/Device.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace stagecraft::runtime {

class GpuMemorySampler {
public:
    static constexpr std::chrono::milliseconds kPeriod{5};
    static constexpr int kPeriodsPerDriver = 20; // the driver is asked that seldom while the reserve stays

    // `watch`: a driver that does not answer ends the run as any other wait for it.
    // Of the GPUs on which ranks of this process compute; `given`: as LocalSessionOptions::devices. Mode emulated has virtual times, and no memory beside them.
    GpuMemorySampler(const RunnablePlan& runnable, const DeviceSource* given, RunRecorder& recorder, const Clock& clock, DeviceWatch* watch);
    ~GpuMemorySampler();
    GpuMemorySampler(const GpuMemorySampler&) = delete;
    GpuMemorySampler& operator=(const GpuMemorySampler&) = delete;

private:
    struct Watched {
        c10::Device device;
        traces::GpuId id{};
        traces::Rank rank{}; // the first that computes there
        traces::Bytes mostActive = 0; // that was told, as the allocator remembers it
        traces::Bytes mostReserved = 0;
        std::optional<traces::GpuMemory> told = {};
        TimeNs lookedAt = 0;
        int sinceDriver = 0;
    };
    void look(bool last = false);
    void look(Watched& gpu, bool last);
    void tell(Watched& gpu, TimeNs time, const traces::GpuMemory& memory);

    RunRecorder& recorder_;
    const Clock& clock_;
    DeviceWatch* const watch_; // may be null
    std::vector<Watched> gpus_;
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
