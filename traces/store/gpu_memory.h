// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU over time, as the driver and LibTorch's allocator tell it. It belongs to the GPU and to none of its ranks, which may share
// it; what each of them holds is in MemorySeries.
//
//   total ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄   of the card
//   used  ──────────────────────   other: contexts, libraries, other processes
//   reserved ───────────────────   taken by LibTorch and in no use
//   active ─────────────────────   in use, or let go of while its stream may still need it
//
//   const GpuId gpu = trace.addGpu({.number = 0, .name = "NVIDIA H200", .total = total, .ranks = {Rank{0}, Rank{1}}});
//   trace.addGpuMemory(gpu, time, {.active = a, .reserved = r, .used = total - free});
//   show(trace.gpus()[index(gpu)].at(time).other());
#pragma once

#include "traces/base/ids.h"
#include "traces/base/units.h"

#include <algorithm>
#include <string>
#include <vector>

namespace stagecraft::traces {

using GpuId = StrongId<struct GpuTag, std::uint32_t>; // of a trace

struct GpuMemory {
    Bytes active = 0;
    Bytes reserved = 0; // the active part is in it
    Bytes used = 0;     // by anyone; the reserved part is in it

    [[nodiscard]] Bytes unused() const { return std::max<Bytes>(0, reserved - active); }
    [[nodiscard]] Bytes other() const { return std::max<Bytes>(0, used - reserved); }
    bool operator==(const GpuMemory&) const = default;
};

struct Gpu {
    std::string host = {};
    std::int32_t number = 0;   // as its process counts
    std::string name = {};     // "NVIDIA H200"
    std::string bus = {};      // its place there: with the host the same to all processes; empty where it is not known
    Bytes total = 0;           // 0: not known
    std::vector<Rank> ranks = {}; // that compute on it, ascending

    bool operator==(const Gpu&) const = default;
};

// A step function: value[i] from time[i] on; times ascend.
struct GpuSeries {
    Gpu gpu;
    std::vector<TimeNs> time = {};
    std::vector<GpuMemory> value = {};

    [[nodiscard]] GpuMemory at(TimeNs t) const // nothing before the first point
    {
        const auto after = std::upper_bound(time.begin(), time.end(), t);
        return after == time.begin() ? GpuMemory{} : value[static_cast<std::size_t>(after - time.begin()) - 1];
    }
    bool operator==(const GpuSeries&) const = default;
};

} // namespace stagecraft::traces
