// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI records of LibTorch's work: whose it is, when it was, when it is seen, and what that costs.
#include "engine/probe/cupti/work_scope.h"
#include "engine/runtime/rank_device_torch.h"
#include "tests/gpu/probe_report.h"
#include "tests/gpu/recording.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

namespace stagecraft::gpu {

using namespace runtime;
using traces::ActionKind;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

TimeNs now() { return monotonicClock().now(); }

// Its figures as the table has them: times in microseconds.
double us(TimeNs time) { return static_cast<double>(time) / 1e3; }

template <class T>
T quantile(std::vector<T> values, double part)
{
    if (values.empty()) return {};
    std::ranges::sort(values);
    return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

std::unique_ptr<Recording> attached(const RecordingOptions& options)
{
    auto recording = Recording::attach(options);
    if (!recording.ok()) throw std::runtime_error(recording.error().message);
    return std::move(recording).value();
}

void start(Recording& recording, TraceLevel level)
{
    if (const Expected<void> started = recording.start(level); !started.ok()) throw std::runtime_error(started.error().message);
}

void save(const Recording& recording, const ProbeOptions& options, ProbeReport& report)
{
    if (options.activities.empty()) return;
    const Expected<void> saved = recording.save(options.activities);
    report.expect(saved.ok(), saved.ok() ? "" : saved.error().message);
}

void tell(const Recorded& all, ProbeReport& report)
{
    report.figure("records", all.counts.records);
    report.figure("lost", all.counts.lost() + all.counts.refusedBuffers);
    report.expect(all.counts.brokenBuffers == 0 && all.counts.impossible == 0, "there are records that cannot be read");
    for (std::size_t i = 0; i < all.notes.size(); ++i) report.figure("note " + std::to_string(i + 1), all.notes[i]);
}

// Two matrix products with their gradients, on a rank's stream.
struct LittleStage {
    RankDevice device;
    at::Tensor first, second;

    explicit LittleStage(std::int64_t width) : device(kGpu, monotonicClock())
    {
        const auto here = device.enter();
        first = at::randn({width, width}, kGpu).requires_grad_();
        second = at::randn({width, width}, kGpu).requires_grad_();
    }
    [[nodiscard]] at::Tensor forward(const at::Tensor& x) const { return at::matmul(at::relu(at::matmul(x, first)), second); }
    static void backward(const at::Tensor& y) { torch::autograd::backward({y}, {at::ones_like(y)}); }
};

// The engine's threads do so: else a backward runs on LibTorch's thread for the device.
void backwardOnThisThread(bool here) { c10::AutogradState::get_tls_state().set_multithreading_enabled(!here); }

constexpr std::int64_t kWidth = 512;
constexpr int kMicroBatches = 4;

// A forward and a backward for each micro-batch; the input comes from the host, and something is set to zero.
void pass(LittleStage& stage, Stage number, const WorkMarks* marks)
{
    const auto here = stage.device.enter();
    for (int i = 0; i < kMicroBatches; ++i) {
        at::Tensor y;
        {
            const WorkScope scope(marks, Step{1}, traces::forward(number, MicroBatch{i}).work);
            const at::Tensor x = at::ones({64, kWidth}).to(kGpu);
            y = stage.forward(x + at::zeros_like(x));
        }
        const WorkScope scope(marks, Step{1}, traces::backward(number, MicroBatch{i}).work);
        LittleStage::backward(y);
    }
}

struct MarkedKernels {
    int kernels = 0;
    int marked = 0;
    std::map<std::pair<int, ActionKind>, int> byStageAndKind;
};

MarkedKernels markedKernels(const Recorded& all)
{
    MarkedKernels counted;
    for (const JoinedActivity& each : all.activities) {
        if (!std::holds_alternative<KernelActivity>(each.activity)) continue;
        ++counted.kernels;
        const auto marked = unpackWork(each.work);
        if (!marked) continue;
        ++counted.marked;
        ++counted.byStageAndKind[{marked->work.stage.value, marked->work.kind}];
    }
    return counted;
}

template <class Activity>
void tellMarked(const Recorded& all, const std::string& what, ProbeReport& report)
{
    int count = 0;
    int marked = 0;
    for (const JoinedActivity& each : all.activities) {
        if (!std::holds_alternative<Activity>(each.activity)) continue;
        ++count;
        if (each.work != kNoWork) ++marked;
    }
    report.figure(what, count);
    report.figure(what + " with a mark", marked);
}

// (1) Do kernels, copies and memsets come with their mark where the calls are not recorded, where those that launch are, where all are?
void marks(const ProbeOptions& options, ProbeReport& report)
{
    const bool alone = options.variant == "kernels-alone";
    const auto recording = attached({.launchingCalls = !alone});
    backwardOnThisThread(true);
    LittleStage stage(kWidth);
    pass(stage, Stage{0}, nullptr);
    stage.device.drain();
    start(*recording, options.variant == "all-calls" ? TraceLevel::Api : TraceLevel::Kernels);
    pass(stage, Stage{0}, &recording->marks());
    stage.device.drain();
    const Recorded& all = recording->stop();
    tellMarked<KernelActivity>(all, "kernels", report);
    tellMarked<CopyActivity>(all, "copies", report);
    tellMarked<MemsetActivity>(all, "memsets", report);
    tell(all, report);
    const MarkedKernels counted = markedKernels(all);
    report.expect(counted.kernels >= kMicroBatches * 6, "there are only " + std::to_string(counted.kernels) + " kernels");
    std::set<std::pair<int, ActionKind>> actions;
    for (const JoinedActivity& each : all.activities)
        if (const auto marked = unpackWork(each.work)) actions.insert({marked->work.microbatch.value, marked->work.kind});
    report.figure("actions with kernels", actions.size());
    // Kernels alone are asked for to learn it: no level relies on it.
    if (!alone) {
        report.expect(counted.marked == counted.kernels, "kernels have no mark");
        report.expect(actions.size() == std::size_t{2} * kMicroBatches, "an action has no kernel");
    }
    save(*recording, options, report);
}

// (5) Two stages, each with its thread: whose are the kernels of a backward?
void backwardMarks(const ProbeOptions& options, ProbeReport& report)
{
    const bool here = options.variant == "own-thread";
    const auto recording = attached({});
    LittleStage first(kWidth);
    LittleStage second(kWidth);
    std::array<LittleStage*, 2> stages{&first, &second};
    const auto bothPass = [&](const WorkMarks* marks) {
        std::vector<std::jthread> threads;
        for (int s = 0; s < 2; ++s) {
            threads.emplace_back([&, s] {
                backwardOnThisThread(here);
                pass(*stages[static_cast<std::size_t>(s)], Stage{s}, marks);
                stages[static_cast<std::size_t>(s)]->device.drain();
            });
        }
    };
    bothPass(nullptr);
    start(*recording, TraceLevel::Kernels);
    bothPass(&recording->marks());
    const Recorded& all = recording->stop();
    const MarkedKernels counted = markedKernels(all);
    report.figure("kernels", counted.kernels);
    report.figure("kernels with a mark", counted.marked);
    for (int s = 0; s < 2; ++s) {
        const auto of = [&](ActionKind kind) {
            const auto found = counted.byStageAndKind.find({s, kind});
            return found == counted.byStageAndKind.end() ? 0 : found->second;
        };
        const int forwards = of(ActionKind::Forward);
        const int backwards = of(ActionKind::Backward);
        report.figure("stage " + std::to_string(s) + " forward", forwards);
        report.figure("stage " + std::to_string(s) + " backward", backwards);
        // three products, and what begins them. With LibTorch's own threads it is asked for to learn it
        if (here) report.expect(backwards >= 4 * kMicroBatches, "backward kernels of stage " + std::to_string(s) + " are missing");
    }
    if (here) report.expect(counted.marked == counted.kernels, "kernels have no mark");
    tell(all, report);
    save(*recording, options, report);
}

// What one cycle of the spinning kernel takes, by the host's clock.
double cyclesOfAMillisecond(const RankDevice& device)
{
    constexpr std::int64_t kCycles = 20'000'000;
    const auto here = device.enter();
    at::cuda::sleep(1000);
    device.drain();
    const TimeNs before = now();
    at::cuda::sleep(kCycles);
    device.drain();
    return static_cast<double>(kCycles) / (static_cast<double>(now() - before) / 1e6);
}

// (2) Is the host's clock taken, do kernels lie where the host says that they must, and do the engine's events say the same?
void clocks(const ProbeOptions& options, ProbeReport& report)
{
    const bool own = options.variant != "measured";
    // As in a process whose first run on GPUs was not recorded: there is a context before CUPTI is asked for anything.
    if (options.variant == "late") RankDevice(kGpu, monotonicClock()).warmUp();
    const auto recording = attached({.hostClock = own});
    RankDevice device(kGpu, monotonicClock());
    const auto cycles = static_cast<std::int64_t>(2 * cyclesOfAMillisecond(device));
    start(*recording, TraceLevel::Kernels);
    struct Look {
        TimeNs before, after;
        DeviceMark begin, end;
    };
    std::vector<Look> looks;
    for (int i = 0; i < 60; ++i) {
        if (i % 20 == 0) device.beginStep();
        const auto here = device.enter();
        Look look{.before = now(), .after = 0, .begin = device.mark(), .end = nullptr};
        at::cuda::sleep(cycles);
        look.end = device.mark();
        device.drain();
        look.after = now();
        looks.push_back(std::move(look));
    }
    const Recorded& all = recording->stop();
    std::vector<traces::Interval> kernels;
    for (const JoinedActivity& each : all.activities)
        if (const auto* kernel = std::get_if<KernelActivity>(&each.activity); kernel != nullptr && all.nameOf(*kernel).find("spin") != std::string::npos)
            kernels.push_back(kernel->span);
    std::ranges::sort(kernels, {}, &traces::Interval::begin);
    if (const auto answer = Recording::clockAnswer()) report.figure("CUPTI's answer to the clock", *answer);
    report.expect(!own || Recording::clockAnswer() == 0, "CUPTI did not take the host's clock");
    tell(all, report);
    if (kernels.size() != looks.size()) {
        report.expect(false, std::to_string(looks.size()) + " kernels were launched, " + std::to_string(kernels.size()) + " recorded");
        return;
    }
    std::vector<TimeNs> outside, begins, ends, lengths;
    for (std::size_t i = 0; i < looks.size(); ++i) {
        outside.push_back(std::max({TimeNs{0}, looks[i].before - kernels[i].begin, kernels[i].end - looks[i].after}));
        begins.push_back(looks[i].begin->time() - kernels[i].begin);
        ends.push_back(looks[i].end->time() - kernels[i].end);
        lengths.push_back(std::abs((looks[i].end->time() - looks[i].begin->time()) - (kernels[i].end - kernels[i].begin)));
    }
    const auto most = [](const std::vector<TimeNs>& of) { return *std::ranges::max_element(of); };
    report.figure("outside the host's bounds, most us", us(most(outside)));
    report.figure("event - kernel at begin, median us", us(quantile(begins, 0.5)));
    report.figure("event - kernel at end, median us", us(quantile(ends, 0.5)));
    report.figure("event - kernel in length, median us", us(quantile(lengths, 0.5)));
    report.figure("event - kernel in length, 95 % us", us(quantile(lengths, 0.95)));
    // The begin of a step is known to the length of one wait for the device; a length has no such error
    report.expect(most(outside) <= (own ? 50'000 : 200'000), "kernels lie where the host's clock says that they were not");
    report.expect(std::abs(quantile(begins, 0.5)) <= 200'000 && std::abs(quantile(ends, 0.5)) <= 200'000, "events and kernels are apart");
    report.expect(quantile(lengths, 0.5) <= 30'000, "events and kernels do not agree on how long a kernel took");
    save(*recording, options, report);
}

// (3) How long a kernel takes to be seen while another one runs on, launched by another thread as by another stage, and by the same thread.
void latency(const ProbeOptions& options, ProbeReport& report)
{
    const auto recording = attached({.bufferKib = options.bufferKib, .flushMs = options.flushMs});
    LittleStage stage(kWidth);
    RankDevice other(kGpu, monotonicClock());
    const double cycles = cyclesOfAMillisecond(other);
    constexpr double kSpinMs = 700;
    constexpr TimeNs kWork = 500'000'000;
    at::Tensor x;
    const auto small = [&] {
        const auto here = stage.device.enter();
        const at::NoGradGuard noGrad;
        if (!x.defined()) x = at::randn({64, kWidth}, kGpu);
        static_cast<void>(stage.forward(x));
    };
    const auto spin = [&] {
        const auto here = other.enter();
        at::cuda::sleep(static_cast<std::int64_t>(kSpinMs * cycles));
    };
    small();
    stage.device.drain();
    start(*recording, TraceLevel::Kernels);
    std::vector<traces::Interval> phases;
    for (const bool sameThread : {false, true}) {
        if (sameThread) spin();
        else std::jthread(spin).join();
        const TimeNs begin = now();
        while (now() - begin < kWork) {
            const WorkScope scope(&recording->marks(), Step{1}, traces::forward(Stage{0}, MicroBatch{0}).work);
            small();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        stage.device.drain();
        phases.push_back({begin, now()});
        other.drain();
    }
    const Recorded& all = recording->stop();
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
        std::vector<TimeNs> waits;
        for (std::size_t i = 0; i < all.activities.size(); ++i) {
            const auto* kernel = std::get_if<KernelActivity>(&all.activities[i].activity);
            if (kernel == nullptr || kernel->span.begin < phases[phase].begin || kernel->span.end > phases[phase].end) continue;
            waits.push_back(all.seen[i] - kernel->span.end);
        }
        const std::string which = phase == 0 ? "other thread's long kernel" : "own long kernel";
        report.figure(which + ": kernels", waits.size());
        report.figure(which + ": seen after, median ms", us(quantile(waits, 0.5)) / 1e3);
        report.figure(which + ": seen after, 95 % ms", us(quantile(waits, 0.95)) / 1e3);
        report.expect(!waits.empty(), "no kernel was recorded");
        if (phase == 0 && options.limitMs > 0)
            report.expect(us(quantile(waits, 0.95)) / 1e3 <= options.limitMs, "kernels are seen later than " + std::to_string(std::lround(options.limitMs)) + " ms after they ended");
    }
    tell(all, report);
    save(*recording, options, report);
}

// (4) The same work at each level, bound by launches and bound by the device.
void overhead(const ProbeOptions& options, ProbeReport& report)
{
    const bool cupti = options.variant == "kernels" || options.variant == "api";
    const std::unique_ptr<Recording> recording = cupti ? attached({}) : nullptr;
    const WorkMarks* const marks = cupti ? &recording->marks() : nullptr;
    const bool events = options.variant != "host";
    backwardOnThisThread(true);
    LittleStage small(64);
    LittleStage large(4096);
    const auto step = [&](LittleStage& stage, std::int64_t width, int actions) {
        stage.device.beginStep();
        const auto here = stage.device.enter();
        const at::Tensor x = at::randn({width, width}, kGpu);
        stage.device.drain();
        std::vector<DeviceMark> kept;
        const auto mark = [&] {
            if (events) kept.push_back(stage.device.mark());
        };
        const TimeNs begin = now();
        for (int i = 0; i < actions; ++i) {
            mark();
            at::Tensor y;
            {
                const WorkScope scope(marks, Step{1}, traces::forward(Stage{0}, MicroBatch{i}).work);
                y = stage.forward(x);
            }
            mark();
            const WorkScope scope(marks, Step{1}, traces::backward(Stage{0}, MicroBatch{i}).work);
            LittleStage::backward(y);
        }
        mark();
        stage.device.drain();
        return now() - begin;
    };
    const auto median = [&](LittleStage& stage, std::int64_t width, int actions, int steps) {
        std::vector<TimeNs> times;
        for (int i = 0; i < steps; ++i) times.push_back(step(stage, width, actions));
        return us(quantile(times, 0.5));
    };
    step(small, 64, 8);
    step(large, 4096, 2);
    if (cupti) start(*recording, options.variant == "api" ? TraceLevel::Api : TraceLevel::Kernels);
    report.figure("64 small micro-batches, us", median(small, 64, 64, 31));
    report.figure("8 large micro-batches, us", median(large, 4096, 8, 31));
    if (cupti) tell(recording->stop(), report);
}

} // namespace

std::vector<ProbePart> recordingParts()
{
    return {
        {"marks", "kernels-alone|launching-calls|all-calls", marks},
        {"clock", "host-clock|measured|late", clocks},
        {"latency", "", latency},
        {"overhead", "host|events|kernels|api", overhead},
        {"backward-marks", "own-thread|torch-thread", backwardMarks},
    };
}

} // namespace stagecraft::gpu
