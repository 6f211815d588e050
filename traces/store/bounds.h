// SPDX-License-Identifier: Apache-2.0
//
// Bounds of what a trace may hold. Everything that reads a file or a pipe checks against them before it stores, and who
// simulates keeps within them, so that the trace can be read again: sums and differences of times and bytes then stay within
// int64, and a rank is a number that a view may have rows for. They are far beyond any trace (73 years, a million ranks), so
// what exceeds them is damaged or hostile.
//
//   if (Expected<void> fits = checkBounds(slice); !fits.ok()) return fits;
#pragma once

#include "traces/store/trace.h"

namespace stagecraft::traces {

inline constexpr TimeNs kMostTime = TimeNs{1} << 61; // either side of 0
inline constexpr Bytes kMostBytes = Bytes{1} << 56;  // of one class on one rank
inline constexpr std::int32_t kMostRank = 1 << 20;
inline constexpr std::size_t kMostLanes = std::size_t{1} << 16;
inline constexpr std::size_t kMostGpus = std::size_t{1} << 12;

Expected<void> checkBounds(const TraceInfo& info);
Expected<void> checkBounds(const LaneInfo& lane);
Expected<void> checkBounds(const Slice& slice);
Expected<void> checkBounds(Interval interval);
Expected<void> checkBounds(const ClockReading& reading);
Expected<void> checkBounds(const Gpu& gpu);
Expected<void> checkBounds(TimeNs time, const GpuMemory& memory);
Expected<void> checkTime(TimeNs time);
Expected<void> checkMemory(Rank rank, TimeNs time, Bytes value);

} // namespace stagecraft::traces
