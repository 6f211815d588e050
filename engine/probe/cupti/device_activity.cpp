// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/device_activity.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

std::string_view copyDirectionText(CopyDirection direction)
{
    switch (direction) {
    case CopyDirection::Unknown: return "copy";
    case CopyDirection::HostToDevice: return "host to device";
    case CopyDirection::DeviceToHost: return "device to host";
    case CopyDirection::DeviceToDevice: return "device to device";
    case CopyDirection::HostToHost: return "host to host";
    case CopyDirection::Array: return "array copy";
    }
    return {};
}

std::string_view syncKindText(SyncKind kind)
{
    switch (kind) {
    case SyncKind::Unknown: return "wait";
    case SyncKind::Event: return "wait for event";
    case SyncKind::StreamWait: return "stream waits for event";
    case SyncKind::Stream: return "wait for stream";
    case SyncKind::Context: return "wait for device";
    }
    return {};
}

std::string_view overheadKindText(OverheadKind kind)
{
    switch (kind) {
    case OverheadKind::Unknown: return "overhead";
    case OverheadKind::DriverCompiler: return "driver compiles";
    case OverheadKind::BufferFlush: return "CUPTI flushes buffers";
    case OverheadKind::Instrumentation: return "CUPTI instruments";
    case OverheadKind::Resource: return "CUPTI makes resources";
    case OverheadKind::ModuleLoading: return "module is loaded";
    case OverheadKind::FunctionLoading: return "function is loaded";
    case OverheadKind::CommandBufferFull: return "command queue is full";
    case OverheadKind::BufferRequest: return "CUPTI asks for a buffer";
    case OverheadKind::UnifiedMemory: return "unified memory starts";
    }
    return {};
}

ActivityCounts& ActivityCounts::operator+=(const ActivityCounts& other)
{
    records += other.records;
    otherKinds += other.otherKinds;
    untimed += other.untimed;
    impossible += other.impossible;
    brokenBuffers += other.brokenBuffers;
    dropped += other.dropped;
    refusedBuffers += other.refusedBuffers;
    return *this;
}

std::vector<std::string> sentences(const ActivityCounts& counts)
{
    std::vector<std::string> out;
    if (counts.dropped > 0) {
        out.push_back(fmt::format("CUPTI dropped {} device records: kernels and copies are missing", counts.dropped));
    }
    if (counts.refusedBuffers > 0) {
        out.push_back(fmt::format("CUPTI asked {} times for a buffer when all were in use: allow it more of them, or record less",
                                  counts.refusedBuffers));
    }
    if (counts.untimed > 0) {
        out.push_back(fmt::format("{} device records came without begin or end and are not shown: the device had no room for "
                                  "their times, or they had not ended",
                                  counts.untimed));
    }
    if (counts.impossible > 0) {
        out.push_back(fmt::format("{} device records had times or sizes that cannot be and are not shown", counts.impossible));
    }
    if (counts.brokenBuffers > 0) {
        out.push_back(fmt::format("{} buffers of CUPTI could not be read to their end: what was behind is missing",
                                  counts.brokenBuffers));
    }
    return out;
}

} // namespace stagecraft::runtime
