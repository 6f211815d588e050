// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/cupti/fake_cupti.h"

#include "engine/probe/cupti/record_sizes_cupti.h"
#include "tests/runtime/cupti/hand_made_buffer.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace stagecraft::runtime {

namespace {

struct Buffer {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    std::size_t valid = 0;
    int records = 0;
    std::map<std::uint32_t, std::size_t> open; // work that has not ended, by correlation number: where its record lies
};

thread_local std::vector<std::uint64_t> marks; // of the calling thread

class Fake final : public FakeCupti {
public:
    static Fake& instance()
    {
        static Fake fake;
        return fake;
    }

    Fake() : thread_([this](const std::stop_token& stop) { completeUntil(stop); }) {}

    // --- what a test says ------------------------------------------------------------------------------------------

    void reset() override
    {
        release();
        const std::scoped_lock lock(mutex_, apiMutex_);
        // Buffers of an earlier test belong to nobody any more: they are given back, as CUPTI does in the end.
        for (auto& [thread, buffer] : current_) complete_(nullptr, 0, buffer.bytes, buffer.size, 0);
        current_.clear();
        failures_.clear();
        other_.clear();
        subscriber_.clear();
        clock_ = nullptr;
        timestamps_ = nullptr;
        enabled_.clear();
        runtimeCalls_.clear();
        driverCalls_.clear();
        next_ = 1;
        recordsPerBuffer_ = 1'000'000;
        dropped_ = 0;
        late_ = false;
        calls_.clear();
        flags_.clear();
        marks.clear();
    }

    void fail(const std::string& function, int code) override
    {
        const std::scoped_lock lock(mutex_);
        failures_[function] = code;
    }
    void attachOther(const std::string& name) override { other_ = name; }
    void setClock(std::uint64_t (*now)()) override { clock_ = now; }
    void setNextCorrelation(std::uint32_t correlation) override { next_ = correlation; }
    void setRecordsPerBuffer(int records) override { recordsPerBuffer_ = records; }
    void setLate(bool late) override { late_ = late; }
    void drop(std::size_t records) override
    {
        const std::scoped_lock lock(mutex_);
        dropped_ += records;
    }

    std::uint32_t launch(const FakeLaunch& launch) override
    {
        const std::scoped_lock api(apiMutex_); // CUPTI asks for a buffer while it holds locks of its own
        const std::uint32_t correlation = next_++;
        const bool calls = isOn(CUPTI_ACTIVITY_KIND_RUNTIME) || runtimeCalls_.contains(CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000);
        if (calls && isOn(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) && !marks.empty()) write(correlationRecord(correlation, marks.back()));
        if (calls) write(apiRecord({.start = launch.calledAt, .end = launch.calledAt + 5, .correlation = correlation}));
        const RecordOptions options{.start = launch.untimed ? 0 : launch.start,
                                    .end = launch.untimed ? 0 : launch.end,
                                    .correlation = correlation,
                                    .name = launch.name,
                                    .device = launch.device,
                                    .stream = launch.stream};
        const bool isOpen = launch.start == 0 && !launch.untimed;
        switch (launch.work) {
        case FakeWork::Kernel:
            if (isOn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) write(kernelRecord(options), isOpen ? correlation : 0);
            break;
        case FakeWork::Copy:
            if (isOn(CUPTI_ACTIVITY_KIND_MEMCPY)) write(copyRecord(options));
            break;
        case FakeWork::PeerCopy:
            if (isOn(CUPTI_ACTIVITY_KIND_MEMCPY2)) write(peerCopyRecord(options, 0, 1));
            break;
        case FakeWork::Memset:
            if (isOn(CUPTI_ACTIVITY_KIND_MEMSET)) write(memsetRecord(options));
            break;
        }
        return correlation;
    }

    void complete(std::uint32_t correlation, std::uint64_t start, std::uint64_t end) override
    {
        const std::scoped_lock api(apiMutex_);
        for (auto& [thread, buffer] : current_) {
            const auto at = buffer.open.find(correlation);
            if (at == buffer.open.end()) continue;
            CUpti_ActivityKernel10 record{};
            std::memcpy(&record, buffer.bytes + at->second, sizeof record);
            record.start = start;
            record.end = end;
            std::memcpy(buffer.bytes + at->second, &record, sizeof record);
            buffer.open.erase(at);
        }
    }

    void hold() override
    {
        const std::scoped_lock lock(mutex_);
        held_ = true;
    }
    void release() override
    {
        std::unique_lock lock(mutex_);
        held_ = false;
        wake_.notify_all();
        done_.wait(lock, [this] { return due_.empty() && !completing_; });
    }

    [[nodiscard]] std::vector<std::string> calls() const override
    {
        const std::scoped_lock lock(mutex_);
        return calls_;
    }
    [[nodiscard]] std::vector<std::uint32_t> flushFlags() const override
    {
        const std::scoped_lock lock(mutex_);
        return flags_;
    }
    [[nodiscard]] std::string subscriber() const override { return subscriber_; }

    // --- what the program calls ------------------------------------------------------------------------------------

    CUptiResult called(const char* function, const std::string& argument = {})
    {
        const std::scoped_lock lock(mutex_);
        calls_.push_back(argument.empty() ? function : std::string(function) + " " + argument);
        const auto failure = failures_.find(function);
        return failure == failures_.end() ? CUPTI_SUCCESS : static_cast<CUptiResult>(failure->second);
    }
    CUptiResult resultOf(const char* function) // of what is called too often to be listed
    {
        const std::scoped_lock lock(mutex_);
        const auto failure = failures_.find(function);
        return failure == failures_.end() ? CUPTI_SUCCESS : static_cast<CUptiResult>(failure->second);
    }

    CUptiResult subscribe(CUpti_SubscriberParams* params)
    {
        const CUptiResult result = called("cuptiSubscribe_v2");
        if (result != CUPTI_SUCCESS) return result;
        const std::string attached = !other_.empty() ? other_ : subscriber_;
        if (!attached.empty()) {
            if (params->oldSubscriberName != nullptr) {
                std::strncpy(params->oldSubscriberName, attached.c_str(), params->oldSubscriberSize);
            }
            return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        }
        subscriber_ = params->subscriberName;
        return CUPTI_SUCCESS;
    }

    CUptiResult registerCallbacks(CUpti_BuffersCallbackRequestFunc onRequest, CUpti_BuffersCallbackCompleteFunc onComplete)
    {
        const CUptiResult result = called("cuptiActivityRegisterCallbacks");
        if (result != CUPTI_SUCCESS) return result;
        const std::scoped_lock lock(mutex_, apiMutex_);
        request_ = onRequest;
        complete_ = onComplete;
        return result;
    }

    CUptiResult registerTimestamps(CUpti_TimestampCallbackFunc timestamps)
    {
        const CUptiResult result = called("cuptiActivityRegisterTimestampCallback");
        if (result == CUPTI_SUCCESS) timestamps_ = timestamps;
        return result;
    }

    CUptiResult timestamp(std::uint64_t* time)
    {
        if (const CUptiResult result = resultOf("cuptiGetTimestamp"); result != CUPTI_SUCCESS) return result;
        *time = timestamps_ != nullptr ? timestamps_() : clock_ != nullptr ? clock_() : 1;
        return CUPTI_SUCCESS;
    }

    CUptiResult enable(CUpti_ActivityKind kind)
    {
        const CUptiResult result = called("cuptiActivityEnable", std::to_string(kind));
        const std::scoped_lock api(apiMutex_);
        if (result == CUPTI_SUCCESS) enabled_.insert(kind);
        return result;
    }
    CUptiResult enableCall(const char* function, std::set<std::uint32_t>& calls, std::uint32_t call)
    {
        const CUptiResult result = called(function);
        const std::scoped_lock api(apiMutex_);
        if (result == CUPTI_SUCCESS) calls.insert(call);
        return result;
    }
    CUptiResult enableRuntimeCall(std::uint32_t call) { return enableCall("cuptiActivityEnableRuntimeApi", runtimeCalls_, call); }
    CUptiResult enableDriverCall(std::uint32_t call) { return enableCall("cuptiActivityEnableDriverApi", driverCalls_, call); }

    CUptiResult flushAll(std::uint32_t flag)
    {
        const CUptiResult result = called("cuptiActivityFlushAll");
        {
            const std::scoped_lock lock(mutex_);
            flags_.push_back(flag);
        }
        if (result != CUPTI_SUCCESS) return result;
        std::vector<Buffer> due;
        {
            const std::scoped_lock api(apiMutex_);
            for (auto buffer = current_.begin(); buffer != current_.end();) {
                if (buffer->second.open.empty() || flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) {
                    due.push_back(buffer->second);
                    buffer = current_.erase(buffer);
                } else {
                    ++buffer;
                }
            }
        }
        for (const Buffer& buffer : due) give(buffer);
        std::unique_lock lock(mutex_);
        if (!late_ && !held_) done_.wait(lock, [this] { return due_.empty() && !completing_; });
        return CUPTI_SUCCESS;
    }

    CUptiResult droppedRecords(std::size_t* dropped)
    {
        if (const CUptiResult result = called("cuptiActivityGetNumDroppedRecords"); result != CUPTI_SUCCESS) return result;
        const std::scoped_lock lock(mutex_);
        *dropped = std::exchange(dropped_, 0);
        return CUPTI_SUCCESS;
    }

    static CUptiResult next(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record)
    {
        std::uint8_t* at = buffer;
        if (*record != nullptr) {
            std::uint32_t kind = 0;
            std::memcpy(&kind, *record, sizeof kind);
            const auto* size = std::find_if(kRecordSizes.begin(), kRecordSizes.end(), [&](const RecordSize& each) { return each.kind == kind; });
            if (size == kRecordSizes.end()) return CUPTI_ERROR_INVALID_KIND;
            at = reinterpret_cast<std::uint8_t*>(*record) + size->bytes;
        }
        if (at + 8 > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
        *record = reinterpret_cast<CUpti_Activity*>(at);
        return CUPTI_SUCCESS;
    }

private:
    [[nodiscard]] bool isOn(CUpti_ActivityKind kind) const { return enabled_.contains(kind); }

    // With apiMutex_.
    template <class Record>
    void write(const Record& record, std::uint32_t openAs = 0)
    {
        Buffer& buffer = current_[std::this_thread::get_id()];
        if (buffer.bytes == nullptr) {
            std::size_t most = 0;
            request_(&buffer.bytes, &buffer.size, &most);
            if (buffer.bytes == nullptr) {
                current_.erase(std::this_thread::get_id());
                const std::scoped_lock lock(mutex_);
                ++dropped_;
                return;
            }
        }
        std::memcpy(buffer.bytes + buffer.valid, &record, sizeof record);
        if (openAs != 0) buffer.open[openAs] = buffer.valid;
        buffer.valid += sizeof record;
        ++buffer.records;
        const bool full = buffer.records >= recordsPerBuffer_ || buffer.valid + sizeof(CUpti_ActivityKernel10) > buffer.size;
        if (full && buffer.open.empty()) {
            give(buffer);
            current_.erase(std::this_thread::get_id());
        }
    }

    void give(const Buffer& buffer)
    {
        const std::scoped_lock lock(mutex_);
        due_.push_back(buffer);
        wake_.notify_all();
    }

    void completeUntil(const std::stop_token& stop)
    {
        std::unique_lock lock(mutex_);
        while (wake_.wait(lock, stop, [this] { return !due_.empty() && !held_; })) {
            const Buffer buffer = due_.front();
            due_.pop_front();
            completing_ = true;
            const auto callback = complete_;
            lock.unlock();
            callback(nullptr, 0, buffer.bytes, buffer.size, buffer.valid);
            lock.lock();
            completing_ = false;
            done_.notify_all();
        }
    }

    std::mutex apiMutex_; // held by CUPTI while it asks for a buffer, and while it looks for those to flush
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable done_;
    std::map<std::thread::id, Buffer> current_;
    std::deque<Buffer> due_;
    bool completing_ = false;
    bool held_ = false;
    bool late_ = false;
    std::map<std::string, int> failures_;
    std::string other_;
    std::string subscriber_;
    std::uint64_t (*clock_)() = nullptr;
    CUpti_TimestampCallbackFunc timestamps_ = nullptr;
    CUpti_BuffersCallbackRequestFunc request_ = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
    std::set<std::uint32_t> enabled_;
    std::set<std::uint32_t> runtimeCalls_;
    std::set<std::uint32_t> driverCalls_;
    std::uint32_t next_ = 1;
    int recordsPerBuffer_ = 1'000'000;
    std::size_t dropped_ = 0;
    std::vector<std::string> calls_;
    std::vector<std::uint32_t> flags_;
    std::jthread thread_; // the last: it uses all of the above
};

Fake& fake() { return Fake::instance(); }

} // namespace

} // namespace stagecraft::runtime

// --- what the library exports ----------------------------------------------------------------------------------------------

using stagecraft::runtime::fake;
using stagecraft::runtime::marks;

extern "C" {

stagecraft::runtime::FakeCupti& fakeCupti() { return fake(); }

CUptiResult cuptiGetVersion(uint32_t* version)
{
    *version = CUPTI_API_VERSION;
    return fake().resultOf("cuptiGetVersion");
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t, const char** name)
{
    *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaLaunchKernel_v7000" : "cuLaunchKernel";
    return fake().resultOf("cuptiGetCallbackName");
}
CUptiResult cuptiGetTimestamp(uint64_t* timestamp) { return fake().timestamp(timestamp); }
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, CUpti_SubscriberParams* params)
{
    return fake().subscribe(params);
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t*, void*)
{
    return fake().called("cuptiActivitySetAttribute", std::to_string(attribute));
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    return fake().registerCallbacks(request, complete);
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc timestamps)
{
    return fake().registerTimestamps(timestamps);
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return fake().enable(kind); }
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t) { return fake().enableRuntimeCall(call); }
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t) { return fake().enableDriverCall(call); }
CUptiResult cuptiActivityFlushAll(uint32_t flag) { return fake().flushAll(flag); }
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record)
{
    return stagecraft::runtime::Fake::next(buffer, valid, record);
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) { return fake().droppedRecords(dropped); }
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t id)
{
    const CUptiResult result = fake().resultOf("cuptiActivityPushExternalCorrelationId");
    if (result == CUPTI_SUCCESS) marks.push_back(id);
    return result;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t* last)
{
    if (marks.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (last != nullptr) *last = marks.back();
    marks.pop_back();
    return CUPTI_SUCCESS;
}

} // extern "C"
