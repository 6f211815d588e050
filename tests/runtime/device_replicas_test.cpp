// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel replicas on GPUs that are not there: the sums that the CPU makes, on streams beside the computing.
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/cupti_on_gpus.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/replica_plans.h"

#include "engine/runtime/replica_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using traces::ActionKind;
using traces::Bytes;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;
using traces::Step;
using traces::TimeNs;

std::vector<CaseOnGpus> everySynchronousFamily()
{
    std::vector<CaseOnGpus> cases;
    for (const ScheduleFamily& family : scheduleFamilies())
        for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 1}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}})
            if (!family.asynchronous) cases.push_back({familyCase(family, 4, mode), gpus});
    return cases;
}

class ReplicatedFamilyOnGpus : public testing::TestWithParam<CaseOnGpus> {};

TEST_P(ReplicatedFamilyOnGpus, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = replicated(planOf(GetParam().family), 2);
    const Outcome onCpu = runPlan(plan);
    const Outcome outcome = runOn({.count = GetParam().gpus}, plan);
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-5);
    EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    EXPECT_EQ(outcome.trace.lostEvents(), 0);
    for (int r = 0; r < 2 * plan.pipeline.ranks; ++r)
        for (const MemoryClass memory : {MemoryClass::Weights, MemoryClass::Optimizer, MemoryClass::Gradients})
            EXPECT_EQ(most(outcome.trace, Rank{r}, memory), most(onCpu.trace, Rank{r}, memory)) << "rank " << r << " " << traces::memoryClassText(memory);
    EXPECT_EQ(collectivesOf(outcome.trace), collectivesOf(onCpu.trace));
}

INSTANTIATE_TEST_SUITE_P(All, ReplicatedFamilyOnGpus, testing::ValuesIn(everySynchronousFamily()), [](const testing::TestParamInfo<CaseOnGpus>& of) {
    return nameOf(of.param);
});

// One order of addition, whoever comes first and wherever they are.
TEST(DeviceReplicas, SumToTheBitAsTheCpuDoes)
{
    for (const char* schedule : {"1f1b", "zb-h1"})
        for (const int replicas : {2, 3}) {
            const Outcome onCpu = runPlan(linear(schedule, 2, replicas));
            ASSERT_TRUE(onCpu.result);
            EXPECT_EQ(onCpu.result->gradientCheck, GradientCheck::Bitwise);
            for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
                for (const int gpus : {1, 2, 4})
                    for (const Bytes bucket : {1, 1'500, 1 << 20}) {
                        Plan plan = linear(schedule, 2, replicas, mode);
                        plan.machine.bucketBytes = bucket;
                        const Outcome outcome = runOn({.count = gpus}, plan);
                        ASSERT_TRUE(outcome.result) << saidBy(outcome);
                        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << outcome.result->gradientMaxAbsDiff;
                        EXPECT_EQ(outcome.result->loss, onCpu.result->loss) << schedule << ", " << replicas << " on " << gpus;
                        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
                    }
        }
}

struct Timed {
    traces::Interval span;
    traces::Action action;
};

std::vector<Timed> ofLane(const traces::Trace& trace, Rank rank, LaneKind kind)
{
    std::vector<Timed> all;
    const Lane& lane = trace.lane(*trace.findLane(rank, kind));
    for (std::size_t i = 0; i < lane.size(); ++i) all.push_back({{lane.begin(i), lane.end(i)}, lane.action(i)});
    return all;
}

// An operation takes 1 µs and a copy to another GPU 5, and nothing else takes time. Of two members the first has the first half of a
// weight of 256 values, the second the other half and a bias of 16, which is less than can be divided (kPartUnit). A layer's bias comes
// first, and its weight is ready with it.
//
//              bias                                weight
//   member 0   |  waits 6  | takes the sum 5 |     copies 5 | adds 1 | takes 5 |
//   member 1   copies 5 | adds 1 | copies 5 | adds 1 |    waits 5    | takes 5 |
TEST(DeviceReplicas, SumOnStreamsOfTheirOwnBesideTheBackward)
{
    static_assert(kPartUnit == 16);
    Plan plan = linear("1f1b", 2, 2);
    plan.run.steps = 1;
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runOn({.count = 4, .ofOperation = 1'000, .ofCopy = 5'000}, plan, {.clock = &FakeGpus::get().clock()});
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    for (const int r : {0, 1, 2, 3}) {
        const std::vector<Timed> sums = ofLane(outcome.trace, Rank{r}, LaneKind::Collective);
        const std::vector<Timed> actions = ofLane(outcome.trace, Rank{r}, LaneKind::Compute);
        ASSERT_EQ(sums.size(), 4U); // bias and weight of two layers, the last parameter first
        std::map<std::size_t, TimeNs> ready; // by slice of the lane, from the edges
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(*outcome.trace.findLane(Rank{r}, LaneKind::Collective))) {
            const traces::Slice from = outcome.trace.slice(edge.from);
            EXPECT_EQ(from.action.kind(), ActionKind::Backward);
            EXPECT_LE(from.begin, edge.ready);
            EXPECT_LE(edge.ready, from.end);
            ready[edge.to.index] = edge.ready;
        }
        const Timed& update = actions.back();
        const Timed& lastBackward = actions[actions.size() - 2];
        TimeNs free = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            EXPECT_EQ(toText(sums[i].action), std::to_string(r % 2) + "ALL_REDUCE");
            EXPECT_EQ(sums[i].span.begin, std::max(free, ready.at(i))) << "rank " << r << " sum " << i;
            free = sums[i].span.end;
            const bool bias = i % 2 == 0;
            const TimeNs ofSecond = bias ? 6'000 : 16'000;
            EXPECT_EQ(sums[i].span.length(), r < 2 ? 11'000 : ofSecond) << "rank " << r << " sum " << i;
        }
        EXPECT_LT(sums.front().span.begin, lastBackward.span.end); // of the second layer, while the first goes back
        EXPECT_EQ(update.action.kind(), ActionKind::Optimizer);
        EXPECT_EQ(update.span.begin, sums.back().span.end);
    }
}

// The ways between the replicas are those of the plan's machine: 2 (latency + half of the bytes), as on the CPU.
TEST(DeviceReplicas, TakeTheTimeOfThePlansMachineWhereTheyAreVirtual)
{
    Plan plan = linear("1f1b", 2, 2, RunMode::Emulated);
    plan.machine.replica = {.latency = 1'000, .bytesPerSecond = 1e9};
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runOn({.count = 1, .ofOperation = 1'000}, plan, {.clock = &FakeGpus::get().clock()});
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    for (const int r : {0, 1, 2, 3}) {
        const std::vector<Timed> sums = ofLane(outcome.trace, Rank{r}, LaneKind::Collective);
        ASSERT_EQ(sums.size(), 2 * 4U);
        for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i].span.length(), 2 * (1'000 + (i % 2 == 0 ? 16 : 256) * 4 / 2));
        for (const Timed& action : ofLane(outcome.trace, Rank{r}, LaneKind::Compute)) EXPECT_EQ(action.span.length() % 1'000, 0);
    }
}

TEST(DeviceReplicas, MixGpusAndTheCpu)
{
    const std::vector<double> onCpu = runPlan(linear("1f1b", 2, 2)).result->loss;
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const std::vector<int>& places : {std::vector{0, kOnCpu, 1, 0}, {0, 1, kOnCpu, kOnCpu}, {kOnCpu, 0, 0, kOnCpu}, std::vector(4, kOnCpu)}) {
            Plan plan = linear("1f1b", 2, 2, mode);
            plan.run.gpus = places;
            const Outcome outcome = runOn({.count = 2, .ofOperation = 10, .ofCopy = 100}, plan);
            ASSERT_TRUE(outcome.result) << saidBy(outcome);
            EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
            EXPECT_EQ(outcome.result->loss, onCpu);
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        }
}

// Sums over the replicas come before those of the two copies of a table, and before the norm of all.
TEST(DeviceReplicas, TieEmbeddingsAndClip)
{
    for (const char* schedule : {"1f1b", "chimera"})
        for (const double clip : {0.0, 0.1})
            for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 1}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}}) {
                Plan plan = replicated(littleTransformer(schedule, 2, 1, mode), 2);
                plan.model.tiedEmbeddings = true;
                plan.run.clipNorm = clip;
                plan.run.lossScale = 8;
                const Outcome onCpu = runPlan(plan);
                const Outcome outcome = runOn({.count = gpus}, plan);
                ASSERT_TRUE(outcome.result) << saidBy(outcome);
                EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
                EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
                EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
            }
}

// Of the second threads too, which launch the sums.
TEST(DeviceReplicas, MarkTheKernelsOfTheirSums)
{
    CuptiOnGpus cupti;
    Plan plan = linear("1f1b", 2, 2);
    plan.run.check = CheckMode::Off;
    plan.run.tracing = traces::TraceLevel::Kernels;
    const auto launch = [&](const char* name, int stream, traces::Interval when) {
        cupti.launch(name, 0, stream, when);
    };
    const Outcome outcome = runOn({.count = 4, .ofOperation = 1000, .onOperation = launch}, plan, {.clock = &FakeGpus::get().clock(), .cupti = cupti.session.get()});
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    std::map<Rank, std::map<std::string, int>> kernels; // beneath the sums of a rank
    for (const Lane& lane : outcome.trace.lanes()) {
        if (lane.info().kind != LaneKind::Stream || lane.info().name.find("no action") != std::string::npos) continue;
        for (std::size_t i = 0; i < lane.size(); ++i)
            for (const Timed& sum : ofLane(outcome.trace, lane.info().rank, LaneKind::Collective))
                if (lane.end(i) > lane.begin(i) && sum.span.begin <= lane.begin(i) && lane.end(i) <= sum.span.end &&
                    std::string(outcome.trace.text(lane.text(i))).find("aten::add") == 0)
                    ++kernels[lane.info().rank][toText(sum.action)];
    }
    for (const int r : {0, 1, 2, 3}) EXPECT_GE(kernels[Rank{r}][std::to_string(r % 2) + "ALL_REDUCE"], 4) << r; // of two steps two parameters or four
}

TEST(DeviceReplicas, TellAFaultAndHoldNothing)
{
    const int before = FakeGpus::get().blocks();
    for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 2}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}})
        for (const int microbatch : {0, 3}) {
            const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = ActionKind::Backward, .stage = traces::Stage{0},
                                      .microbatch = traces::MicroBatch{microbatch}, .step = Step{1}};
            const Outcome outcome = runOn({.count = gpus}, linear("1f1b", 2, 2, mode), {.fault = fault});
            EXPECT_EQ(outcome.last, SessionState::Failed);
            EXPECT_THAT(saidBy(outcome), HasSubstr("failed in step 1 on rank 0"));
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

TEST(DeviceReplicas, EndWhereverAGpuFails)
{
    const int before = FakeGpus::get().blocks();
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = linear("1f1b", 2, 2, mode);
        plan.run.check = CheckMode::Off;
        ASSERT_TRUE(runOn({.count = 2}, plan).result);
        const int operations = FakeGpus::get().operations();
        for (const int part : {30, 40, 50, 60, 70, 80, 90, 95, 99}) {
            const Outcome outcome = runOn({.count = 2, .failsFrom = operations * part / 100}, plan);
            EXPECT_EQ(outcome.last, SessionState::Failed) << part;
            EXPECT_THAT(saidBy(outcome), HasSubstr("illegal memory access")) << part;
        }
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Whoever waits: a rank, or the thread that sums beside it.
TEST(DeviceReplicas, GiveUpAGpuThatNeverAnswers)
{
    const int before = FakeGpus::get().blocks();
    Plan plan = linear("1f1b", 2, 2);
    plan.run.check = CheckMode::Off;
    ASSERT_TRUE(runOn({.count = 2}, plan).result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {50, 70, 90}) {
        const Outcome outcome = runOn({.count = 2, .hangsFrom = operations * part / 100}, plan, {.devicePatience = std::chrono::seconds(1)});
        EXPECT_EQ(outcome.last, SessionState::Failed);
        EXPECT_THAT(saidBy(outcome), HasSubstr("has not answered rank")) << part;
        FakeGpus::get().release();
        while (FakeGpus::get().blocks() > before) std::this_thread::yield(); // its threads end
    }
}

TEST(DeviceReplicas, PauseGoOnAndStop)
{
    FakeGpus::get().reset({.count = 2});
    Plan plan = linear("1f1b", 2, 2);
    plan.run.device = DeviceKind::Cuda;
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const auto session = makeLocalSession({.devices = &FakeGpus::get().source()});
    ASSERT_TRUE(session->start(plan).ok());
    Outcome outcome;
    follow(*session, outcome, [&] { return outcome.trace.steps().size() >= 2; });
    for (int round = 0; round < 10; ++round) {
        session->pause();
        follow(*session, outcome, [&] { return session->state() == SessionState::Paused; });
        const std::size_t steps = outcome.trace.steps().size();
        session->resume();
        follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps; });
    }
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

} // namespace
} // namespace stagecraft::runtime
