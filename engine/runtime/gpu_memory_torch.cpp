// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gpu_memory_torch.h"

#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/run_messages.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>

#include <pthread.h>

namespace stagecraft::runtime {

using traces::Bytes;
using traces::GpuMemory;

namespace {

using c10::CachingAllocator::StatType;

// Of all pools together.
const c10::CachingAllocator::Stat& ofAll(const c10::CachingAllocator::StatArray& stats) { return stats[static_cast<std::size_t>(StatType::AGGREGATE)]; }

Bytes usedByAnyone(c10::Device device)
{
    const auto [free, total] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
    return static_cast<Bytes>(total - std::min(free, total));
}

constexpr int kAttempts = 3;

} // namespace

GpuMemorySampler::GpuMemorySampler(const RunnablePlan& runnable, const DeviceSource* given, RunRecorder& recorder, const Clock& clock, DeviceWatch* watch)
    : recorder_(recorder), clock_(clock), watch_(watch)
{
    if (runnable.plan.run.device != engine::DeviceKind::Cuda || runnable.plan.run.mode == engine::RunMode::Emulated) return;
    const DeviceSource& devices = devicesOr(given);
    const std::string host = openingInfo(runnable).host;
    std::map<int, std::vector<traces::Rank>> ranks;
    for (std::size_t r = 0; r < runnable.gpus.size(); ++r)
        if (runnable.gpus[r] != engine::kOnCpu) ranks[runnable.gpus[r]].push_back(traces::Rank{r});
    try {
        for (const auto& [number, own] : ranks) {
            const c10::Device device(static_cast<c10::DeviceType>(devices.deviceType()), static_cast<c10::DeviceIndex>(number));
            c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
            const GpuInfo& card = devices.gpus()[static_cast<std::size_t>(number)];
            gpus_.push_back({.device = device, .id = traces::GpuId{gpus_.size()}, .rank = own.front()});
            recorder_.post(traces::GpuRecord{
                {.host = host, .number = number, .name = card.name, .bus = card.bus, .total = card.memory, .ranks = own}});
        }
        look();
    } catch (const std::exception& error) {
        gpus_.clear();
        recorder_.post(traces::NoteRecord{std::string("the memory of the GPUs is not known: ") + error.what()});
    }
    if (gpus_.empty()) return;
    try {
        thread_ = std::jthread([this](const std::stop_token& stop) {
            std::mutex mutex;
            std::condition_variable_any stopped;
            std::unique_lock lock(mutex);
            try {
                for (;;) {
                    stopped.wait_for(lock, stop, kPeriod, [] { return false; });
                    if (stop.stop_requested()) return;
                    look();
                }
            } catch (const std::exception&) { // a GPU that has failed: the run tells of it
            }
        });
        pthread_setname_np(thread_.native_handle(), "gpu memory");
    } catch (const std::system_error& error) { // no thread: the run does without
        recorder_.post(traces::NoteRecord{std::string("the memory of the GPUs is looked at at the beginning and the end alone: ") + error.what()});
    }
}

GpuMemorySampler::~GpuMemorySampler()
{
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
    try {
        look(true);
    } catch (const std::exception&) { // as above
    }
}

void GpuMemorySampler::look(bool last)
{
    for (Watched& gpu : gpus_) look(gpu, last);
}

void GpuMemorySampler::look(Watched& gpu, bool last)
{
    const DeviceWatch::Wait wait(watch_, gpu.rank, "reading how full its memory is", DeviceWatch::Thread::Memory);
    const TimeNs now = clock_.now();
    c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(gpu.device.type());
    c10::CachingDeviceAllocator::DeviceStats stats = allocator.getDeviceStats(gpu.device.index());
    const bool changed = !gpu.told || gpu.told->reserved != ofAll(stats.reserved_bytes).current;
    const bool askDriver = changed || last || ++gpu.sinceDriver >= kPeriodsPerDriver;
    if (askDriver) gpu.sinceDriver = 0;
    std::optional<Bytes> driverSays = askDriver ? std::nullopt : std::optional(gpu.told->used);
    for (int i = 0; i < kAttempts && !driverSays; ++i) {
        const Bytes before = ofAll(stats.reserved_bytes).current;
        const Bytes used = usedByAnyone(gpu.device);
        stats = allocator.getDeviceStats(gpu.device.index());
        if (ofAll(stats.reserved_bytes).current == before) driverSays = used; // else what a rank reserved meanwhile would count as others'
    }
    const auto& active = ofAll(stats.active_bytes);
    const auto& reserved = ofAll(stats.reserved_bytes);
    const Bytes used = driverSays.value_or(reserved.current + (gpu.told ? gpu.told->other() : 0));
    const GpuMemory memory{.active = active.current, .reserved = reserved.current, .used = std::max<Bytes>(used, reserved.current)};
    if (gpu.told) { // more than ever, and gone again: some time between the two looks
        const auto most = [](Bytes here, Bytes before, Bytes peak, Bytes everBefore) { return std::max({here, before, peak > everBefore ? peak : 0}); };
        GpuMemory between{.active = most(memory.active, gpu.told->active, active.peak, gpu.mostActive),
                          .reserved = most(memory.reserved, gpu.told->reserved, reserved.peak, gpu.mostReserved)};
        between.used = between.reserved + std::max(memory.other(), gpu.told->other());
        if (between.active > std::max(memory.active, gpu.told->active) || between.reserved > std::max(memory.reserved, gpu.told->reserved))
            tell(gpu, gpu.lookedAt + (now - gpu.lookedAt) / 2, between);
    }
    gpu.mostActive = std::max(gpu.mostActive, active.peak);
    gpu.mostReserved = std::max(gpu.mostReserved, reserved.peak);
    tell(gpu, now, memory);
    gpu.lookedAt = now;
}

void GpuMemorySampler::tell(Watched& gpu, TimeNs time, const GpuMemory& memory)
{
    if (gpu.told == memory) return;
    gpu.told = memory;
    recorder_.post(traces::GpuMemoryRecord{gpu.id, time, memory});
}

} // namespace stagecraft::runtime
