// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI recorded, as plain values: times are nanoseconds of the host's monotonic clock, whatever clock CUPTI had, and
// each has both its ends. What lacks one is no activity but counted, so that nothing is missing in silence.
//
//   for (const DeviceActivity& each : batch.activities)
//       if (const auto* kernel = std::get_if<KernelActivity>(&each)) draw(kernel->span, names[index(kernel->name)]);
//   for (const std::string& note : sentences(batch.counts)) show(note);
#pragma once

#include "traces/analysis/memory_operations.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace stagecraft::runtime {

using NameId = traces::StrongId<struct ActivityNameTag, std::uint32_t>; // 0: no name

// CUPTI's numbers, which are not CUDA's handles.
struct DevicePlace {
    std::uint32_t device = 0;
    std::uint32_t context = 0;
    std::uint32_t stream = 0;

    auto operator<=>(const DevicePlace&) const = default;
};

struct KernelActivity {
    traces::Interval span;
    DevicePlace place;
    std::uint32_t correlation = 0; // of the call that launched it
    NameId name{};
    std::array<std::int32_t, 3> grid{};  // blocks
    std::array<std::int32_t, 3> block{}; // threads
    std::int32_t registers = 0;          // per thread
    std::int64_t sharedBytes = 0;        // per block, static and dynamic
    bool ofGraph = false;                // one of several that one launch of a graph began

    bool operator==(const KernelActivity&) const = default;
};

enum class CopyDirection : std::uint8_t {
    Unknown,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice, // within one
    HostToHost,
    Array, // to, from or between CUDA arrays
};
std::string_view copyDirectionText(CopyDirection direction); // "host to device", ...

struct CopyActivity {
    traces::Interval span;
    DevicePlace place;
    std::uint32_t correlation = 0;
    CopyDirection direction = CopyDirection::Unknown;
    traces::Bytes bytes = 0;
    bool ofGraph = false;

    bool operator==(const CopyActivity&) const = default;
};

struct PeerCopyActivity {
    traces::Interval span;
    DevicePlace place; // of the stream it ran on
    std::uint32_t correlation = 0;
    std::uint32_t from = 0; // device
    std::uint32_t to = 0;
    traces::Bytes bytes = 0;
    bool ofGraph = false;

    bool operator==(const PeerCopyActivity&) const = default;
};

struct MemsetActivity {
    traces::Interval span;
    DevicePlace place;
    std::uint32_t correlation = 0;
    traces::Bytes bytes = 0;
    bool ofGraph = false;

    bool operator==(const MemsetActivity&) const = default;
};

enum class SyncKind : std::uint8_t {
    Unknown,
    Event,      // the host waits for an event
    StreamWait, // a stream is told to wait for an event; the host goes on
    Stream,     // the host waits for a stream
    Context,    // the host waits for all streams
};
std::string_view syncKindText(SyncKind kind);

struct SyncActivity {
    traces::Interval span; // of the call, on the host
    std::uint32_t context = 0;
    std::uint32_t stream = 0;
    std::uint32_t correlation = 0;
    SyncKind sync = SyncKind::Unknown;
    std::uint32_t event = 0;

    bool operator==(const SyncActivity&) const = default;
};

enum class ApiSide : std::uint8_t { Runtime, Driver, Internal };

struct ApiActivity {
    traces::Interval span;
    std::uint32_t correlation = 0;
    ApiSide side = ApiSide::Runtime;
    std::uint32_t function = 0; // CUPTI's callback id
    NameId name{};              // "cudaMemcpyAsync"
    std::uint32_t thread = 0;
    std::uint32_t result = 0; // 0: the call succeeded

    bool operator==(const ApiActivity&) const = default;
};

enum class MemoryOperation : std::uint8_t { Allocate, Release };

struct MemoryActivity {
    traces::TimeNs at = 0;
    DevicePlace place;
    std::uint32_t correlation = 0;
    MemoryOperation operation = MemoryOperation::Allocate;
    traces::MemoryPlace memory = traces::MemoryPlace::Device;
    bool async = false; // in the order of its stream, from a pool
    std::uint64_t address = 0;
    traces::Bytes bytes = 0;

    bool operator==(const MemoryActivity&) const = default;
};

enum class OverheadKind : std::uint8_t {
    Unknown,
    DriverCompiler,
    BufferFlush,
    Instrumentation,
    Resource,
    ModuleLoading,
    FunctionLoading,
    CommandBufferFull, // the queue to the device was full, so that the host had to wait
    BufferRequest,
    UnifiedMemory,
};
std::string_view overheadKindText(OverheadKind kind);

struct OverheadActivity {
    traces::Interval span;
    std::uint32_t correlation = 0;
    OverheadKind overhead = OverheadKind::Unknown;

    bool operator==(const OverheadActivity&) const = default;
};

// Which of our ids (work_id.h) stood on the thread when it made the call.
struct CorrelationActivity {
    std::uint32_t correlation = 0;
    std::uint64_t id = 0;

    bool operator==(const CorrelationActivity&) const = default;
};

using DeviceActivity = std::variant<KernelActivity, CopyActivity, PeerCopyActivity, MemsetActivity, SyncActivity, ApiActivity,
                                    MemoryActivity, OverheadActivity, CorrelationActivity>;

// What was not recorded, and why.
struct ActivityCounts {
    std::int64_t records = 0;        // that CUPTI's library stepped over
    std::int64_t otherKinds = 0;     // of a kind that is not used here
    std::int64_t untimed = 0;        // began or ended at 0: the device had no room for a time stamp, or the work had not ended
    std::int64_t impossible = 0;     // end before begin, or times and sizes that cannot be
    std::int64_t brokenBuffers = 0;  // of which the rest could not be read
    std::int64_t dropped = 0;        // records that CUPTI says it dropped
    std::int64_t refusedBuffers = 0; // that CUPTI asked for when all were in use

    ActivityCounts& operator+=(const ActivityCounts& other);
    [[nodiscard]] std::int64_t lost() const { return untimed + impossible + dropped; } // activities that are known to be missing
    bool operator==(const ActivityCounts&) const = default;
};

// What a reader of the trace must know, one sentence each; none where nothing is missing.
std::vector<std::string> sentences(const ActivityCounts& counts);

// What came since the last flush.
struct ActivityBatch {
    std::vector<DeviceActivity> activities;
    std::vector<std::string> newNames; // numbered on from those of the batches before, the first of all with 1
    ActivityCounts counts;
    traces::TimeNs at = 0; // when it was flushed
};

} // namespace stagecraft::runtime
