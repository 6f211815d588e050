// SPDX-License-Identifier: Apache-2.0
//
// The quantity that a sweep varies, and its values, as they are written on a command line or in a field:
//
//   parseSweepAxis("microbatches=1..64")          1, 2, 3, ... 64
//   parseSweepAxis("microbatches=4,8,16")         these three
//   parseSweepAxis("microbatches=1..1024*2")      1, 2, 4, ... 1024: the axis is geometric
//   parseSweepAxis("latency=0us..500us+50us")     0, 50 µs, ... 500 µs
//   parseSweepAxis("latency=0us..500us")          twenty equal steps
//
// Pure functions; any thread. Errors name the text and what is allowed.
#pragma once

#include "traces/base/expected.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

enum class SweepQuantity : std::uint8_t {
    Microbatches,
    Ranks,
    Chunks,
    Slices,
    Group,
    MicrobatchSize, // at a fixed batch: the number of micro-batches follows
    Forward,
    Backward,
    Latency,
    Bandwidth,
    BoundaryBytes,
    ActivationBytes,
    MemoryLimit,
    Jitter,
    Offload,
    RanksPerNode,
    NodeLatency,
    NodeBandwidth,
    Replicas,
};

enum class SweepUnit : std::uint8_t {
    Count, // whole, 1 or more
    Time,  // ns
    Size,  // bytes
    Rate,  // bytes per second
    Share, // 0 to 1
};

struct SweepQuantityInfo {
    SweepQuantity quantity;
    std::string_view key;   // "microbatches", the word of the command line
    std::string_view title; // "micro-batches m", for an axis
    SweepUnit unit;
};

std::span<const SweepQuantityInfo> sweepQuantities();
const SweepQuantityInfo& infoOf(SweepQuantity quantity);

struct SweepAxis {
    SweepQuantity quantity = SweepQuantity::Microbatches;
    std::vector<double> values; // ascending, each once; in ns, bytes, bytes per second, or a share
    bool geometric = false;     // they grow by a factor

    bool operator==(const SweepAxis&) const = default;
};

inline constexpr std::size_t kMostSweepValues = 1024;

traces::Expected<SweepAxis> parseSweepAxis(std::string_view text);
// The part behind the "=" alone, for a field beside a choice of the quantity.
traces::Expected<SweepAxis> parseSweepValues(SweepQuantity quantity, std::string_view text);

// "8", "50 µs", "1 GiB", "5 %"
std::string sweepValueText(SweepQuantity quantity, double value);

} // namespace stagecraft::engine
