// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a rank's blocks went on its device. Every moment of a block is one of these, first match:
//
//   a kernel (or memset) of the rank's streams is at work, which is none of NCCL
//   a copy of the rank's streams is
//   a kernel of NCCL is
//   nothing is, and the gap has a cause (stream_lanes.h); of several streams that of the one with most kernels counts
//   not known: nothing is recorded of it
//
// Copies are *hidden* while a kernel of the same GPU is at work, whichever rank's it is.
//
//   const std::optional<DeviceTime> time = deviceTimeOf(trace, block);          // nothing where no kernels are recorded
//   for (const RankDeviceTime& each : deviceTimes(trace)) show(each.rank, each.inBlocks);
#pragma once

#include "traces/analysis/exchanges.h"
#include "traces/analysis/stream_lanes.h"
#include "traces/store/trace.h"

#include <array>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::traces {

struct DeviceTime {
    TimeNs span = 0;    // all of it
    TimeNs kernels = 0;
    TimeNs copies = 0;  // that no kernel of the rank hides
    TimeNs exchanges = 0; // with a kernel of NCCL alone
    std::array<TimeNs, kStreamGapCauses.size()> gaps{}; // by cause
    TimeNs notKnown = 0;

    TimeNs copying = 0; // with a copy of the rank at work, hidden or not
    TimeNs hidden = 0;  // of that
    NcclTime nccl = {};  // with kernels of NCCL at work, hidden or not

    [[nodiscard]] TimeNs gap(StreamGapCause cause) const { return gaps[static_cast<std::size_t>(cause)]; }
    bool operator==(const DeviceTime&) const = default;
};

// Of one block of a rank.
[[nodiscard]] std::optional<DeviceTime> deviceTimeOf(const Trace& trace, SliceRef block);

// Of all blocks of a rank together; its copies and kernels of NCCL are counted over the whole trace, for they also run between blocks.
struct RankDeviceTime {
    Rank rank{};
    DeviceTime time;

    bool operator==(const RankDeviceTime&) const = default;
};
// Of each rank with kernels. What a stopped one gives is of no use.
[[nodiscard]] std::vector<RankDeviceTime> deviceTimes(const Trace& trace, const std::stop_token& stop = {});

} // namespace stagecraft::traces
