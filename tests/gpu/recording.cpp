// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/recording.h"

#include "engine/probe/clock.h"
#include "engine/probe/cupti/cupti_api_cupti.h"

#include <atomic>
#include <mutex>

namespace stagecraft::gpu {

using namespace runtime;

namespace {

constexpr std::size_t kMostKept = std::size_t{8} << 20; // bytes of buffers: enough for a fixture, and no more to carry

// CUPTI's callbacks carry no pointer of ours.
struct Ear {
    CuptiApi real;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    std::atomic<int> clockAnswer{-1};
    std::mutex mutex; // guards what follows
    std::vector<ActivityWords> buffers;
    std::size_t kept = 0;
};

Ear& ear()
{
    static auto* one = new Ear; // CUPTI's threads may come back while the process ends
    return *one;
}

void CUPTIAPI completeAndKeep(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size, std::size_t valid)
{
    Ear& own = ear();
    if (buffer != nullptr && valid > 0) {
        const std::lock_guard lock(own.mutex);
        if (own.kept + valid <= kMostKept) {
            own.buffers.push_back(wordsOf({buffer, valid}));
            own.kept += valid;
        }
    }
    own.complete(context, stream, buffer, size, valid); // it is zeroed from here on
}

CUptiResult CUPTIAPI registerAndListen(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    ear().complete = complete;
    return ear().real.activityRegisterCallbacks(request, &completeAndKeep);
}

CUptiResult CUPTIAPI askForClock(CUpti_TimestampCallbackFunc clock)
{
    const CUptiResult answer = ear().real.activityRegisterTimestampCallback(clock);
    ear().clockAnswer = answer;
    return answer;
}

CUptiResult CUPTIAPI refuseClock(CUpti_TimestampCallbackFunc) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI refuseCall(CUpti_CallbackId, std::uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }

} // namespace

const std::string& Recorded::nameOf(const KernelActivity& kernel) const
{
    static const std::string none;
    const std::size_t number = traces::index(kernel.name);
    return number == 0 || number > names.size() ? none : names[number - 1];
}

Expected<std::unique_ptr<Recording>> Recording::attach(const RecordingOptions& options)
{
    auto found = CuptiLibrary::open();
    if (!found.ok()) return found.error();
    const std::shared_ptr<const CuptiLibrary> real = found.value();
    ear().real = real->api();
    CuptiApi api = real->api();
    api.activityRegisterCallbacks = &registerAndListen;
    api.activityRegisterTimestampCallback = options.hostClock ? &askForClock : &refuseClock;
    if (!options.launchingCalls) {
        api.activityEnableRuntimeApi = &refuseCall;
        api.activityEnableDriverApi = &refuseCall;
    }
    auto recording = std::make_unique<Recording>();
    recording->library_ = std::make_shared<const CuptiLibrary>(api, real->origin(), real->version());
    auto session = CuptiSession::create(recording->library_, monotonicClock(),
                                        {.buffers = {.bufferBytes = static_cast<std::size_t>(options.bufferKib) << 10},
                                         .flushEvery = TimeNs{options.flushMs} * 1'000'000});
    if (!session.ok()) return session.error();
    recording->session_ = std::move(session).value();
    return recording;
}

Expected<void> Recording::start(TraceLevel level)
{
    return session_->record(level, [this](ActivityBatch batch) {
        if (!join_) join_.emplace(JoinOptions{.calls = session_->recordsCalls()});
        recorded_.names.insert(recorded_.names.end(), batch.newNames.begin(), batch.newNames.end());
        recorded_.counts += batch.counts;
        for (const DeviceActivity& each : batch.activities) join_->add(each, recorded_.activities);
        join_->flushed(batch.at, recorded_.activities);
        recorded_.seen.resize(recorded_.activities.size(), monotonicClock().now());
    });
}

const Recorded& Recording::stop()
{
    session_->stop();
    if (join_) {
        join_->finish(recorded_.activities);
        recorded_.seen.resize(recorded_.activities.size(), monotonicClock().now());
        recorded_.unattributed = join_->unattributed();
    }
    recorded_.notes = session_->notes();
    return recorded_;
}

std::optional<int> Recording::clockAnswer()
{
    const int answer = ear().clockAnswer;
    return answer < 0 ? std::nullopt : std::optional(answer);
}

Expected<void> Recording::save(const std::filesystem::path& to) const
{
    std::vector<ActivityWords> buffers;
    {
        const std::lock_guard lock(ear().mutex);
        buffers = ear().buffers;
    }
    return saveActivities(to, {.cupti = library_->version(), .buffers = std::move(buffers)}, *library_);
}

} // namespace stagecraft::gpu
