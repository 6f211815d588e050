// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run.h"

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/probe/block_cache.h"
#include "engine/probe/device_blocks.h"
#include "engine/probe/matmul_peak.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/device_tracing.h"
#include "engine/runtime/executor_torch.h"
#include "engine/runtime/gpu_memory_torch.h"
#include "engine/runtime/gradient_buckets.h"
#include "engine/runtime/replica_part.h"
#include "engine/runtime/processes_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/run_result.h"
#include "engine/runtime/sample_torch.h"
#include "engine/schedule/shard.h"
#include "traces/analysis/merge_ranks.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace stagecraft::runtime {

using namespace engine;
using namespace traces;

namespace {

// The one of this process, in mode processes, among those of all replicas.
std::optional<Rank> ownRank(const Plan& plan, const LocalSessionOptions& options)
{
    if (plan.run.mode != RunMode::Processes) return std::nullopt;
    return Rank{options.group->rank()};
}

// One for each rank of each replica, and one beside it that sums gradients and gathers weights.
int threadsOf(const RunnablePlan& runnable)
{
    return runnable.plan.machine.replicas * runnable.schedule.ranks * (runnable.hasCollectives() ? 2 : 1);
}

constexpr std::string_view kMeasuring = "being measured";

// Of a rank: of the ranks that share a GPU each has a part of it, but for mode emulated, where each action has it alone.
double peakOf(const RunnablePlan& runnable, const DeviceSource* source, DeviceWatch* watch)
{
    double all = 0;
    const Precision precision = runnable.plan.run.precision;
    std::set<int> measured;
    for (std::size_t r = 0; r < runnable.gpus.size(); ++r) {
        const int gpu = runnable.gpus[r];
        const DeviceWatch::Wait wait(gpu == kOnCpu ? nullptr : watch, Rank{r}, kMeasuring);
        if (gpu == kOnCpu) all += matmulPeak(precision);
        else if (runnable.plan.run.mode == RunMode::Emulated || measured.insert(gpu).second) all += devicesOr(source).matmulPeak(gpu, precision);
    }
    return all / static_cast<double>(runnable.gpus.size());
}

// What this process measures of the sum over all ranks. Of the processes on one GPU the first measures it for all; of processors rank 0
// its own, for they count as alike.
double peakOfProcess(const RunnablePlan& runnable, const DeviceSource* source, Rank own, DeviceWatch* watch)
{
    const Precision precision = runnable.plan.run.precision;
    if (runnable.plan.run.device == DeviceKind::Cpu) return own == Rank{0} ? matmulPeak(precision) * runnable.schedule.ranks * runnable.plan.machine.replicas : 0;
    const int gpu = runnable.gpus[index(own)];
    if (gpu == kOnCpu) return matmulPeak(precision);
    const DeviceWatch::Wait wait(watch, own, kMeasuring);
    return firstOfItsGpu(runnable.places, own.value) ? devicesOr(source).matmulPeak(gpu, precision) : 0;
}

void giveBackGpuMemory(const DeviceSource* source)
{
    try {
        devicesOr(source).giveBackMemory();
    } catch (...) { // a device that has failed gives nothing back
    }
}

std::string faultOf(const RunnablePlan& runnable, const DeviceSource* source)
{
    std::vector<int> gpus = runnable.gpus;
    std::erase(gpus, kOnCpu);
    std::ranges::sort(gpus);
    gpus.erase(std::ranges::unique(gpus).begin(), gpus.end());
    return devicesOr(source).fault(gpus);
}

// What a rank can hold at the most where each has a GPU of its own: that of the smallest. 0: not known. Processes have theirs each on its own
// host, and know those of others not.
Bytes roomOnGpus(const RunnablePlan& runnable, const DeviceSource* source)
{
    const RunSpec& run = runnable.plan.run;
    if (run.device == DeviceKind::Cpu || run.mode == RunMode::Processes || std::ranges::count(runnable.gpus, kOnCpu) > 0) return 0;
    if (std::set<int>(runnable.gpus.begin(), runnable.gpus.end()).size() < runnable.gpus.size()) return 0;
    Bytes least = 0;
    for (const int gpu : runnable.gpus) {
        const Bytes memory = devicesOr(source).gpus()[static_cast<std::size_t>(gpu)].memory;
        least = least == 0 ? memory : std::min(least, memory);
    }
    return least;
}

struct Whereabouts {
    std::optional<Rank> own = {};   // of this process, among those of all replicas; none: all ranks are here
    OtherStages* others = nullptr; // not owned
    std::vector<c10::Device> devices = {}; // of each rank of all replicas; none: the CPU
    DeviceWatch* watch = nullptr;          // the same
};

std::vector<c10::Device> ofReplica(const std::vector<c10::Device>& devices, int replica, int ranks)
{
    if (devices.empty()) return {};
    const auto first = devices.begin() + static_cast<std::ptrdiff_t>(replica) * ranks;
    return {first, first + ranks};
}

// What concerns all GPUs is set where a run uses some.
std::vector<c10::Device> devicesOf(const RunnablePlan& runnable, const DeviceSource* given)
{
    const RunSpec& run = runnable.plan.run;
    if (run.device == DeviceKind::Cpu) return {};
    const DeviceSource& source = devicesOr(given);
    source.bookMemory({.taken = &deviceBlockTaken, .gone = &deviceBlockGone});
    at::globalContext().setAllowTF32CuBLAS(run.tf32);
    at::globalContext().setAllowTF32CuDNN(run.tf32);
    std::vector<c10::Device> devices;
    for (const int gpu : runnable.gpus)
        devices.push_back(gpu == kOnCpu ? c10::Device(c10::DeviceType::CPU)
                                        : c10::Device(static_cast<c10::DeviceType>(source.deviceType()), static_cast<c10::DeviceIndex>(gpu)));
    return devices;
}

Replicas buildReplicas(const RunnablePlan& r, const BatchSource& batches, const Clock& clock, const std::optional<InjectedFault>& fault, const Whereabouts& here,
                       const Preparation& preparation)
{
    Replicas replicas;
    const auto build = [&](int j, std::optional<Rank> only, const std::optional<InjectedFault>& itsFault) {
        replicas.push_back(std::make_unique<Pipeline>(
            Pipeline::Spec{r.plan, r.schedule, r.partition, batches, clock, itsFault, j, only, here.others, ofReplica(here.devices, j, r.schedule.ranks), here.watch},
            preparation));
    };
    if (here.own) build(here.own->value / r.schedule.ranks, Rank{here.own->value % r.schedule.ranks}, fault);
    if (here.own && *here.own != Rank{0}) return replicas;
    for (int j = static_cast<int>(replicas.size()); j < r.plan.machine.replicas; ++j) // rank 0 asks the others for theirs
        build(j, here.own ? std::optional(Pipeline::kNoRank) : std::nullopt, j == 0 ? fault : std::nullopt);
    return replicas;
}

// As RankDevice::useHere(), for the thread that builds the stages and lets go of them.
void useOneOf(const std::vector<c10::Device>& devices, std::optional<Rank> own)
{
    if (devices.empty()) return; // all are on the CPU
    const auto used = own ? devices.begin() + own->value : std::find_if(devices.begin(), devices.end(), [](c10::Device each) { return !each.is_cpu(); });
    if (used != devices.end() && !used->is_cpu()) c10::impl::VirtualGuardImpl(used->type()).setDevice(*used);
}

// Clipping goes by the whole gradient, so then every replica gets all of it. Of stages that no rank here holds there are none.
std::optional<ReplicaSums> sumsOf(const RunnablePlan& r, Pipeline& any)
{
    if (!r.hasCollectives()) return std::nullopt;
    const bool divides = dividesUpdate(r.plan) && !r.schedule.inference();
    const Bytes ofBucket = reducesGradients(r.schedule) ? std::numeric_limits<Bytes>::max() : std::max<Bytes>(r.plan.machine.bucketBytes, 1);
    std::vector<std::vector<GradientBucket>> buckets;
    for (int s = 0; s < r.schedule.stages(); ++s) {
        buckets.emplace_back();
        for (const Flow flow : r.schedule.flows())
            if (buckets.back().empty() && any.holds({flow, Stage{s}})) buckets.back() = gradientBuckets(any.stage({flow, Stage{s}}).parameterSizes(), ofBucket);
    }
    return ReplicaSums({.schedule = r.schedule,
                        .replicas = r.plan.machine.replicas,
                        .update = divides ? ReplicaSums::Update::Divided : ReplicaSums::Update::Whole,
                        .result = divides && r.plan.run.clipNorm == 0 ? ReplicaSums::Result::OwnPart : ReplicaSums::Result::All,
                        .precision = r.plan.run.precision,
                        .buckets = std::move(buckets)});
}

} // namespace

Run::Run(RunnablePlan runnable, const LocalSessionOptions& options, RecordInbox& inbox, std::atomic<SessionState>& state)
    : runnable_(std::move(runnable)), options_(options), clock_(options.clock ? *options.clock : monotonicClock()),
      state_(state), inbox_(inbox), recorder_(runnable_.schedule, options.ringCapacity, inbox, runnable_.plan.machine.replicas, ownRank(runnable_.plan, options_)),
      control_(threadsOf(runnable_), clock_,
               {.state = [this](SessionState s) { hear(s); },
                .paused = [this](Interval pause) { recorder_.post(PauseRecord{pause}); }}),
      trouble_(runnable_.schedule.stages(), runnable_.plan.run.slowdown)
{
    enterState(SessionState::Preparing);
    if (ownRank(runnable_.plan, options_))
        processes_.emplace(*options_.group, ProcessRun::Parts{control_, recorder_, trouble_, clock_, [this] { enterState(SessionState::Paused); }});
    TraceInfo info = openingInfo(runnable_);
    if (info.memoryLimit == 0) info.memoryLimit = roomOnGpus(runnable_, options_.devices);
    recorder_.start(info);
    for (const std::string& note : runnable_.notes) recorder_.post(NoteRecord{note});
    for (const std::string& text : runnable_.information) recorder_.post(NoteRecord{text, NoteKind::Information});
    if (runnable_.plan.run.device == DeviceKind::Cuda)
        watch_.emplace(runnable_.plan.machine.replicas * runnable_.schedule.ranks, monotonicClock(), options_.devicePatience.count());
    controller_ = std::jthread([this] { execute(); });
    if (watch_) lookout_ = std::jthread([this](const std::stop_token& stop) { lookAtDevices(stop); });
}

void Run::begin()
{
    start_.store(Start::Given);
    start_.notify_all();
}

Run::~Run()
{
    Start awaited = Start::Awaited;
    if (start_.compare_exchange_strong(awaited, Start::Denied)) {
        if (processes_) processes_->close();
        start_.notify_all();
    }
    control_.stop();
    if (controller_.joinable()) controller_.join();
}

void Run::pause()
{
    if (processes_) processes_->pause();
    else control_.pause();
}

void Run::resume()
{
    if (processes_) processes_->resume();
    else control_.resume();
}

void Run::trouble(const StageTrouble& trouble)
{
    if (processes_) processes_->trouble(trouble);
    else trouble_.set(trouble);
}

void Run::stop()
{
    {
        const std::lock_guard lock(stateMutex_);
        if (over_) return;
        if (state_.exchange(SessionState::Stopping) != SessionState::Stopping) say(StateMessage{SessionState::Stopping});
    }
    control_.stop();
}

void Run::enterState(SessionState state)
{
    const std::lock_guard lock(stateMutex_);
    if (over_ || state_.load() == SessionState::Stopping) return;
    state_.store(state);
    say(StateMessage{state});
}

void Run::hear(SessionState state)
{
    if (processes_ && state == SessionState::Paused) return processes_->rested();
    if (processes_) processes_->wentOn();
    enterState(state);
}

void Run::say(const SessionMessage& message) { recorder_.post(SessionRecord{writeMessage(message)}); }

void Run::execute()
{
    start_.wait(Start::Awaited);
    if (start_.load() == Start::Denied) {
        recorder_.finish();
        ended_.store(true);
        return ended_.notify_all();
    }
    try {
        trainSteps();
    } catch (const PreparationStopped&) { // the control knows
    } catch (...) {
        control_.fail(describeFailure(phase_, std::current_exception()));
    }
    if (processes_) processes_->close();
    if (!claimEnd()) return;
    BlockCache::trim(); // an idle session holds no memory
    if (watch_) {
        giveBackGpuMemory(options_.devices);
        if (control_.failure()) spent_ = faultOf(runnable_, options_.devices);
    }
    end();
}

bool Run::claimEnd()
{
    const std::lock_guard lock(stateMutex_);
    return !std::exchange(over_, true);
}

void Run::end()
{
    recorder_.finish();

    std::vector<Record> closing;
    try {
        closing = closingRecords();
    } catch (...) { // the records of all ranks together take memory, and the run's own are safe
        control_.fail(describeFailure("putting the run together", std::current_exception()));
    }
    const auto add = [&](const SessionMessage& message) { closing.push_back(SessionRecord{writeMessage(message)}); };
    SessionState last = SessionState::Finished;
    if (std::optional<FailureMessage> failure = control_.failure()) {
        if (!spent_.empty()) failure->text += " " + spentNote(spent_);
        add(*failure);
        last = SessionState::Failed;
    } else if (control_.ending()) {
        last = SessionState::Stopped;
    }
    add(StateMessage{last});
    inbox_.push(std::move(closing));
    state_.store(last); // after the records: who sees it can take them all
    ended_.store(true);
    ended_.notify_all();
}

void Run::lookAtDevices(const std::stop_token& stop)
{
    const auto pace = std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(watch_->patience()) / 4, std::chrono::seconds(1));
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
        stopped.wait_for(lock, stop, pace, [] { return false; });
        if (control_.ending()) watch_->runEnds();
        if (const std::optional<DeviceWatch::Awaited> silent = watch_->silent()) return giveUp(*silent);
    }
}

// Its rank waits where nobody can wake it, and with it the controller: the run ends without them. They keep all that they may use when the
// GPU should answer after all, and the process must not wait for it at its own end, where CUDA would.
void Run::giveUp(const DeviceWatch::Awaited& silent)
{
    control_.fail(silentGpuFailure(silent, runnable_.gpus[index(silent.rank) % runnable_.gpus.size()], watch_->patience()));
    if (processes_) processes_->close();
    if (!claimEnd()) return;
    static_cast<void>(::on_exit(
        [](int status, void*) {
            std::fflush(nullptr);
            ::_exit(status);
        },
        nullptr));
    givenUp_ = true;
    spent_ = "one does not answer";
    end();
}

bool Run::settle()
{
    if (!watch_ || start_.load() != Start::Given) return true;
    control_.stop();
    ended_.wait(false);
    if (!givenUp_) return true;
    controller_.detach(); // nobody will wait for them
    lookout_.detach();
    return false;
}

std::vector<Record> Run::closingRecords()
{
    std::vector<Record> closing;
    std::optional<RunTotals> ofAll;
    if (const std::optional<Trace> whole = gatherTrace()) {
        closing = recordsOf(*whole);
        ofAll.emplace(runnable_.schedule.stages());
        for (const Record& record : closing) ofAll->take(record);
    }
    if (options_.fault && options_.fault->kind == InjectedFault::Kind::ExceptionAtEnd) throw std::runtime_error("a fault put in at the end");
    const bool speaks = !processes_ || processes_->rank() == 0;
    if (!speaks || givenUp_ || (control_.failure() && check_ != GradientCheck::Failed)) return closing;
    const Expected<RunResult> result = summarizeRun({.plan = runnable_.plan,
                                                     .schedule = runnable_.schedule,
                                                     .partition = runnable_.partition,
                                                     .totals = ofAll ? *ofAll : recorder_.totals(),
                                                     .outputs = outputs_,
                                                     .check = check_,
                                                     .maxAbsDiff = maxAbsDiff_,
                                                     .peakFlops = peakFlops_,
                                                     .text = text_,
                                                     .stageActivations = stageActivations_,
                                                     .peakActivations = peakActivations_});
    if (result.ok()) closing.push_back(SessionRecord{writeMessage(ResultMessage{result.value()})});
    return closing;
}

std::optional<Trace> Run::gatherTrace()
{
    if (!processes_) return std::nullopt;
    std::vector<Trace> parts;
    for (const std::string& journal : processes_->gather(recorder_.takeJournal())) {
        Expected<Trace> part = readJournal(journal, "the part of rank " + std::to_string(parts.size()));
        if (!part.ok()) return std::nullopt;
        parts.push_back(std::move(part).value());
    }
    if (parts.empty()) return std::nullopt; // rank 0 has them, or one is lost and the others keep theirs
    Expected<Trace> whole = mergeRanks(parts);
    if (!whole.ok()) return std::nullopt;
    return std::move(whole).value();
}

void Run::trainSteps()
{
    installTaggingAllocator();
    // autograd's own threads are for the devices that there were at the first backward of the process
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    at::set_num_threads(1);
    const RunnablePlan& r = runnable_;
    DeviceTracing tracing(r, options_, recorder_); // before anything touches a GPU
    const std::vector<c10::Device> devices = devicesOf(r, options_.devices);
    const std::optional<Rank> own = ownRank(r.plan, options_);
    useOneOf(devices, own);
    const Preparation preparation(control_, [this](const PreparationPiece& piece) {
        say(preparationProgress(piece));
        if (watch_) watch_->goesOn();
    });
    const BatchSource batches(r.plan, r.data);
    std::optional<engine::CheckpointLock> lock;
    if (!r.plan.run.checkpoint.empty() && (!processes_ || processes_->rank() == 0)) {
        engine::Expected<engine::CheckpointLock> taken = engine::CheckpointLock::take(r.plan.run.checkpoint);
        if (!taken.ok()) throw std::runtime_error(taken.error().message);
        lock.emplace(std::move(taken).value());
    }
    DeviceWatch* const watch = watch_ ? &*watch_ : nullptr;
    peakFlops_ = processes_ ? peakOfProcess(r, options_.devices, Rank{processes_->rank()}, watch) : peakOf(r, options_.devices, watch);
    std::optional<ReportedStages> others;
    if (processes_) others.emplace(*processes_);
    const Replicas replicas = buildReplicas(r, batches, clock_, options_.fault, {own, others ? &*others : nullptr, devices, watch}, preparation);
    if (r.resume) {
        phase_ = "going on from the checkpoint";
        for (const auto& pipeline : replicas) restore(*r.resume, r.partition, *pipeline);
    }
    const std::optional<ReplicaSums> sums = sumsOf(r, *replicas.front());
    GradientChecker checker(r.plan, r.schedule, r.partition, batches, r.resume.get());
    StepKeeper keeper(r.plan, replicas, checker, recorder_, control_, batches, others ? &*others : nullptr);
    if (!own || *own == Rank{0}) keeper.prepare(Step{r.firstStep()}, preparation);
    if (control_.ending()) return;
    const TextTokens* text = r.data && !own ? r.data->text() : nullptr; // a sample goes through all stages
    if (text) text_ = TextLearned{.entropy = text->entropy(), .before = sampleText(replicas, r.plan, *text), .after = {}};

    enterState(SessionState::Running);
    phase_ = "running the steps";
    std::vector<Execution> executions;
    const int first = own ? own->value / r.schedule.ranks : 0; // of the replicas here
    for (std::size_t j = 0; j < (own ? 1 : replicas.size()); ++j)
        executions.push_back({r.plan, r.schedule, *replicas[j], recorder_, control_, keeper, clock_,
                              options_.cpuClock ? *options_.cpuClock : threadCpuClock(), r.costs, trouble_, r.firstStep(), tracing.marks(), sums ? &*sums : nullptr,
                              first + static_cast<int>(j), watch, r.ncclSums});
    std::optional<GpuMemorySampler> memory(std::in_place, r, options_.devices, recorder_, clock_, watch);
    switch (r.plan.run.mode) {
    case RunMode::Threads: runOnThreads(executions); break;
    case RunMode::Emulated: runEmulated(executions); break;
    case RunMode::Processes:
        runAsProcess(executions.front(), *processes_, *others, {peakFlops_, r.nccl.get()});
        peakFlops_ = (peakFlops_ + others->peakFlops()) / (r.schedule.ranks * r.plan.machine.replicas); // rank 0 tells it
        break;
    }
    memory.reset();
    tracing.end();
    if (keeper.completed() > 0) outputs_ = {outputShape(replicas)};
    if (text) text_->after = sampleText(replicas, r.plan, *text);
    stageActivations_ = replicas.front()->stageActivations();
    peakActivations_ = replicas.front()->peakActivations();
    check_ = checker.outcome().result;
    maxAbsDiff_ = checker.outcome().maxAbsDiff;
}

} // namespace stagecraft::runtime
