// SPDX-License-Identifier: Apache-2.0
//
// Runs in several processes, which are threads here (team.h), on GPUs that are not there (fake_gpu/fake_gpu.h).
#include "engine/runtime/gpu_places.h"
#include "engine/runtime/runnable.h"
#include "tests/runtime/fake_gpu/fake_gpu.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/replica_plans.h"
#include "tests/runtime/team.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;

Plan onGpus(Plan plan)
{
    plan.run.mode = RunMode::Processes;
    plan.run.device = DeviceKind::Cuda;
    return plan;
}

TeamOutcome runOn(const FakeGpus::Setup& gpus, const Plan& plan, TeamOptions options = {})
{
    FakeGpus::get().reset(gpus);
    options.devices = &FakeGpus::get().source();
    return runTeam(onGpus(plan), options);
}

std::string whyNot(const TeamOutcome& team)
{
    const Outcome& first = team.ranks.front();
    return first.failure ? first.failure->text : team.refusals.front();
}

Outcome onCpuInThreads(Plan plan)
{
    plan.run.mode = RunMode::Threads;
    return runPlan(plan);
}

struct Case {
    FamilyCase family;
    int gpus = 1;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.family.name << " on " << each.gpus; }

std::vector<Case> everyFamily()
{
    std::vector<Case> cases;
    for (const ScheduleFamily& family : scheduleFamilies()) {
        if (family.name == "bpipe") continue; // with more ranks it moves activations away
        for (const int gpus : {1, 4}) cases.push_back({familyCase(family, 5, RunMode::Processes), gpus});
    }
    return cases;
}

std::vector<Case> everySynchronousFamily()
{
    std::vector<Case> cases = everyFamily();
    std::erase_if(cases, [](const Case& each) { return findFamily(each.family.name)->asynchronous; });
    return cases;
}

class ReplicatedFamilyInProcessesOnGpus : public testing::TestWithParam<Case> {};

// Sums by way of the host, in the order of the replicas.
TEST_P(ReplicatedFamilyInProcessesOnGpus, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = replicated(planOf(GetParam().family), 2);
    const int before = FakeGpus::get().blocks();
    const TeamOutcome team = runOn({.count = GetParam().gpus}, plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    const Outcome onCpu = onCpuInThreads(plan);
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
    EXPECT_EQ(collectivesOf(first.trace), collectivesOf(onCpu.trace));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    EXPECT_EQ(FakeGpus::get().blocks(), before);
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
}

INSTANTIATE_TEST_SUITE_P(All, ReplicatedFamilyInProcessesOnGpus, testing::ValuesIn(everySynchronousFamily()), [](const auto& each) {
    return caseName(each.param.family.name, RunMode::Processes) + "_" + std::to_string(each.param.gpus);
});

// A replica whose ranks are on GPUs, and one whose ranks are not.
TEST(ReplicasInProcessesOnGpus, SumWithThoseOnTheCpuToTheBit)
{
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.gpus = {0, 1, kOnCpu, kOnCpu};
    const TeamOutcome team = runOn({.count = 2}, plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_EQ(first.result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(first.result->loss, onCpuInThreads(linear("1f1b", 2, 2)).result->loss);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(ReplicasInProcessesOnGpus, EndWhereverAGpuFails)
{
    const int before = FakeGpus::get().blocks();
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.check = CheckMode::Off;
    ASSERT_TRUE(runOn({.count = 2}, plan).ranks.front().result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {30, 50, 70, 90, 99}) {
        const TeamOutcome team = runOn({.count = 2, .failsFrom = operations * part / 100}, plan);
        for (const Outcome& each : team.ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

class EveryFamilyInProcessesOnGpus : public testing::TestWithParam<Case> {};

TEST_P(EveryFamilyInProcessesOnGpus, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = planOf(GetParam().family);
    const int before = FakeGpus::get().blocks();
    const TeamOutcome team = runOn({.count = GetParam().gpus}, plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_EQ(first.result->mode, "processes");
    EXPECT_EQ(first.result->device, "cuda");
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), onCpuInThreads(plan).result->loss));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    EXPECT_GT(FakeGpus::get().operations(), 100);
    EXPECT_EQ(FakeGpus::get().blocks(), before);
    for (const traces::MemorySeries& series : first.trace.memory()) // a transfer's buffer is none of the GPU's
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
    std::size_t handOffs = 0;
    std::size_t edges = 0;
    for (std::size_t l = 0; l < first.trace.laneCount(); ++l) {
        if (first.trace.lane(traces::LaneId{l}).info().kind == LaneKind::Transfer) handOffs += first.trace.lane(traces::LaneId{l}).size();
        for (const traces::Edge& edge : first.trace.edgesOfLane(traces::LaneId{l}))
            if (first.trace.lane(edge.from.lane).info().rank != first.trace.lane(edge.to.lane).info().rank) ++edges;
    }
    EXPECT_GT(handOffs, 0U);
    EXPECT_EQ(edges, handOffs);
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilyInProcessesOnGpus, testing::ValuesIn(everyFamily()), [](const testing::TestParamInfo<Case>& of) {
    return caseName(of.param.family.name, of.param.family.mode) + "_" + std::to_string(of.param.gpus);
});

Plan tiny(const std::string& schedule, int ranks, int microbatches)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{16, 16, Activation::Relu});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = schedule, .ranks = ranks, .chunks = 1, .microbatches = microbatches, .customSchedule = {}};
    plan.run.steps = 2;
    return plan;
}

TEST(DeviceProcesses, SumTiedTablesAndClipByTheNormOfAllRanks)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Processes);
    plan.run.clipNorm = 0.05;
    plan.model.tiedEmbeddings = true;
    const TeamOutcome team = runOn({.count = 2}, plan);
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(team.ranks[0].result->loss, Pointwise(FloatNear(1e-4F), onCpuInThreads(plan).result->loss));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(DeviceProcesses, MixGpusAndTheCpu)
{
    Plan plan = littleTransformer("1f1b", 4, 1, RunMode::Processes);
    plan.run.gpus = {0, kOnCpu, 1, 0};
    const TeamOutcome team = runOn({.count = 2, .ofOperation = 10, .ofCopy = 100}, plan);
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(DeviceProcesses, OffloadToTheirHost)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Processes);
    plan.pipeline.microbatches = 8;
    plan.pipeline.offload = 0.5;
    const TeamOutcome team = runOn({.count = 2}, plan);
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(team.ranks[0].result->loss, Pointwise(FloatNear(1e-4F), onCpuInThreads(plan).result->loss));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(DeviceProcesses, SendOverTcpWhatTheyDoInMemory)
{
    const Plan plan = littleTransformer("zb-v", 2, 2, RunMode::Processes);
    const TeamOutcome team = runOn({.count = 2}, plan, {.net = NetKind::Tcp});
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(DeviceProcesses, GoOnFromACheckpoint)
{
    const traces::test::TemporaryFolder folder;
    Plan plan = tiny("1f1b", 2, 4);
    plan.run.steps = 4;
    const Outcome whole = onCpuInThreads(plan);
    Plan first = plan;
    first.run.steps = 2;
    first.run.checkpoint = folder.file("kept").string();
    ASSERT_TRUE(runOn({.count = 2}, first).ranks[0].result);
    plan.run.resume = first.run.checkpoint;
    const TeamOutcome team = runOn({.count = 1}, plan);
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_THAT(team.ranks[0].result->loss, Pointwise(FloatNear(1e-4F), std::vector(whole.result->loss.end() - 2, whole.result->loss.end())));
}

TEST(DeviceProcesses, LetTheFailureOfOneEndAllByItsName)
{
    const int before = FakeGpus::get().blocks();
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{2}, .step = traces::Step{1}};
    const TeamOutcome team = runOn({.count = 2}, tiny("1f1b", 3, 4), {.faults = {{1, fault}}});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_EQ(each.failure->rank, 1);
        EXPECT_THAT(each.failure->text, HasSubstr("1B2 failed in step 1 on rank 1"));
    }
    EXPECT_EQ(team.ranks[0].trace.steps().size(), 1U);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Wherever it is, also while a tensor is on its way to the host: nobody waits for what does not come.
TEST(DeviceProcesses, EndAllWhereverTheirGpusFail)
{
    const int before = FakeGpus::get().blocks();
    const Plan plan = tiny("1f1b", 2, 4);
    ASSERT_TRUE(runOn({.count = 2}, plan).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 20, 35, 50, 65, 80, 95}) {
        const TeamOutcome team = runOn({.count = 2, .failsFrom = operations * part / 100}, plan);
        for (const Outcome& each : team.ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

TEST(DeviceProcesses, TellUtilisationByWhatTheRanksShare)
{
    const auto peak = [](int gpus) {
        const TeamOutcome team = runOn({.count = gpus}, tiny("1f1b", 4, 4));
        return team.ranks[0].result ? team.ranks[0].result->throughput.peakFlopsPerSecond : 0;
    };
    EXPECT_EQ(peak(4), FakeGpus::kPeak);
    EXPECT_EQ(peak(2), FakeGpus::kPeak / 2);
    EXPECT_EQ(peak(1), FakeGpus::kPeak / 4);
}

TEST(DeviceProcesses, TakeTheGpusOfTheirHostInTurnOrWhatThePlanSays)
{
    LocalNet net(3);
    std::vector<std::unique_ptr<ProcessGroup>> groups(3);
    {
        std::vector<std::jthread> joining;
        for (int r = 0; r < 3; ++r) // the second is on another host
            joining.emplace_back([&, r] { groups[static_cast<std::size_t>(r)] = ProcessGroup::join(net.port(r), {.host = r == 1 ? "there" : "here", .clock = "c"}, 3).value(); });
    }
    const auto place = [&](int rank, int count, std::vector<int> given = {}) -> Expected<int> {
        Plan plan = onGpus(tiny("1f1b", 3, 4));
        plan.run.gpus = std::move(given);
        FakeGpus::get().reset({.count = count});
        const auto own = static_cast<std::size_t>(rank);
        const auto places = gpuPlaces(plan, FakeGpus::get().source(), groups[own].get());
        if (!places.ok()) return places.error();
        for (std::size_t other = 0; other < 3; ++other) EXPECT_TRUE(other == own || places.value()[other] == kOnCpu); // theirs are not told here
        return places.value()[own];
    };
    EXPECT_EQ(place(0, 2).value(), 0);
    EXPECT_EQ(place(1, 2).value(), 0);
    EXPECT_EQ(place(2, 2).value(), 1);
    EXPECT_EQ(place(2, 1).value(), 0);
    EXPECT_EQ(place(2, 4, {0, kOnCpu, 3}).value(), 3);
    EXPECT_EQ(place(1, 0, {0, kOnCpu, 3}).value(), kOnCpu); // a host without any
    EXPECT_THAT(place(2, 2, {0, 0, 3}).error().message, HasSubstr("there is no GPU 3: this machine has 2 GPUs"));
    EXPECT_EQ(place(0, 2, {0, 0, 3}).value(), 0); // which another process finds
    EXPECT_THAT(place(0, 0).error().message, HasSubstr("no GPU can be used: the test has none"));
    std::vector<std::jthread> leaving;
    for (const auto& group : groups) leaving.emplace_back([&group] { group->leave(); });
}

TEST(DeviceProcesses, DoNotStartWhereOneHasNoSuchGpu)
{
    Plan plan = tiny("1f1b", 2, 4);
    plan.run.gpus = {0, 7};
    const TeamOutcome team = runOn({.count = 1}, plan);
    EXPECT_THAT(team.refusals, testing::Each(HasSubstr("rank 1: run.gpus: there is no GPU 7")));
}

} // namespace
} // namespace stagecraft::runtime
