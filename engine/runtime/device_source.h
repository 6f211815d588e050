// SPDX-License-Identifier: Apache-2.0
//
// Where a run's GPUs come from. The engine speaks to a device through LibTorch's interface for devices of any kind: streams, events,
// guards and an allocator. What is left is here: which there are, and what LibTorch does not tell of all kinds alike. CUDA's is
// cudaDevices(); tests have one that no hardware stands behind (tests/runtime/fake_gpu).
//
//   const DeviceSource& devices = cudaDevices();
//   if (devices.gpus().empty()) say(devices.whyNone());
#pragma once

#include "engine/model/precision.h"
#include "traces/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct GpuInfo {
    std::string name;         // "NVIDIA H200"
    traces::Bytes memory = 0; // all of it
    std::string architecture; // compute capability: "9.0"
    std::string bus = {};     // its place there, "0000:1b:00": the same to all processes of the host, as its number is not
};

// Called under the allocator's locks: they call nothing of LibTorch.
struct DeviceBooks {
    void (*taken)(const void* data, traces::Bytes bytes) noexcept = nullptr;
    void (*gone)(const void* data) noexcept = nullptr;
};

class DeviceSource {
public:
    virtual ~DeviceSource() = default;
    [[nodiscard]] virtual const std::vector<GpuInfo>& gpus() const = 0; // in the order of their numbers
    [[nodiscard]] virtual const std::string& whyNone() const = 0;      // for a person; empty where there are some
    [[nodiscard]] virtual std::int8_t deviceType() const = 0;          // a c10::DeviceType
    // Whether one GPU may read the other's memory itself; else a copy goes through the host.
    [[nodiscard]] virtual bool reaches(int from, int to) const = 0;
    // FLOP per second that it reaches in a product of large matrices of such numbers, as they are multiplied now (TensorFloat-32 or not).
    // Measured; nothing else runs on it.
    [[nodiscard]] virtual double matmulPeak(int gpu, engine::Precision precision) const = 0;
    // From now on what is allocated on them is told to these, by the thread that allocates (engine/probe/device_blocks.h). What counts is
    // the first call of the process.
    virtual void bookMemory(const DeviceBooks& books) const = 0;
    // What keeps this process from ever using one of these again, after a run on them has failed: an access where there is no memory ends
    // CUDA for the process, to run out of memory does not. Empty where they are sound. Waits for them.
    [[nodiscard]] virtual std::string fault(const std::vector<int>& gpus) const = 0;
    // What nobody holds goes back to the GPUs. Nothing runs on them.
    virtual void giveBackMemory() const = 0;
};

} // namespace stagecraft::runtime
