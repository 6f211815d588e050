// SPDX-License-Identifier: Apache-2.0
//
// Whole runs on GPUs that are not there (fake_gpu/fake_gpu.h): the same results as on the CPU, every access in an order that events give,
// and times that are the device's.
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/cupti_on_gpus.h"
#include "tests/runtime/little_plan.h"
#include "tests/traces/temporary_folder.h"

#include "engine/runtime/gpu_places.h"
#include "engine/runtime/rank_work.h"
#include "engine/schedule/milestones.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/kernel_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::HasSubstr;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;
using traces::Rank;
using traces::Step;
using traces::TimeNs;

std::vector<CaseOnGpus> everyFamily()
{
    std::vector<CaseOnGpus> cases;
    for (const ScheduleFamily& family : scheduleFamilies())
        for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 1}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}})
            cases.push_back({familyCase(family, 4, mode), gpus});
    for (const ScheduleFamily& family : scheduleFamilies()) {
        cases.push_back({familyCase(family, 4, RunMode::Threads), 4});
        cases.back().family.precision = Precision::Bf16;
    }
    return cases;
}

class EveryFamilyOnGpus : public testing::TestWithParam<CaseOnGpus> {};

TEST_P(EveryFamilyOnGpus, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = planOf(GetParam().family);
    const Outcome onCpu = runPlan(plan);
    const Outcome outcome = runOn({.count = GetParam().gpus}, plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    // LibTorch takes other compositions for devices that it does not know, so some bits differ
    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
    const bool coarse = plan.run.precision == Precision::Bf16;
    EXPECT_LT(outcome.result->gradientMaxAbsDiff, coarse ? 5e-2 : 1e-5); // outputs of inference, which are larger than gradients, among them
    EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(coarse ? 1e-2F : 1e-4F), onCpu.result->loss));
    EXPECT_EQ(outcome.result->device, "cuda");
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    EXPECT_GT(FakeGpus::get().operations(), 100);
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilyOnGpus, testing::ValuesIn(everyFamily()), [](const testing::TestParamInfo<CaseOnGpus>& of) {
    return nameOf(of.param);
});

Plan small(const std::string& schedule, int ranks, int microbatches, RunMode mode = RunMode::Threads)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{16, 16, Activation::Relu});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = schedule, .ranks = ranks, .chunks = 1, .microbatches = microbatches, .customSchedule = {}};
    plan.run.mode = mode;
    plan.run.steps = 2;
    return plan;
}

// On clocks where an operation takes a microsecond and the host nothing.
TEST(DeviceRun, HasTheTimelineThatTheDevicesGive)
{
    Plan plan = small("1f1b", 4, 8);
    plan.run.steps = 1;
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runOn({.count = 4, .ofOperation = 1000}, plan, {.clock = &FakeGpus::get().clock()});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    // Every action begins when the one before it on its rank and the one that makes its input are over: nothing else takes time.
    std::map<std::string, traces::Interval> all;
    for (const traces::Lane& lane : outcome.trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == traces::LaneKind::Compute) all[traces::toText(lane.action(i))] = {lane.begin(i), lane.end(i)};
    const TimeNs start = all.at("0F0").begin;
    int compared = 0;
    for (const traces::Lane& lane : outcome.trace.lanes()) {
        if (lane.info().kind != traces::LaneKind::Compute) continue;
        TimeNs free = start;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const traces::Work work = lane.action(i).work;
            const bool forward = work.kind == traces::ActionKind::Forward;
            const auto maker = all.find(traces::toText(traces::makeAction(work.kind, traces::Stage{work.stage.value + (forward ? -1 : 1)}, work.microbatch)));
            const TimeNs input = work.kind != traces::ActionKind::Optimizer && maker != all.end() ? maker->second.end : start;
            EXPECT_EQ(lane.begin(i), std::max(free, input)) << traces::toText(lane.action(i));
            EXPECT_EQ((lane.end(i) - lane.begin(i)) % 1000, 0);
            free = lane.end(i);
            ++compared;
        }
    }
    EXPECT_EQ(compared, 4 * (8 + 8 + 1));
}

Plan inPairs()
{
    Plan plan = small("dualpipe-v", 2, 6);
    plan.pipeline.chunks = 2;
    plan.run.check = CheckMode::Off;
    return plan;
}

// The two of an overlapped pair run on two streams of their rank: both begin when what came before the pair is over and their input is
// there, and what follows waits for both.
TEST(DeviceRun, RunsTheTwoOfAPairSideBySide)
{
    Plan plan = inPairs();
    plan.run.steps = 1;
    const Outcome outcome = runOn({.count = 2, .ofOperation = 1000}, plan, {.clock = &FakeGpus::get().clock()});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    std::map<traces::Work, traces::Interval> all;
    for (const traces::Lane& lane : outcome.trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == traces::LaneKind::Compute) all[lane.action(i).work] = {lane.begin(i), lane.end(i)};
    const TimeNs start = all.at(traces::forward(traces::Stage{0}, traces::MicroBatch{0}).work).begin;
    const auto inputOf = [&](const traces::Work& work) {
        const bool forward = work.kind == traces::ActionKind::Forward;
        const bool backward = work.kind == traces::ActionKind::Backward || work.kind == traces::ActionKind::InputGrad;
        TimeNs there = start;
        for (const traces::ActionKind kind : {traces::ActionKind::Forward, traces::ActionKind::Backward, traces::ActionKind::InputGrad}) {
            if ((kind == traces::ActionKind::Forward) != forward || !(forward || backward)) continue;
            const auto maker = all.find(traces::makeAction(kind, traces::Stage{work.stage.value + (forward ? -1 : 1)}, work.microbatch).work);
            if (maker != all.end()) there = maker->second.end;
        }
        return there;
    };
    const Schedule schedule = generate({.name = "dualpipe-v", .ranks = 2, .chunks = 2, .microbatches = 6}).value();
    int pairs = 0;
    int together = 0;
    for (const Rank rank : {Rank{0}, Rank{1}}) {
        TimeNs free = start;
        for (const traces::Action& action : rankWork(schedule, rank)) {
            std::vector<traces::Interval> spans;
            forEachWork(action, [&](const traces::Work& work) {
                spans.push_back(all.at(work));
                EXPECT_EQ(spans.back().begin, std::max(free, inputOf(work))) << traces::toText(action);
            });
            for (const traces::Interval& span : spans) free = std::max(free, span.end);
            if (spans.size() < 2) continue;
            ++pairs;
            together += std::max(spans[0].begin, spans[1].begin) < std::min(spans[0].end, spans[1].end) ? 1 : 0; // the input of one may come late
        }
    }
    EXPECT_GT(pairs, 2);
    EXPECT_GT(together, pairs / 2);
}

// As many for each forward of a stage, whether it runs in a pair or alone.
TEST(DeviceRun, RecordsTheKernelsOfAPairBeneathTheOneThatLaunchedThem)
{
    CuptiOnGpus cupti;
    Plan plan = inPairs();
    plan.run.tracing = traces::TraceLevel::Kernels;
    const auto launch = [&](const char* name, int stream, traces::Interval when) {
        if (when.length() == 0) return; // a copy
        cupti.launch(name, 0, stream, when);
    };
    const Outcome outcome = runOn({.count = 2, .ofOperation = 1000, .onOperation = launch}, plan, {.clock = &FakeGpus::get().clock(), .cupti = cupti.session.get()});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    std::map<std::string, std::set<std::size_t>> counts; // by kind and stage
    std::size_t beside = 0;
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l) {
        const traces::Lane& lane = outcome.trace.lane(traces::LaneId{l});
        for (std::uint32_t i = 0; lane.info().kind == traces::LaneKind::Compute && i < lane.size(); ++i) {
            std::size_t count = 0;
            for (const traces::KernelGroup& group : traces::kernelsOf(outcome.trace, {traces::LaneId{l}, i})) count += group.count;
            if (lane.action(i).kind() != traces::ActionKind::Forward) continue;
            counts[std::to_string(lane.action(i).stage().value)].insert(count);
            beside += lane.info().depth > 0 ? 1 : 0;
        }
    }
    EXPECT_EQ(counts.size(), 4U);
    for (const auto& [stage, different] : counts) EXPECT_EQ(different.size(), 1U) << "stage " << stage;
    EXPECT_GT(beside, 4U);
}

// A library in CUPTI's place is told of each operation, as a driver would: on the thread that launches, with the device's times.
TEST(DeviceRun, RecordsKernelsBeneathTheActionsThatLaunchedThem)
{
    CuptiOnGpus cupti;
    Plan plan = small("1f1b", 2, 4);
    plan.run.check = CheckMode::Off;
    plan.run.tracing = traces::TraceLevel::Kernels;
    const auto launch = [&](const char* name, int stream, traces::Interval when) {
        cupti.launch(name, 0, stream, when);
    };
    const Outcome outcome = runOn({.count = 2, .ofOperation = 1000, .onOperation = launch}, plan, {.clock = &FakeGpus::get().clock(), .cupti = cupti.session.get()});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    const auto actionOf = [&](Rank rank, traces::Interval kernel) {
        const traces::Lane& lane = outcome.trace.lane(*outcome.trace.findLane(rank, traces::LaneKind::Compute));
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.begin(i) <= kernel.begin && kernel.end <= lane.end(i)) return traces::toText(lane.action(i));
        return std::string("no action");
    };
    std::map<std::string, int> kernels; // by action, of both steps
    for (const traces::Lane& lane : outcome.trace.lanes()) {
        if (!traces::holdsKernels(lane.info())) continue;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (lane.end(i) == lane.begin(i)) continue; // a copy, which takes nothing here
            EXPECT_THAT(outcome.trace.text(lane.text(i)), HasSubstr("aten::"));
            ++kernels[actionOf(lane.info().rank, {lane.begin(i), lane.end(i)})];
        }
    }
    EXPECT_EQ(std::count_if(outcome.trace.lanes().begin(), outcome.trace.lanes().end(), [](const traces::Lane& lane) { return traces::holdsGaps(lane.info()); }), 2);
    for (const auto& [rank, time] : traces::deviceTimes(outcome.trace)) { // the host is in no hurry here: it asks for an operation when the one before is over
        EXPECT_GT(time.kernels, 0);
        EXPECT_EQ(time.kernels + time.copies + time.gap(traces::StreamGapCause::Host) + time.notKnown, time.span) << "rank " << rank.value;
    }
    EXPECT_EQ(kernels.count("no action"), 0U);
    EXPECT_EQ(kernels.size(), 2U * (4 + 4 + 1)); // every action has some
    EXPECT_EQ(kernels["0F0"], kernels["0F3"]);
    EXPECT_FALSE(cupti.session->recording());
}

// What keeps CUPTI from it is said, and the run goes on.
TEST(DeviceRun, GoesOnWhereKernelsCannotBeRecorded)
{
    CuptiOnGpus cupti;
    Plan plan = small("1f1b", 2, 4);
    plan.run.tracing = traces::TraceLevel::Kernels;
    const auto notes = [&](const LocalSessionOptions& options, const Plan& run) {
        const Outcome outcome = runOn({.count = 1}, run, options);
        EXPECT_EQ(outcome.last, SessionState::Finished);
        std::string all;
        for (const std::string& note : outcome.trace.notes()) all += note + "\n";
        return all;
    };
    EXPECT_THAT(notes({.profilers = {"another tool has it"}, .cupti = cupti.session.get()}, plan), HasSubstr("kernels are not recorded: another tool has it"));
    Plan emulated = plan;
    emulated.run.mode = RunMode::Emulated;
    EXPECT_THAT(notes({.cupti = cupti.session.get()}, emulated), HasSubstr("kernels are not recorded: mode emulated has virtual times"));
    cupti.fake.fail("cuptiActivityEnable", 999);
    EXPECT_THAT(notes({.cupti = cupti.session.get()}, plan), HasSubstr("kernels are not recorded: "));
}

TEST(DeviceRun, SharesAGpuOrTakesOneForEachRankOrWhatThePlanSays)
{
    const Plan plan = small("1f1b", 4, 4);
    const auto places = [&](int count, std::vector<int> given = {}, RunMode mode = RunMode::Threads, int replicas = 1) {
        Plan asked = plan;
        asked.machine.replicas = replicas;
        asked.run.gpus = std::move(given);
        asked.run.mode = mode;
        FakeGpus::get().reset({.count = count});
        return gpuPlaces(asked, FakeGpus::get().source());
    };
    EXPECT_EQ(places(1).value(), (std::vector{0, 0, 0, 0}));
    EXPECT_EQ(places(2).value(), (std::vector{0, 0, 1, 1})); // neighbours together: fewer copies
    EXPECT_EQ(places(3).value(), (std::vector{0, 0, 1, 2}));
    EXPECT_EQ(places(4).value(), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(places(8).value(), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(places(4, {}, RunMode::Emulated).value(), (std::vector{0, 0, 0, 0}));
    EXPECT_EQ(places(4, {}, RunMode::Threads, 2).value(), (std::vector{0, 0, 1, 1, 2, 2, 3, 3})); // those of replica 0 first
    EXPECT_EQ(places(2, {}, RunMode::Threads, 2).value(), (std::vector{0, 0, 0, 0, 1, 1, 1, 1})); // a replica each
    EXPECT_EQ(places(2, {1, 0, kOnCpu, 1}).value(), (std::vector{1, 0, kOnCpu, 1}));
    EXPECT_THAT(places(2, {0, 1, 2, 0}).error().message, HasSubstr("there is no GPU 2: this machine has 2 GPUs"));
    EXPECT_THAT(places(0).error().message, HasSubstr("no GPU can be used: the test has none. Take the device cpu"));
}

// CUDA makes one where a thread that uses another GPU has it as its own, which takes half a gigabyte of one that may be somebody else's.
TEST(DeviceRun, HasNoContextOnAGpuThatNoRankIsOn)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = small("1f1b", 2, 4);
        plan.run.mode = mode;
        plan.machine.replicas = 2;
        plan.pipeline.offload = 0.5;
        plan.run.gpus = {1, 1, 1, 1};
        const Outcome outcome = runOn({.count = 2, .ofOperation = 100}, plan);
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        EXPECT_EQ(FakeGpus::get().contexts(), std::vector{1}) << runModeText(mode);
    }
}

// The first and the last on GPUs, one between them on the CPU: copies through the host, and between two GPUs.
TEST(DeviceRun, MixesGpusAndTheCpu)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = littleTransformer("1f1b", 4, 1, mode);
        plan.run.gpus = {0, kOnCpu, 1, 0};
        const Outcome outcome = runOn({.count = 2, .ofOperation = 10, .ofCopy = 100}, plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    }
}

// An input that was copied from another GPU is the rank's until its backward: GPipe's last rank holds all of them at once.
TEST(DeviceRun, BooksWhatItCopiesFromAnotherGpu)
{
    Plan plan = small("gpipe", 2, 4);
    plan.model.layers.back() = Linear{16, 16, Activation::None}; // which keeps nothing but its input
    plan.model.layers.resize(3);
    plan.model.layers.back() = Linear{16, 16, Activation::None};
    plan.partition = {2, 1};
    const auto most = [&](int gpus) {
        const Outcome outcome = runOn({.count = gpus}, plan);
        return runtime::most(outcome.trace, Rank{1}, traces::MemoryClass::Activations);
    };
    const traces::Bytes input = 2 * 16 * 4;
    EXPECT_GE(most(2) - most(1), 3 * input); // shared, they stay in the books of who made them
}

TEST(DeviceRun, LetsGoOfAllMemoryAndBooksItByRankAndClass)
{
    const int before = FakeGpus::get().blocks();
    const Plan plan = small("gpipe", 2, 4);
    const Outcome onCpu = runPlan(plan);
    const Outcome outcome = runOn({.count = 2}, plan);
    ASSERT_TRUE(outcome.result);
    EXPECT_EQ(FakeGpus::get().blocks(), before);
    for (const Rank rank : {Rank{0}, Rank{1}})
        for (const traces::MemoryClass memory : {traces::MemoryClass::Weights, traces::MemoryClass::Optimizer, traces::MemoryClass::Gradients})
            EXPECT_EQ(most(outcome.trace, rank, memory), most(onCpu.trace, rank, memory)) << traces::memoryClassText(memory);
}

// The line in the memory plot that no rank can get over.
TEST(DeviceRun, TellsWhatARankCanHoldWhereEachHasAGpuOfItsOwn)
{
    constexpr traces::Bytes kMemory = traces::Bytes{1} << 20;
    const Plan plan = small("gpipe", 2, 4);
    const auto limit = [&](int gpus, const Plan& run) { return runOn({.count = gpus, .memory = kMemory}, run).trace.info.memoryLimit; };
    EXPECT_EQ(limit(2, plan), kMemory);
    EXPECT_EQ(limit(1, plan), 0) << "what one may hold depends on the other";
    Plan limited = plan;
    limited.machine.memory = kMemory / 2;
    EXPECT_EQ(limit(2, limited), kMemory / 2) << "as the plan says";
}

TEST(DeviceRun, FailsAtTheActionThatHoldsMoreThanTheRankHas)
{
    Plan plan = small("gpipe", 2, 4);
    plan.machine.memory = 7500; // two layers' weights and what AdamW keeps of them are 6,544 bytes, their gradients 2,176
    plan.run.optimizer = OptimizerKind::AdamW;
    const Outcome outcome = runOn({.count = 1}, plan);
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("of memory and came to hold"));
}

TEST(DeviceRun, NamesTheForwardWhoseLossIsNone)
{
    Plan plan = small("1f1b", 2, 4);
    plan.run.optimizer = OptimizerKind::Sgd;
    plan.run.learningRate = 1e6;
    plan.run.steps = 40;
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runOn({.count = 2}, plan);
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, HasSubstr("1F0 failed in step"));
    EXPECT_THAT(outcome.failure->text, HasSubstr("the loss is"));
}

TEST(DeviceRun, TellsAFaultOfAnActionAndHoldsNothing)
{
    const int before = FakeGpus::get().blocks();
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{2}, .step = Step{1}};
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        const Outcome outcome = runOn({.count = 1}, small("1f1b", 2, 4, mode), {.fault = fault});
        EXPECT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, HasSubstr("1B2 failed in step 1 on rank 1"));
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

TEST(DeviceRun, TellsUtilisationByWhatTheRanksShare)
{
    const auto peak = [](int gpus, RunMode mode) {
        const Outcome outcome = runOn({.count = gpus, .ofOperation = 1000}, small("1f1b", 4, 4, mode));
        return outcome.result ? outcome.result->throughput.peakFlopsPerSecond : 0;
    };
    EXPECT_EQ(peak(4, RunMode::Threads), FakeGpus::kPeak);
    EXPECT_EQ(peak(2, RunMode::Threads), FakeGpus::kPeak / 2);
    EXPECT_EQ(peak(1, RunMode::Threads), FakeGpus::kPeak / 4);
    EXPECT_EQ(peak(1, RunMode::Emulated), FakeGpus::kPeak); // each action has it alone
}

// Its actions take so many times as long, by the device's time.
TEST(DeviceRun, SlowsAStageDownByWhatItsDeviceTakes)
{
    Plan plan = small("1f1b", 2, 4);
    plan.run.slowdown = {1, 3};
    const Outcome outcome = runOn({.count = 2, .ofOperation = 1000}, plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

// The device's actions are recorded when they are known to be over, and a wait of the host lies behind those that were asked for before it.
TEST(DeviceRun, HasTheWaitOfAStageThatIsHeldBehindItsActions)
{
    FakeGpus::get().reset({.count = 2});
    Plan plan = small("1f1b", 2, 8);
    plan.run.device = DeviceKind::Cuda;
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const std::unique_ptr<Session> session = makeLocalSession({.devices = &FakeGpus::get().source()});
    ASSERT_TRUE(session->start(plan).ok());
    Outcome outcome;
    for (int i = 0; i < 5; ++i) {
        const std::size_t steps = outcome.trace.steps().size();
        follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps; });
        session->trouble({.stage = 1, .held = true});
        while (session->waitForRecords(std::chrono::milliseconds(50))) gather(outcome, session->takeRecords());
        session->trouble({.stage = 1, .held = false});
    }
    session->stop();
    followToEnd(*session, outcome); // each record is taken by the trace, or gather() complains
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(DeviceRun, HasTheWaitForRoomBehindTheActionThatMadeTheTensor)
{
    Plan plan = small("gpipe", 3, 8);
    plan.run.handoff = HandoffKind::Ring;
    plan.run.handoffDepth = 1;
    plan.run.slowdown = {1, 1, 20};
    const Outcome outcome = runOn({.count = 3, .ofOperation = 100'000}, plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

// From a GPU to the CPU and back: the same weights, so nearly the same loss as in one go.
TEST(DeviceRun, GoesOnFromACheckpointOnAnotherDevice)
{
    const traces::test::TemporaryFolder folder;
    Plan plan = small("1f1b", 2, 4);
    plan.run.steps = 4;
    const Outcome whole = runPlan(plan);
    Plan first = plan;
    first.run.steps = 2;
    first.run.checkpoint = folder.file("kept").string();
    const Outcome begun = runOn({.count = 1}, first);
    ASSERT_TRUE(begun.result) << (begun.failure ? begun.failure->text : "");
    plan.run.resume = first.run.checkpoint;
    const Outcome onCpu = runPlan(plan);
    const Outcome onGpu = runOn({.count = 2}, plan);
    for (const Outcome* each : {&onCpu, &onGpu}) {
        ASSERT_TRUE(each->result) << (each->failure ? each->failure->text : "");
        EXPECT_THAT(each->result->loss, Pointwise(FloatNear(1e-4F), std::vector(whole.result->loss.end() - 2, whole.result->loss.end())));
    }
}

} // namespace
} // namespace stagecraft::runtime
