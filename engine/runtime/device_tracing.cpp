// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_tracing.h"

#include "engine/transport/process_group.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

using engine::RunMode;
using traces::NoteRecord;
using traces::TraceLevel;

namespace {

// NCCL launches each exchange from a thread of its own, and each thread fills a buffer of its own: more of them, and smaller.
constexpr BufferOptions kBuffersWithNccl{.bufferBytes = std::size_t{32} << 10, .most = 2048};

// Kept until the process ends, as CUPTI cannot be put away. The first run's buffers stay.
traces::Expected<CuptiSession*> ofProcess(const BufferOptions& buffers)
{
    static traces::Expected<std::unique_ptr<CuptiSession>>* const made = [&] {
        const auto library = CuptiLibrary::open();
        using Made = traces::Expected<std::unique_ptr<CuptiSession>>;
        return library.ok() ? new Made(CuptiSession::create(library.value(), monotonicClock(), {.buffers = buffers})) : new Made(library.error());
    }();
    if (!made->ok()) return made->error();
    return made->value().get();
}

// Of a process of one rank all that is not marked is that rank's.
RankPlacement placementOf(const RunnablePlan& runnable, const ProcessGroup* group, std::uint32_t run)
{
    const engine::Schedule& schedule = runnable.schedule;
    RankPlacement placement{
        .run = run, .stageToRank = schedule.stageToRank, .upStageToRank = schedule.upStageToRank, .ranksPerReplica = schedule.ranks};
    for (std::size_t r = runnable.gpus.size(); r-- > 0;) // of several ranks the first
        if (runnable.gpus[r] != engine::kOnCpu) placement.deviceToRank[static_cast<std::uint32_t>(runnable.gpus[r])] = traces::Rank{r};
    for (const std::vector<traces::Action>& list : schedule.order)
        for (const traces::Action& action : list)
            if (action.kind() == traces::ActionKind::Overlap)
                placement.beside.insert(traces::makeAction(traces::ActionKind::Forward, action.stage(), action.microbatch(), action.work.flow).work);
    if (group != nullptr) placement.otherwise = traces::Rank{group->rank()};
    return placement;
}

} // namespace

DeviceTracing::DeviceTracing(const RunnablePlan& runnable, const LocalSessionOptions& options, RunRecorder& recorder) : recorder_(recorder)
{
    const engine::RunSpec& run = runnable.plan.run;
    if (run.device != engine::DeviceKind::Cuda || run.tracing < TraceLevel::Kernels) return;
    const traces::Expected<void> begun = begin(runnable, options);
    if (!begun.ok())
        recorder_.post(NoteRecord{fmt::format("kernels are not recorded: {}. Times of actions are those of the GPU's events", begun.error().message)});
}

traces::Expected<void> DeviceTracing::begin(const RunnablePlan& runnable, const LocalSessionOptions& options)
{
    const engine::RunSpec& run = runnable.plan.run;
    if (run.mode == RunMode::Emulated) return traces::Error{"mode emulated has virtual times, and kernels real ones; take mode threads"};
    if (!options.profilers.empty()) return traces::Error{options.profilers.front()};
    CuptiSession* session = options.cupti;
    if (session == nullptr) {
        const traces::Expected<CuptiSession*> own = ofProcess(runnable.nccl || runnable.ncclSums != nullptr ? kBuffersWithNccl : BufferOptions());
        if (!own.ok()) return own.error();
        session = own.value();
    }
    if (auto recording = session->record(run.tracing, [this](ActivityBatch batch) { recorder_.post(std::move(batch)); }); !recording.ok())
        return recording.error();
    recorder_.watchDevice(placementOf(runnable, run.mode == RunMode::Processes ? options.group : nullptr, session->run()), {.calls = session->recordsCalls(), .level = run.tracing});
    known_ = session->notes().size();
    session_ = session;
    return {};
}

void DeviceTracing::end()
{
    if (session_ == nullptr) return;
    session_->stop();
    const std::vector<std::string>& notes = session_->notes();
    for (std::size_t i = known_; i < notes.size(); ++i) recorder_.post(NoteRecord{notes[i]});
    session_ = nullptr;
}

} // namespace stagecraft::runtime
