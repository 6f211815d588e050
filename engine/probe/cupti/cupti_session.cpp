// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_session.h"

#include "engine/probe/cupti/clock_offset.h"
#include "engine/probe/cupti/cupti_api_cupti.h"
#include "engine/probe/cupti/cupti_error.h"
#include "engine/probe/cupti/recorded_kinds_cupti.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace stagecraft::runtime {

using traces::Error;
using traces::Expected;

namespace {

constexpr const char* kSubscriberName = "stagecraft";

// What CUPTI may come back to at any time, and threads that mark. It stays until the process ends.
struct Kept {
    Kept(std::shared_ptr<const CuptiLibrary> from, const BufferOptions& options) : buffers(options), marks(std::move(from)) {}
    ActivityBuffers buffers;
    WorkMarks marks;
    Kept* before = nullptr; // still reachable
};

// CUPTI's callbacks carry no pointer of ours. Read by them without a lock.
std::atomic<Kept*> newest{nullptr};

Kept& keep(std::unique_ptr<Kept> kept)
{
    Kept* raw = kept.release();
    raw->before = newest.load(std::memory_order_acquire);
    while (!newest.compare_exchange_weak(raw->before, raw, std::memory_order_acq_rel)) {
    }
    return *raw;
}

// Neither of the two may call CUPTI, or wait for what is held while CUPTI is called.
void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* mostRecords)
{
    Kept* kept = newest.load(std::memory_order_acquire);
    *buffer = kept != nullptr ? kept->buffers.handOut() : nullptr;
    *size = *buffer != nullptr ? kept->buffers.bufferBytes() : 0;
    *mostRecords = 0; // as many as there is room for
}

void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t validBytes)
{
    ActivityBuffers::giveBack(buffer, validBytes);
}

std::uint64_t CUPTIAPI monotonicTime()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

void CUPTIAPI ignoreCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

TimeNs beginOf(const DeviceActivity& activity)
{
    return std::visit(
        [](const auto& each) {
            if constexpr (requires { each.span; }) return each.span.begin;
            else if constexpr (requires { each.at; }) return each.at;
            else return std::numeric_limits<TimeNs>::max(); // has no time: a mark, which harms nobody
        },
        activity);
}

} // namespace

class CuptiSession::Recorder {
public:
    Recorder(std::shared_ptr<const CuptiLibrary> library, const Clock& clock, const CuptiOptions& options)
        : library_(std::move(library)), api_(library_->api()), clock_(clock), options_(options), decoder_(library_, options.readName)
    {
    }

    ~Recorder()
    {
        if (recording()) end(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        else if (anyEnabled_) api_.activityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        if (kept_ != nullptr) kept_->buffers.close();
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // All that has to be before the first kind is enabled.
    Expected<void> attach()
    {
        if (Expected<void> subscribed = subscribe(); !subscribed.ok()) return subscribed;
        std::uint8_t yes = 1;
        std::size_t size = sizeof yes;
        if (const CUptiResult result = api_.activitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes)) {
            note(cuptiError("handing CUPTI buffers that are zero", result).message); // it zeroes them itself, which costs time
        }
        if (const CUptiResult result = api_.activityRegisterTimestampCallback(&monotonicTime)) {
            if (!measureClock()) return cuptiError("reading of CUPTI's clock", result);
            note(fmt::format("Times of the device are put on the host's clock by a measured offset, wrong by up to {}: CUPTI did not take "
                             "the clock itself (error {})",
                             traces::formatDuration(offset_->error), static_cast<int>(result)));
        }
        kept_ = &keep(std::make_unique<Kept>(library_, options_.buffers));
        if (const CUptiResult result = api_.activityRegisterCallbacks(&request, &complete)) {
            return cuptiError("recording by CUPTI", result);
        }
        return {};
    }

    Expected<void> record(TraceLevel level, Take take)
    {
        assert(!recording());
        if (level < TraceLevel::Kernels) return {};
        if (Expected<void> enabled = enable(level); !enabled.ok()) return enabled;
        level_ = level;
        passOverTheRest();
        from_ = clock_.now();
        take_ = std::move(take);
        kept_->marks.begin(++run_ % kRuns);
        if (options_.flushEvery > 0) thread_ = std::jthread([this](const std::stop_token& stop) { flushUntil(stop); });
        return {};
    }

    void flush()
    {
        assert(!thread_.joinable());
        if (recording()) cycle(0, 0);
    }

    void end(std::uint32_t flag)
    {
        if (!recording()) return;
        kept_->marks.end();
        if (thread_.joinable()) {
            thread_.request_stop();
            thread_.join();
        }
        cycle(flag, options_.lateBuffers);
        take_ = nullptr;
        if (const std::int64_t failed = kept_->marks.failed() - failedMarks_; failed > 0) {
            note(fmt::format("{} actions could not be marked: their kernels are not attributed to them", failed));
            failedMarks_ += failed;
        }
    }

    [[nodiscard]] bool recording() const { return take_ != nullptr; }
    [[nodiscard]] bool recordsCalls() const { return calls_; }
    [[nodiscard]] std::uint32_t run() const { return run_ % kRuns; }
    [[nodiscard]] const WorkMarks& marks() const { return kept_->marks; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    Expected<void> subscribe()
    {
        std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> other{};
        CUpti_SubscriberParams params{};
        params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
        params.subscriberName = kSubscriberName;
        params.oldSubscriberName = other.data();
        params.oldSubscriberSize = other.size();
        CUpti_SubscriberHandle subscriber{};
        const CUptiResult result = api_.subscribe(&subscriber, &ignoreCallback, nullptr, &params);
        if (result == CUPTI_SUCCESS) return {};
        other.back() = '\0';
        return cuptiError("recording of kernels", result, other.data());
    }

    // Those that are missing for this level; none is ever disabled.
    Expected<void> enable(TraceLevel level)
    {
        for (std::size_t k = 0; k < kRecordedKinds.size(); ++k) {
            const RecordedKind& kind = kRecordedKinds[k];
            if (kind.from > level || asked_[k]) continue;
            const CUptiResult result = api_.activityEnable(kind.kind);
            if (result != CUPTI_SUCCESS) {
                Error error = cuptiError(fmt::format("recording of {}", kind.name), result);
                if (kind.needed) return error;
                note(std::move(error.message));
            } else {
                anyEnabled_ = true;
                if (kind.kind == CUPTI_ACTIVITY_KIND_RUNTIME) calls_ = true;
            }
            asked_[k] = true;
        }
        if (level < TraceLevel::Api && !calls_ && !std::exchange(askedForLaunches_, true)) enableLaunchingCalls();
        return {};
    }

    void enableLaunchingCalls()
    {
        CUptiResult refused = CUPTI_SUCCESS;
        const auto took = [&](CUptiResult result) {
            if (result == CUPTI_SUCCESS) calls_ = true;
            else refused = result;
        };
        for (const auto call : kLaunchingRuntimeCalls) took(api_.activityEnableRuntimeApi(call, 1));
        for (const auto call : kLaunchingDriverCalls) took(api_.activityEnableDriverApi(call, 1));
        if (refused != CUPTI_SUCCESS) note(cuptiError("recording of some calls that launch", refused).message);
    }

    // What was recorded before anybody asked.
    void passOverTheRest()
    {
        while (kept_->buffers.takeReady()) {
        }
        std::size_t dropped = 0;
        api_.activityGetNumDroppedRecords(nullptr, 0, &dropped);
        refused_ = kept_->buffers.refused();
    }

    void flushUntil(const std::stop_token& stop)
    {
        std::mutex mutex; // guards nothing: the wait ends by time or stop
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
            wake.wait_for(lock, stop, std::chrono::nanoseconds(options_.flushEvery), [] { return false; });
            if (!stop.stop_requested()) cycle(0, 0);
        }
    }

    // On the flush thread, or after it has ended. Nothing is held meanwhile.
    void cycle(std::uint32_t flag, TimeNs wait)
    {
        if (const CUptiResult result = api_.activityFlushAll(flag); result != CUPTI_SUCCESS && !std::exchange(flushFailed_, true)) {
            note(cuptiError("fetching of records", result).message);
        }
        if (wait > 0) kept_->buffers.waitUntilAllAreBack(std::chrono::nanoseconds(wait));
        // Whoever takes may run out of memory: that must not end the process.
        try {
            hand();
        } catch (const std::exception& error) {
            if (!std::exchange(takeFailed_, true)) note(fmt::format("What the device did is missing in parts: {}", error.what()));
        }
    }

    void hand()
    {
        ActivityBatch batch;
        batch.at = clock_.now();
        if (offset_ && batch.at - offsetAt_ >= options_.clockEvery) measureClock();
        const DecodeOptions decode{.level = level_, .clockOffset = offset_ ? offset_->offset : 0};
        while (const auto ready = kept_->buffers.takeReady()) decoder_.decode(ready->records(), decode, batch);
        std::erase_if(batch.activities, [this](const DeviceActivity& each) { return beginOf(each) < from_; });
        // Times of CUPTI's own clock, the wall's, come now and then although it has taken ours: decades ahead, one would spoil every axis.
        batch.counts.impossible += static_cast<std::int64_t>(std::erase_if(batch.activities, [&](const DeviceActivity& each) {
            return !std::holds_alternative<CorrelationActivity>(each) && beginOf(each) > batch.at + kAhead;
        }));
        std::size_t dropped = 0;
        if (api_.activityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
            batch.counts.dropped += static_cast<std::int64_t>(dropped);
        }
        const std::int64_t refused = kept_->buffers.refused();
        batch.counts.refusedBuffers += refused - std::exchange(refused_, refused);
        take_(std::move(batch));
    }

    bool measureClock()
    {
        const auto measured = measureOffset([this] { return clock_.now(); },
                                            [this]() -> std::optional<TimeNs> {
                                                std::uint64_t time = 0;
                                                if (api_.getTimestamp(&time) != CUPTI_SUCCESS) return std::nullopt;
                                                return static_cast<TimeNs>(time);
                                            });
        if (!measured) return false; // the last one goes on
        if (offset_ && std::abs(measured->offset - offset_->offset) > kClockSet && !std::exchange(clockWasSet_, true)) {
            note("The host's wall clock, which CUPTI goes by here, was set while it recorded: device times before and after may not fit");
        }
        offset_ = measured;
        offsetAt_ = clock_.now();
        return true;
    }

    void note(std::string text) { notes_.push_back(std::move(text)); }

    static constexpr TimeNs kAhead = 1'000'000'000;   // of what a device has done already
    static constexpr TimeNs kClockSet = 10'000'000; // in a second; no clock drifts so much

    const std::shared_ptr<const CuptiLibrary> library_;
    const CuptiApi& api_;
    const Clock& clock_;
    const CuptiOptions options_;
    ActivityDecoder decoder_;
    Kept* kept_ = nullptr;
    std::array<bool, kRecordedKinds.size()> asked_{};
    bool askedForLaunches_ = false;
    bool anyEnabled_ = false;
    bool calls_ = false;
    std::uint32_t run_ = 0;
    TraceLevel level_ = TraceLevel::HostSpans;
    TimeNs from_ = 0; // what began before is passed over
    Take take_;       // where it records
    std::optional<ClockOffset> offset_; // where CUPTI did not take the clock
    TimeNs offsetAt_ = 0;
    bool clockWasSet_ = false;
    bool flushFailed_ = false;
    bool takeFailed_ = false;
    std::int64_t refused_ = 0;
    std::int64_t failedMarks_ = 0;
    std::vector<std::string> notes_;
    std::jthread thread_;
};

CuptiSession::CuptiSession(std::unique_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}

CuptiSession::~CuptiSession() = default;

Expected<std::unique_ptr<CuptiSession>> CuptiSession::create(std::shared_ptr<const CuptiLibrary> library, const Clock& clock,
                                                             const CuptiOptions& options)
{
    auto recorder = std::make_unique<Recorder>(std::move(library), clock, options);
    if (Expected<void> attached = recorder->attach(); !attached.ok()) return attached.error();
    return std::unique_ptr<CuptiSession>(new CuptiSession(std::move(recorder)));
}

Expected<void> CuptiSession::record(TraceLevel level, Take take) { return recorder_->record(level, std::move(take)); }
void CuptiSession::flush() { recorder_->flush(); }
void CuptiSession::stop() { recorder_->end(0); }
bool CuptiSession::recording() const { return recorder_->recording(); }
bool CuptiSession::recordsCalls() const { return recorder_->recordsCalls(); }
std::uint32_t CuptiSession::run() const { return recorder_->run(); }
const WorkMarks& CuptiSession::marks() const { return recorder_->marks(); }
const std::vector<std::string>& CuptiSession::notes() const { return recorder_->notes(); }

} // namespace stagecraft::runtime
