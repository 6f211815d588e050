// SPDX-License-Identifier: Apache-2.0
//
// Records: a trace as a stream. The live engine emits them, the journal stores them, the worker sends them to the window,
// and apply() builds a Trace from them in the order in which they came. A stream that breaks off anywhere is a valid,
// shorter trace.
#pragma once

#include "traces/store/trace.h"

#include <cstdint>
#include <string>
#include <variant>

namespace stagecraft::traces {

struct InfoRecord { // first of a trace; where several runs are sent in one stream, the next begins with its own
    TraceInfo info;
    bool operator==(const InfoRecord&) const = default;
};
struct LaneRecord { // lanes are numbered in the order of these records, from 0
    LaneInfo lane;
    bool operator==(const LaneRecord&) const = default;
};
struct TextRecord { // texts are numbered in the order of these records, from 1
    std::string text;
    bool operator==(const TextRecord&) const = default;
};
struct SliceRecord { // slices of a lane are numbered in the order of these records
    LaneId lane{};
    Slice slice{};
    bool operator==(const SliceRecord&) const = default;
};
struct EdgeRecord {
    Edge edge{};
    bool operator==(const EdgeRecord&) const = default;
};
struct MemoryRecord {
    Rank rank{};
    MemoryClass memory = MemoryClass::Other;
    TimeNs time = 0;
    Bytes value = 0;
    bool operator==(const MemoryRecord&) const = default;
};
struct GpuRecord { // GPUs are numbered in the order of these records, from 0
    Gpu gpu;
    bool operator==(const GpuRecord&) const = default;
};
struct GpuMemoryRecord {
    GpuId gpu{};
    TimeNs time = 0;
    GpuMemory memory{};
    bool operator==(const GpuMemoryRecord&) const = default;
};
struct StepRecord {
    StepSpan step{};
    bool operator==(const StepRecord&) const = default;
};
struct PauseRecord {
    Interval pause{};
    bool operator==(const PauseRecord&) const = default;
};
enum class NoteKind : std::uint8_t {
    Warning,     // what whoever uses the trace must know
    Information, // which way the run went: nothing is amiss
};
struct NoteRecord {
    std::string note;
    NoteKind kind = NoteKind::Warning;
    bool operator==(const NoteRecord&) const = default;
};
struct LostRecord {
    std::int64_t events = 0;
    bool operator==(const LostRecord&) const = default;
};
struct ClockRecord {
    ClockReading reading;
    bool operator==(const ClockRecord&) const = default;
};
// What a session says beside the trace; apply() passes over it. `json` is one object, its form belongs to the session.
struct SessionRecord {
    std::string json;
    bool operator==(const SessionRecord&) const = default;
};

using Record = std::variant<InfoRecord, LaneRecord, TextRecord, SliceRecord, EdgeRecord, MemoryRecord, StepRecord,
                            PauseRecord, NoteRecord, LostRecord, SessionRecord, ClockRecord, GpuRecord, GpuMemoryRecord>;

// Adds one record to the trace. An error names what does not fit (unknown lane, slice out of order): the record is then
// left out, and the caller goes on with the next.
Expected<void> apply(Trace& trace, const Record& record);

} // namespace stagecraft::traces
