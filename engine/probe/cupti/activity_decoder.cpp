// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_decoder.h"

#include "engine/probe/cupti/cupti_api_cupti.h"
#include "engine/probe/cupti/record_sizes_cupti.h"
#include "traces/store/bounds.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace stagecraft::runtime {

using traces::Bytes;
using traces::Interval;
using traces::TimeNs;

namespace {

enum class Read : std::uint8_t { Done, Cut };

CopyDirection directionOf(std::uint8_t copyKind)
{
    switch (copyKind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return CopyDirection::HostToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return CopyDirection::DeviceToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return CopyDirection::DeviceToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return CopyDirection::HostToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return CopyDirection::Array;
    default: return CopyDirection::Unknown;
    }
}

SyncKind syncOf(std::uint32_t type)
{
    switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return SyncKind::Event;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return SyncKind::StreamWait;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return SyncKind::Stream;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return SyncKind::Context;
    default: return SyncKind::Unknown;
    }
}

traces::MemoryPlace memoryPlaceOf(std::uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return traces::MemoryPlace::Pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return traces::MemoryPlace::Pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return traces::MemoryPlace::Managed;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return traces::MemoryPlace::Array;
    default: return traces::MemoryPlace::Device;
    }
}

OverheadKind overheadOf(std::uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER: return OverheadKind::DriverCompiler;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: return OverheadKind::BufferFlush;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: return OverheadKind::Instrumentation;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: return OverheadKind::Resource;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: return OverheadKind::ModuleLoading;
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: return OverheadKind::FunctionLoading;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: return OverheadKind::CommandBufferFull;
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: return OverheadKind::BufferRequest;
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT: return OverheadKind::UnifiedMemory;
    default: return OverheadKind::Unknown;
    }
}

// One buffer's walk. An enum field is read as a number: a broken buffer may hold any.
template <class NameOfCall>
class Walk {
public:
    Walk(const DecodeOptions& options, ActivityNames& names, NameOfCall nameOfCall, ActivityBatch& batch)
        : options_(options), names_(names), nameOfCall_(std::move(nameOfCall)), batch_(batch)
    {
    }

    // Cut: less is left of the buffer than the record is long.
    Read take(const std::uint8_t* record, std::size_t left)
    {
        std::uint32_t kind = 0;
        if (left < sizeof kind) return Read::Cut;
        std::memcpy(&kind, record, sizeof kind);
        switch (kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return with<CUpti_ActivityKernel10>(record, left, &Walk::kernel);
        case CUPTI_ACTIVITY_KIND_MEMCPY: return with<CUpti_ActivityMemcpy6>(record, left, &Walk::copy);
        case CUPTI_ACTIVITY_KIND_MEMCPY2: return with<CUpti_ActivityMemcpyPtoP4>(record, left, &Walk::peerCopy);
        case CUPTI_ACTIVITY_KIND_MEMSET: return with<CUpti_ActivityMemset4>(record, left, &Walk::memset);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return with<CUpti_ActivitySynchronization2>(record, left, &Walk::sync);
        case CUPTI_ACTIVITY_KIND_RUNTIME: return api(record, left, ApiSide::Runtime);
        case CUPTI_ACTIVITY_KIND_DRIVER: return api(record, left, ApiSide::Driver);
        case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API: return api(record, left, ApiSide::Internal);
        case CUPTI_ACTIVITY_KIND_MEMORY2: return with<CUpti_ActivityMemory4>(record, left, &Walk::memory);
        case CUPTI_ACTIVITY_KIND_OVERHEAD: return with<CUpti_ActivityOverhead3>(record, left, &Walk::overhead);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return with<CUpti_ActivityExternalCorrelation>(record, left, &Walk::correlation);
        default: ++batch_.counts.otherKinds; return Read::Done;
        }
    }

private:
    // The records are packed to eight bytes, and CUPTI begins each at a multiple of eight.
    template <class Record>
    Read with(const std::uint8_t* record, std::size_t left, void (Walk::*read)(const Record&))
    {
        if (left < sizeof(Record)) return Read::Cut;
        (this->*read)(*reinterpret_cast<const Record*>(record));
        return Read::Done;
    }

    [[nodiscard]] std::optional<TimeNs> time(std::uint64_t cupti) const
    {
        if (cupti > static_cast<std::uint64_t>(traces::kMostTime)) return std::nullopt;
        const TimeNs shifted = static_cast<TimeNs>(cupti) + options_.clockOffset;
        if (shifted > traces::kMostTime || shifted < -traces::kMostTime) return std::nullopt;
        return shifted;
    }

    std::optional<Interval> span(std::uint64_t start, std::uint64_t end)
    {
        if (start == 0 || end == 0) {
            ++batch_.counts.untimed;
            return std::nullopt;
        }
        const std::optional<TimeNs> from = time(start);
        const std::optional<TimeNs> to = time(end);
        if (!from || !to || *to < *from) {
            ++batch_.counts.impossible;
            return std::nullopt;
        }
        return Interval{*from, *to};
    }

    std::optional<Bytes> size(std::uint64_t bytes)
    {
        if (bytes <= static_cast<std::uint64_t>(traces::kMostBytes)) return static_cast<Bytes>(bytes);
        ++batch_.counts.impossible;
        return std::nullopt;
    }

    template <class Record>
    static DevicePlace placeOf(const Record& r)
    {
        return {.device = r.deviceId, .context = r.contextId, .stream = r.streamId};
    }

    void kernel(const CUpti_ActivityKernel10& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        if (!when) return;
        batch_.activities.push_back(KernelActivity{
            .span = *when,
            .place = placeOf(r),
            .correlation = r.correlationId,
            .name = names_.ofAddress(r.name),
            .grid = {r.gridX, r.gridY, r.gridZ},
            .block = {r.blockX, r.blockY, r.blockZ},
            .registers = r.registersPerThread,
            .sharedBytes = std::int64_t{r.staticSharedMemory} + r.dynamicSharedMemory,
            .ofGraph = r.graphNodeId != 0,
        });
    }

    void copy(const CUpti_ActivityMemcpy6& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        const std::optional<Bytes> bytes = when ? size(r.bytes) : std::nullopt;
        if (!bytes) return;
        batch_.activities.push_back(CopyActivity{.span = *when,
                                                 .place = placeOf(r),
                                                 .correlation = r.correlationId,
                                                 .direction = directionOf(r.copyKind),
                                                 .bytes = *bytes,
                                                 .ofGraph = r.graphNodeId != 0});
    }

    void peerCopy(const CUpti_ActivityMemcpyPtoP4& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        const std::optional<Bytes> bytes = when ? size(r.bytes) : std::nullopt;
        if (!bytes) return;
        batch_.activities.push_back(PeerCopyActivity{.span = *when,
                                                     .place = placeOf(r),
                                                     .correlation = r.correlationId,
                                                     .from = r.srcDeviceId,
                                                     .to = r.dstDeviceId,
                                                     .bytes = *bytes,
                                                     .ofGraph = r.graphNodeId != 0});
    }

    void memset(const CUpti_ActivityMemset4& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        const std::optional<Bytes> bytes = when ? size(r.bytes) : std::nullopt;
        if (!bytes) return;
        batch_.activities.push_back(MemsetActivity{.span = *when,
                                                   .place = placeOf(r),
                                                   .correlation = r.correlationId,
                                                   .bytes = *bytes,
                                                   .ofGraph = r.graphNodeId != 0});
    }

    void sync(const CUpti_ActivitySynchronization2& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        if (!when) return;
        batch_.activities.push_back(SyncActivity{.span = *when,
                                                 .context = r.contextId,
                                                 .stream = r.streamId,
                                                 .correlation = r.correlationId,
                                                 .sync = syncOf(number(&r.type)),
                                                 .event = r.cudaEventId});
    }

    Read api(const std::uint8_t* record, std::size_t left, ApiSide side)
    {
        if (left < sizeof(CUpti_ActivityAPI)) return Read::Cut;
        const auto& r = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
        if (const std::optional<Interval> when = span(r.start, r.end)) {
            batch_.activities.push_back(ApiActivity{.span = *when,
                                                    .correlation = r.correlationId,
                                                    .side = side,
                                                    .function = r.cbid,
                                                    .name = nameOfCall_(side, r.cbid),
                                                    .thread = r.threadId,
                                                    .result = r.returnValue});
        }
        return Read::Done;
    }

    void memory(const CUpti_ActivityMemory4& r)
    {
        if (options_.level < TraceLevel::Api) return;
        const std::uint32_t operation = number(&r.memoryOperationType);
        if (operation != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION && operation != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE) {
            ++batch_.counts.otherKinds;
            return;
        }
        if (r.timestamp == 0) {
            ++batch_.counts.untimed;
            return;
        }
        const std::optional<TimeNs> when = time(r.timestamp);
        const std::optional<Bytes> bytes = size(r.bytes);
        if (!when) ++batch_.counts.impossible;
        if (!when || !bytes) return;
        batch_.activities.push_back(
            MemoryActivity{.at = *when,
                           .place = placeOf(r),
                           .correlation = r.correlationId,
                           .operation = operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? MemoryOperation::Allocate
                                                                                                     : MemoryOperation::Release,
                           .memory = memoryPlaceOf(number(&r.memoryKind)),
                           .async = r.isAsync != 0,
                           .address = r.address,
                           .bytes = *bytes});
    }

    void overhead(const CUpti_ActivityOverhead3& r)
    {
        const std::optional<Interval> when = span(r.start, r.end);
        if (!when) return;
        batch_.activities.push_back(
            OverheadActivity{.span = *when, .correlation = r.correlationId, .overhead = overheadOf(number(&r.overheadKind))});
    }

    void correlation(const CUpti_ActivityExternalCorrelation& r)
    {
        if (number(&r.externalKind) != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) {
            ++batch_.counts.otherKinds; // of another library in this process
            return;
        }
        batch_.activities.push_back(CorrelationActivity{.correlation = r.correlationId, .id = r.externalId});
    }

    template <class Enum>
    static std::uint32_t number(const Enum* field)
    {
        static_assert(sizeof(Enum) == sizeof(std::uint32_t));
        std::uint32_t value = 0;
        std::memcpy(&value, field, sizeof value);
        return value;
    }

    const DecodeOptions& options_;
    ActivityNames& names_;
    NameOfCall nameOfCall_;
    ActivityBatch& batch_;
};

} // namespace

ActivityDecoder::ActivityDecoder(std::shared_ptr<const CuptiLibrary> library, NameReader readName)
    : library_(std::move(library)), names_(readName)
{
}

NameId ActivityDecoder::nameOfCall(ApiSide side, std::uint32_t function)
{
    if (side == ApiSide::Internal) return {};
    const auto [known, isNew] = calls_.try_emplace(std::uint64_t{function} << 1 | static_cast<std::uint64_t>(side == ApiSide::Driver));
    const char* name = nullptr;
    if (isNew && library_->api().getCallbackName(side == ApiSide::Driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API,
                                                 function, &name) == CUPTI_SUCCESS) {
        known->second = names_.ofText(callName(name));
    }
    return known->second;
}

void ActivityDecoder::decode(std::span<std::uint8_t> records, const DecodeOptions& options, ActivityBatch& batch)
{
    Walk walk(options, names_, [this](ApiSide side, std::uint32_t function) { return nameOfCall(side, function); }, batch);
    const auto next = library_->api().activityGetNextRecord;
    const std::uint8_t* const end = records.data() + records.size();
    // A launch leaves three records of 280 bytes in all.
    const std::size_t most = batch.activities.size() + records.size() / 64;
    if (most > batch.activities.capacity()) batch.activities.reserve(std::max(most, 2 * batch.activities.capacity()));
    const std::uint8_t* before = nullptr;
    CUpti_Activity* record = nullptr;
    while (!records.empty()) {
        const CUptiResult result = next(records.data(), records.size(), &record);
        if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) break;
        const auto* at = reinterpret_cast<const std::uint8_t*>(record);
        const bool goesOn = result == CUPTI_SUCCESS && at >= records.data() && at < end && (before == nullptr || at > before) &&
                            reinterpret_cast<std::uintptr_t>(at) % alignof(CUpti_ActivityKernel10) == 0;
        if (!goesOn || walk.take(at, static_cast<std::size_t>(end - at)) == Read::Cut) {
            ++batch.counts.brokenBuffers;
            break;
        }
        ++batch.counts.records;
        before = at;
    }
    std::vector<std::string> names = names_.takeNew();
    batch.newNames.insert(batch.newNames.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
}

} // namespace stagecraft::runtime
