// SPDX-License-Identifier: Apache-2.0
//
// Runs in several processes, which are threads here (team.h), that hand over from GPU to GPU by NCCL (nccl_on_gpus.h).
#include "tests/runtime/cupti/fake_session.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl_on_gpus.h"
#include "tests/runtime/replica_plans.h"
#include "tests/runtime/team.h"

#include "traces/analysis/device_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::AnyOf;
using testing::Contains;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using testing::StartsWith;
using traces::MemoryClass;

constexpr NcclResult kRemoteError = 6;

class NcclProcesses : public NcclOnGpus {
public:
    using NcclOnGpus::NcclOnGpus;

    TeamOutcome run(Plan plan, TeamOptions options = {})
    {
        plan.run.mode = RunMode::Processes;
        plan.run.device = DeviceKind::Cuda;
        if (plan.run.transport == Transport::Auto) plan.run.transport = Transport::Nccl;
        options.devices = &FakeGpus::get().source();
        options.nccl = &source;
        return runTeam(plan, options);
    }
};

std::string whyNot(const TeamOutcome& team)
{
    const Outcome& first = team.ranks.front();
    return first.failure ? first.failure->text : team.refusals.front();
}

std::vector<FamilyCase> everyFamily()
{
    std::vector<FamilyCase> cases;
    for (const ScheduleFamily& family : scheduleFamilies())
        if (family.name != "bpipe") cases.push_back(familyCase(family, 5, RunMode::Processes)); // with more ranks it moves activations away
    return cases;
}

class EveryFamilyByNccl : public testing::TestWithParam<FamilyCase> {};

TEST_P(EveryFamilyByNccl, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = planOf(GetParam());
    NcclProcesses processes({.count = 4});
    const TeamOutcome team = processes.run(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    Plan inThreads = plan;
    inThreads.run.mode = RunMode::Threads;
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), runPlan(inThreads).result->loss));
    EXPECT_THAT(first.trace.information(), Contains(HasSubstr("by NCCL 2.28.9")));
    EXPECT_THAT(first.trace.notes(), testing::Not(Contains(HasSubstr("by NCCL")))) << "nothing is amiss";
    EXPECT_THAT(processes.nccl().log(), Contains(StartsWith("group 1:")));
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
    processes.expectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilyByNccl, testing::ValuesIn(everyFamily()), [](const auto& each) {
    std::string name = each.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

std::vector<FamilyCase> everySynchronousFamily()
{
    std::vector<FamilyCase> cases = everyFamily();
    std::erase_if(cases, [](const FamilyCase& each) { return findFamily(each.name)->asynchronous; });
    return cases;
}

class ReplicatedFamilyInProcessesByNccl : public testing::TestWithParam<FamilyCase> {};

// What is handed over and what is summed goes through the GPUs one after the other, in one order for both (FakeNccl): another one hangs.
TEST_P(ReplicatedFamilyInProcessesByNccl, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = replicated(planOf(GetParam()), 2);
    NcclProcesses processes({.count = 2 * plan.pipeline.ranks});
    const TeamOutcome team = processes.run(plan);
    const Outcome& first = team.ranks.front();
    ASSERT_TRUE(first.result) << whyNot(team);
    EXPECT_NE(first.result->gradientCheck, GradientCheck::Failed);
    EXPECT_LT(first.result->gradientMaxAbsDiff, 1e-5);
    Plan inThreads = plan;
    inThreads.run.mode = RunMode::Threads;
    const Outcome onCpu = runPlan(inThreads);
    EXPECT_THAT(first.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
    EXPECT_EQ(collectivesOf(first.trace), collectivesOf(onCpu.trace));
    EXPECT_THAT(first.trace.information(), Contains(HasSubstr("by NCCL 2.28.9")));
    if (GetParam().name != "forward-only") {
        EXPECT_THAT(processes.nccl().log(), Contains(StartsWith("sum 1: ")));
    }
    for (const traces::MemorySeries& series : first.trace.memory())
        if (series.memory == MemoryClass::Activations || series.memory == MemoryClass::Gradients || series.memory == MemoryClass::Buffers) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
    processes.expectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, ReplicatedFamilyInProcessesByNccl, testing::ValuesIn(everySynchronousFamily()), [](const auto& each) {
    return caseName(each.param.name, each.param.mode);
});

// Two cliques that hand over, and one for each of two stages that sums.
TEST(ReplicasInProcessesByNccl, ConnectBeforeTheFirstStepAndSumBehindWhatIsHandedOver)
{
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 1;
    NcclProcesses processes({.count = 4});
    ASSERT_TRUE(processes.run(plan).ranks[0].result);
    const std::vector<std::string> log = processes.nccl().log();
    EXPECT_EQ(std::ranges::count(log, "init 0/2"), 4);
    EXPECT_EQ(std::ranges::count(log, "sum 0: 1"), 2);
    EXPECT_EQ(std::ranges::count(log, "sum 1: 256"), 4);
    const auto last = [&](const std::string& what) {
        return std::find_if(log.rbegin(), log.rend(), [&](const std::string& line) { return line.starts_with(what); }).base() - log.begin();
    };
    EXPECT_EQ(last("group 1: >0"), last("group 1:")); // rank 1 of each replica sends its last gradient last
    processes.expectNothingLeft();
}

TEST(ReplicasInProcessesByNccl, EndWithTheReasonOfAnAsynchronousError)
{
    NcclProcesses processes({.count = 4});
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = processes.run(plan, {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               processes.nccl().fail(1, kRemoteError);
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("another rank has ended, or the connection to it broke"));
    }
    processes.expectNothingLeft();
}

TEST(ReplicasInProcessesByNccl, LetNobodyWaitForARankThatFails)
{
    for (const int rank : {0, 3}) {
        NcclProcesses processes({.count = 4});
        const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{rank % 2},
                                  .microbatch = traces::MicroBatch{3}, .step = traces::Step{1}};
        const TeamOutcome team = processes.run(linear("1f1b", 2, 2, RunMode::Processes), {.faults = {{rank, fault}}});
        for (const Outcome& each : team.ranks) {
            EXPECT_EQ(each.last, SessionState::Failed);
            ASSERT_TRUE(each.failure);
            EXPECT_THAT(each.failure->text, HasSubstr("failed in step 1 on rank " + std::to_string(rank)));
        }
        processes.expectNothingLeft();
    }
}

TEST(ReplicasInProcessesByNccl, EndWhereverTheGpusFail)
{
    const auto run = [](std::optional<int> failsFrom) {
        NcclProcesses processes({.count = 4, .failsFrom = failsFrom});
        Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
        plan.run.check = CheckMode::Off;
        TeamOutcome team = processes.run(plan);
        EXPECT_THAT(processes.nccl().misuse(), IsEmpty());
        return team;
    };
    const int before = FakeGpus::get().blocks();
    ASSERT_TRUE(run({}).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 25, 50, 75, 95})
        for (const Outcome& each : run(operations * part / 100).ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Its sums are needed before all that is handed over is issued.
TEST(ReplicasInProcessesByNccl, GiveWayToTheHostWhereTheScheduleUpdatesWithinTheStep)
{
    Plan plan = linear("custom", 2, 2, RunMode::Processes);
    plan.pipeline.microbatches = 2;
    plan.pipeline.customSchedule = "0F0,0F1,0B0,0B1,0OPTIMIZER\n1F0,1B0,1F1,1B1,1OPTIMIZER\n";
    NcclProcesses processes({.count = 4});
    EXPECT_THAT(processes.run(plan).refusals, testing::Each(HasSubstr("updates weights within the step, and there sums come behind all that is handed over")));
    plan.run.device = DeviceKind::Cuda;
    const TeamOutcome team = runTeam(plan, {.devices = &FakeGpus::get().source(), .nccl = &processes.source});
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_NE(team.ranks[0].result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(team.ranks[0].trace.information(), Contains(HasSubstr("by way of the host: rank 0 cannot take NCCL")));
    EXPECT_THAT(processes.nccl().log(), IsEmpty());
}

TEST(ReplicasInProcessesByNccl, PauseGoOnAndStop)
{
    NcclProcesses processes({.count = 4});
    Plan plan = linear("1f1b", 2, 2, RunMode::Processes);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const TeamOutcome team = processes.run(plan, {.lead = pausesGoesOnAndStops(10)});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    processes.expectNothingLeft();
}

TEST(NcclRun, HandsOverWhileActivationsAreAway)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Processes);
    plan.pipeline.microbatches = 8;
    plan.pipeline.offload = 0.5;
    NcclProcesses processes({.count = 2});
    const TeamOutcome team = processes.run(plan);
    ASSERT_TRUE(team.ranks.front().result) << whyNot(team);
    EXPECT_NE(team.ranks.front().result->gradientCheck, GradientCheck::Failed);
    processes.expectNothingLeft();
}

Plan little(int steps = 3)
{
    Plan plan = littleTransformer("1f1b", 3, 1, RunMode::Processes);
    plan.model.layers.insert(plan.model.layers.begin() + 1, TransformerBlock{32, 2, 64});
    plan.run.steps = steps;
    if (steps > 3) plan.run.check = CheckMode::Off;
    return plan;
}

TEST(NcclRun, ConnectsEachPairBeforeTheFirstStepAndExchangesInTheCommonOrder)
{
    NcclProcesses processes({.count = 3});
    ASSERT_TRUE(processes.run(little(1)).ranks[0].result);
    std::vector<std::string> ofTheMiddle;
    std::ptrdiff_t sends = 0;
    std::ptrdiff_t receipts = 0;
    for (const std::string& line : processes.nccl().log()) {
        if (!line.starts_with("group 1:")) continue;
        ofTheMiddle.push_back(line);
        sends += std::count(line.begin(), line.end(), '>');
        receipts += std::count(line.begin(), line.end(), '<');
    }
    EXPECT_EQ(sends, 2 + 4 * 2) << "a byte to each of two, then of 4 micro-batches an activation and a gradient";
    EXPECT_EQ(receipts, 2 + 4 * 2);
    EXPECT_EQ(ofTheMiddle[0], "group 1: >0 1 <0 1");
    EXPECT_EQ(ofTheMiddle[1], "group 1: >2 1 <2 1");
    EXPECT_THAT(ofTheMiddle[2], StartsWith("group 1: <0 "));
    processes.expectNothingLeft();
}

constexpr traces::TimeNs kOfExchange = 3'000'000;

struct NcclKernel {
    int rank = 0;
    traces::Interval span;
    bool dropped = false;
};

// Two ranks whose kernels of NCCL are told: those of rank 0 by CUPTI, without a mark, for NCCL launches from threads of its own; those of
// rank 1, as a process has but one CUPTI, are put into the trace of both as they were.
struct TracedExchanges {
    // `drops`: whether the record of the n-th exchange of a rank is lost.
    explicit TracedExchanges(const std::string& schedule, const std::function<bool(int rank, int number)>& drops = {})
    {
        FakeCupti& cupti = theFake();
        cupti.reset();
        const auto session = CuptiSession::create(fakeLibrary(), FakeGpus::get().clock(), {.flushEvery = 0, .lateBuffers = 0}).value();
        Plan plan = littleTransformer(schedule, 2, 1, RunMode::Processes);
        plan.run.check = CheckMode::Off;
        plan.run.tracing = traces::TraceLevel::Kernels;
        std::mutex mutex;
        std::array<int, 2> numbers{};
        const auto exchanged = [&](int rank, int stream, traces::Interval when) {
            const std::lock_guard lock(mutex);
            const bool dropped = drops && drops(rank, numbers[static_cast<std::size_t>(rank)]++);
            kernels.push_back({rank, when, dropped});
            if (dropped) cupti.drop(1);
            else if (rank == 0)
                cupti.launch({.name = kName, .start = static_cast<std::uint64_t>(when.begin), .end = static_cast<std::uint64_t>(when.end),
                              .stream = static_cast<std::uint32_t>(stream), .calledAt = static_cast<std::uint64_t>(when.begin)});
        };
        NcclProcesses processes({.count = 2, .ofOperation = 100'000, .ofExchange = kOfExchange, .onExchange = exchanged});
        const TeamOutcome team = processes.run(plan, {.cupti = {{0, session.get()}}, .clock = &FakeGpus::get().clock()});
        EXPECT_TRUE(team.ranks[0].result) << whyNot(team);
        processes.expectNothingLeft();
        trace = team.ranks[0].trace;
        const traces::LaneId lane = trace.addLane({.rank = traces::Rank{1}, .kind = traces::LaneKind::Stream, .depth = 90, .name = "GPU 1 stream 9, NCCL"});
        const traces::TextId name = trace.intern(kName);
        for (const NcclKernel& each : kernels)
            if (each.rank == 1 && !each.dropped) trace.append(lane, {.begin = each.span.begin, .end = each.span.end, .action = {}, .text = name});
    }

    static constexpr const char* kName = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    std::vector<NcclKernel> kernels; // as they were
    traces::Trace trace;
};

// When a hand-off was there, by the trace's own account of it.
std::map<std::pair<std::string, int>, traces::TimeNs> arrivals(const traces::Trace& trace)
{
    std::map<std::pair<std::string, int>, traces::TimeNs> all;
    for (const traces::Lane& lane : trace.lanes())
        for (std::size_t i = 0; lane.info().kind == traces::LaneKind::Transfer && i < lane.size(); ++i)
            all[{traces::toText(lane.action(i)), lane.step(i).value}] = lane.end(i);
    return all;
}

TEST(NcclRun, TellsOfEachKernelWhichHandOffItIsAndHowLongItWaited)
{
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
        SCOPED_TRACE(schedule);
        const TracedExchanges run(schedule);
        const auto arrived = arrivals(run.trace);
        std::size_t known = 0;
        traces::TimeNs waiting = 0;
        for (int step = 0; step < 3; ++step)
            for (const traces::ExchangeKernel& each : traces::exchangesOf(run.trace, traces::Step{step})) {
                const traces::Slice kernel = run.trace.slice(each.kernel);
                ASSERT_TRUE(each.met);
                EXPECT_EQ(kernel.end - *each.met, kOfExchange) << "it moves as long as it is set to";
                EXPECT_EQ(each.peer, traces::Rank{1 - run.trace.lane(each.kernel.lane).info().rank.value});
                const std::optional<traces::Action> exchange = traces::exchangeOfText(run.trace.sliceName(each.exchange));
                ASSERT_TRUE(exchange);
                for (const traces::Work& work : {exchange->work, exchange->partner})
                    if (work.kind == traces::ActionKind::SendForward || work.kind == traces::ActionKind::SendBackward) {
                        EXPECT_EQ(kernel.end, arrived.at({traces::toText(traces::Action{work, {}}), step}));
                    }
                waiting += *each.met - kernel.begin;
                ++known;
            }
        EXPECT_EQ(known, run.kernels.size() - 2) << "all but those of the byte before the first step";
        EXPECT_GT(waiting, 0);
        traces::TimeNs told = 0;
        for (const auto& [rank, time] : traces::ncclTimes(run.trace)) told += time.waiting;
        EXPECT_EQ(told, waiting);
        EXPECT_THAT(run.trace.information(), testing::Not(Contains(HasSubstr("belong to no action"))));
    }
}

// The n-th kernel of a step is of its n-th exchange where none is missing. Where one is, its step is not known on either rank.
TEST(NcclRun, DoesNotGuessWhereTheRecordOfAKernelWasDropped)
{
    const auto ofAStep = (static_cast<int>(TracedExchanges("1f1b").kernels.size()) / 2 - 1) / 3;
    for (const int loser : {0, 1}) {
        const TracedExchanges run("1f1b", [&](int rank, int number) { return rank == loser && number == 1 + ofAStep + 2; });
        const auto of = [&](int step) { return traces::exchangesOf(run.trace, traces::Step{step}); };
        for (const int whole : {0, 2}) EXPECT_THAT(of(whole), testing::Each(testing::Field(&traces::ExchangeKernel::met, testing::Ne(std::nullopt))));
        EXPECT_FALSE(of(1).empty()) << "the other rank's kernels are known";
        for (const traces::ExchangeKernel& each : of(1)) {
            EXPECT_EQ(run.trace.lane(each.kernel.lane).info().rank, traces::Rank{1 - loser});
            EXPECT_EQ(each.met, std::nullopt) << "but not since when anything moves";
        }
        EXPECT_EQ(run.trace.lostEvents(), 1);
    }
}

TEST(NcclRun, TakesTheHostWhereTwoRanksShareAGpuAndSaysSo)
{
    NcclProcesses processes({.count = 2});
    Plan plan = little(1);
    EXPECT_THAT(processes.run(plan).refusals, testing::Each(HasSubstr("run.transport: NCCL cannot hand over: ranks 0 and 2 are both on GPU bus 0 of here")));
    FakeGpus::get().reset({.count = 1});
    plan.run.mode = RunMode::Processes;
    plan.run.device = DeviceKind::Cuda;
    const TeamOutcome team = runTeam(plan, {.devices = &FakeGpus::get().source(), .nccl = &processes.source});
    ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
    EXPECT_THAT(team.ranks[0].trace.information(), Contains(HasSubstr("by way of the host: ranks 0 and 1 are both on GPU bus 0")));
    EXPECT_THAT(processes.nccl().log(), IsEmpty());
}

// What rank 0's user does once the run is under way.
template <class Act>
TeamOptions onceUnderWay(Act act)
{
    return {.lead = [act](Session& session, Outcome& outcome) {
        follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
        act();
        followToEnd(session, outcome);
    }};
}

TEST(NcclRun, EndsWithTheReasonOfAnAsynchronousError)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), onceUnderWay([&] { processes.nccl().fail(1, kRemoteError); }));
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_EQ(each.failure->rank, 1);
        EXPECT_THAT(each.failure->text, HasSubstr("another rank has ended, or the connection to it broke"));
    }
    EXPECT_GT(team.ranks[0].trace.steps().size(), 2U); // what ran until then
    EXPECT_GT(team.ranks[0].trace.lanes().size(), 3U);
    processes.expectNothingLeft();
}

// The clock by which NCCL is waited for is the test's: nothing is late before it says so.
TEST(NcclRun, EndsWhereACallHangs)
{
    NcclProcesses processes({.count = 3});
    ManualClock clock;
    processes.source.clock = &clock;
    const TeamOutcome team = processes.run(little(100'000), {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               processes.nccl().hang(1);
                                               while (!processes.nccl().hangs()) std::this_thread::yield();
                                               follow(session, outcome, [&] {
                                                   clock.advance(30'000'000'000);
                                                   return false;
                                               });
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, AnyOf(HasSubstr("NCCL could not put"), HasSubstr("nothing has moved on its communication stream")));
    }
    EXPECT_GT(team.ranks[0].trace.steps().size(), 2U);
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

TEST(NcclRun, LetsNobodyWaitForARankThatFails)
{
    NcclProcesses processes({.count = 3});
    const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{1},
                              .microbatch = traces::MicroBatch{2}, .step = traces::Step{1}};
    const TeamOutcome team = processes.run(little(), {.faults = {{1, fault}}});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("1B2 failed in step 1 on rank 1"));
    }
    processes.expectNothingLeft();
}

TEST(NcclRun, EndsWhereverTheGpusFail)
{
    const auto run = [](std::optional<int> failsFrom) {
        NcclProcesses processes({.count = 3, .failsFrom = failsFrom});
        TeamOutcome team = processes.run(little());
        EXPECT_THAT(processes.nccl().misuse(), IsEmpty());
        return team;
    };
    const int before = FakeGpus::get().blocks();
    ASSERT_TRUE(run({}).ranks[0].result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 25, 50, 75, 95}) {
        for (const Outcome& each : run(operations * part / 100).ranks) {
            EXPECT_EQ(each.last, SessionState::Failed) << part;
            ASSERT_TRUE(each.failure) << part;
            EXPECT_THAT(each.failure->text, HasSubstr("illegal memory access")) << part;
        }
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// Whose input does not come rests: a pause does not wait for it, nor does it count as a hang.
TEST(NcclRun, PausesGoesOnAndStops)
{
    NcclProcesses processes({.count = 3});
    const auto heard = [](const Outcome& outcome, SessionState state) { return std::find(outcome.states.begin(), outcome.states.end(), state) != outcome.states.end(); };
    const TeamOutcome team = processes.run(little(100'000), {.lead = pausesGoesOnAndStops(20)});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    EXPECT_TRUE(heard(team.ranks[0], SessionState::Paused));
    processes.expectNothingLeft();
}

TEST(NcclRun, WaitsForAStageThatIsHeld)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), {.lead = [&](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               session.trouble({.stage = 1, .held = true});
                                               while (session.waitForRecords(std::chrono::milliseconds(300))) gather(outcome, session.takeRecords());
                                               const std::size_t steps = outcome.trace.steps().size();
                                               session.trouble({.stage = 1, .held = false});
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > steps + 2; });
                                               session.stop();
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) EXPECT_EQ(each.last, SessionState::Stopped) << (each.failure ? each.failure->text : "");
    processes.expectNothingLeft();
}

TEST(NcclRun, StopsWithinAStepWithoutAFailure)
{
    NcclProcesses processes({.count = 3});
    const TeamOutcome team = processes.run(little(100'000), {.lead = [](Session& session, Outcome& outcome) {
                                               follow(session, outcome, [&] { return outcome.trace.steps().size() > 2; });
                                               session.stop();
                                               followToEnd(session, outcome);
                                           }});
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Stopped);
        EXPECT_FALSE(each.failure) << each.failure->text;
    }
    EXPECT_TRUE(team.ranks[0].result);
    processes.expectNothingLeft();
}

TEST(NcclRun, DoesNotStartWhereTheRanksDoNotMeet)
{
    NcclProcesses processes({.count = 3});
    processes.nccl().failCall("init", 2);
    const TeamOutcome team = processes.run(little());
    for (const Outcome& each : team.ranks) {
        EXPECT_EQ(each.last, SessionState::Failed);
        ASSERT_TRUE(each.failure);
        EXPECT_THAT(each.failure->text, HasSubstr("a call of the system failed in it"));
    }
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

} // namespace
} // namespace stagecraft::runtime
