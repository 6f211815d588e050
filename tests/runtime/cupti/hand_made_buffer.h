// SPDX-License-Identifier: Apache-2.0
//
// A buffer as CUPTI fills it, made by hand: records one behind the other, each at a multiple of eight bytes.
//
//   HandMadeBuffer buffer;
//   buffer.add(kernelRecord({.start = 100, .end = 200, .correlation = 5, .name = "gemm"}));
//   decoder.decode(buffer.records(), {}, batch);
#pragma once

#include <cstdint>
#include <cstring>
#include <cupti.h>
#include <span>
#include <vector>

namespace stagecraft::runtime {

struct RecordOptions {
    std::uint64_t start = 100;
    std::uint64_t end = 200;
    std::uint32_t correlation = 1;
    const char* name = nullptr;
    std::uint32_t device = 0;
    std::uint32_t stream = 7;
    std::uint64_t bytes = 4096;
    std::uint64_t graphNode = 0;
};

inline CUpti_ActivityKernel10 kernelRecord(const RecordOptions& o = {})
{
    CUpti_ActivityKernel10 r{};
    r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    r.start = o.start;
    r.end = o.end;
    r.deviceId = o.device;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    r.name = o.name;
    r.graphNodeId = o.graphNode;
    return r;
}

inline CUpti_ActivityMemcpy6 copyRecord(const RecordOptions& o = {}, std::uint8_t kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD)
{
    CUpti_ActivityMemcpy6 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.copyKind = kind;
    r.start = o.start;
    r.end = o.end;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    r.bytes = o.bytes;
    r.graphNodeId = o.graphNode;
    return r;
}

inline CUpti_ActivityMemcpyPtoP4 peerCopyRecord(const RecordOptions& o, std::uint32_t from, std::uint32_t to)
{
    CUpti_ActivityMemcpyPtoP4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    r.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    r.start = o.start;
    r.end = o.end;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    r.bytes = o.bytes;
    r.srcDeviceId = from;
    r.dstDeviceId = to;
    return r;
}

inline CUpti_ActivityMemset4 memsetRecord(const RecordOptions& o = {})
{
    CUpti_ActivityMemset4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    r.start = o.start;
    r.end = o.end;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    r.bytes = o.bytes;
    return r;
}

inline CUpti_ActivityAPI apiRecord(const RecordOptions& o = {}, CUpti_ActivityKind side = CUPTI_ACTIVITY_KIND_RUNTIME,
                                   CUpti_CallbackId call = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
{
    CUpti_ActivityAPI r{};
    r.kind = side;
    r.cbid = call;
    r.start = o.start;
    r.end = o.end;
    r.threadId = 42;
    r.correlationId = o.correlation;
    return r;
}

inline CUpti_ActivityExternalCorrelation correlationRecord(std::uint32_t correlation, std::uint64_t id,
                                                           CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
{
    CUpti_ActivityExternalCorrelation r{};
    r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.externalKind = kind;
    r.externalId = id;
    r.correlationId = correlation;
    return r;
}

inline CUpti_ActivitySynchronization2 syncRecord(const RecordOptions& o, CUpti_ActivitySynchronizationType type, std::uint32_t event = 0)
{
    CUpti_ActivitySynchronization2 r{};
    r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    r.type = type;
    r.start = o.start;
    r.end = o.end;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    r.cudaEventId = event;
    return r;
}

inline CUpti_ActivityMemory4 memoryRecord(const RecordOptions& o, CUpti_ActivityMemoryOperationType operation)
{
    CUpti_ActivityMemory4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    r.memoryOperationType = operation;
    r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    r.timestamp = o.start;
    r.bytes = o.bytes;
    r.address = 0x7f00'0000'1000;
    r.contextId = 1;
    r.streamId = o.stream;
    r.correlationId = o.correlation;
    return r;
}

inline CUpti_ActivityOverhead3 overheadRecord(const RecordOptions& o, CUpti_ActivityOverheadKind kind)
{
    CUpti_ActivityOverhead3 r{};
    r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    r.overheadKind = kind;
    r.start = o.start;
    r.end = o.end;
    r.correlationId = o.correlation;
    return r;
}

class HandMadeBuffer {
public:
    template <class Record>
    HandMadeBuffer& add(const Record& record)
    {
        static_assert(sizeof(Record) % 8 == 0);
        const std::size_t at = words_.size();
        words_.resize(at + sizeof(Record) / 8);
        std::memcpy(words_.data() + at, &record, sizeof(Record));
        return *this;
    }

    [[nodiscard]] std::size_t size() const { return words_.size() * 8; }
    [[nodiscard]] std::span<std::uint8_t> records() { return {reinterpret_cast<std::uint8_t*>(words_.data()), size()}; }

private:
    std::vector<std::uint64_t> words_;
};

} // namespace stagecraft::runtime
