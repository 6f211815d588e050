// SPDX-License-Identifier: Apache-2.0
//
// Replicas in one process that sum their gradients by NCCL (nccl_on_gpus.h), each rank on a GPU of its own.
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl_on_gpus.h"
#include "tests/runtime/replica_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;
using testing::StartsWith;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;
using traces::TimeNs;

constexpr NcclResult kRemoteError = 6;

Plan byNccl(Plan plan)
{
    plan.run.device = DeviceKind::Cuda;
    plan.run.transport = Transport::Nccl;
    return plan;
}

class NcclSums : public NcclOnGpus {
public:
    using NcclOnGpus::NcclOnGpus;

    Outcome run(const Plan& plan, LocalSessionOptions options = {}) { return runPlan(byNccl(plan), with(std::move(options))); }
    std::unique_ptr<Session> session(LocalSessionOptions options) const { return makeLocalSession(with(std::move(options))); }
    std::string refusal(const Plan& plan, LocalSessionOptions options = {})
    {
        const auto started = makeLocalSession(with(std::move(options)))->start(byNccl(plan));
        return started.ok() ? "" : started.error().message;
    }
    // What its user does with it.
    Outcome led(Plan plan, const std::function<void(Session&, Outcome&)>& lead)
    {
        plan.run.steps = 100'000;
        plan.run.check = CheckMode::Off;
        Outcome outcome;
        const auto session = makeLocalSession(with({}));
        const auto started = session->start(byNccl(plan));
        EXPECT_TRUE(started.ok()) << started.error().message;
        follow(*session, outcome, [&] { return outcome.trace.steps().size() > 2; });
        lead(*session, outcome);
        followToEnd(*session, outcome);
        return outcome;
    }

private:
    LocalSessionOptions with(LocalSessionOptions options) const
    {
        options.devices = &FakeGpus::get().source();
        options.nccl = &source;
        return options;
    }
};

std::vector<FamilyCase> everySynchronousFamily()
{
    std::vector<FamilyCase> cases;
    for (const ScheduleFamily& family : scheduleFamilies())
        for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
            if (family.asynchronous) continue;
            cases.push_back(familyCase(family, 4, RunMode::Threads));
            cases.back().precision = precision;
        }
    return cases;
}

class ReplicatedFamilyByNccl : public testing::TestWithParam<FamilyCase> {};

// On the device one kernel of NCCL after the other, in the order in which they were asked for (FakeNccl): another order hangs.
TEST_P(ReplicatedFamilyByNccl, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const Plan plan = replicated(planOf(GetParam()), 2);
    const bool half = GetParam().precision == Precision::Bf16;
    const Outcome onCpu = runPlan(plan);
    NcclSums gpus({.count = 2 * plan.pipeline.ranks});
    const Outcome outcome = gpus.run(plan);
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed) << outcome.result->gradientMaxAbsDiff;
    EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(half ? 1e-2F : 1e-4F), onCpu.result->loss));
    EXPECT_EQ(collectivesOf(outcome.trace), collectivesOf(onCpu.trace));
    EXPECT_EQ(outcome.trace.lostEvents(), 0);
    if (GetParam().name == "forward-only") return; // nothing to sum
    EXPECT_THAT(outcome.trace.information(), Contains("the gradients of the replicas are summed by NCCL 2.28.9"));
    EXPECT_THAT(gpus.nccl().log(), Contains(StartsWith("sum 1: ")));
    for (int r = 0; r < 2 * plan.pipeline.ranks; ++r)
        for (const MemoryClass memory : {MemoryClass::Weights, MemoryClass::Optimizer, MemoryClass::Gradients})
            EXPECT_EQ(most(outcome.trace, Rank{r}, memory), most(onCpu.trace, Rank{r}, memory)) << "rank " << r << " " << traces::memoryClassText(memory);
    gpus.expectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(All, ReplicatedFamilyByNccl, testing::ValuesIn(everySynchronousFamily()), [](const auto& each) {
    return caseName(each.param.name, each.param.mode, each.param.precision);
});

// Also where a bucket has more tensors than go in one group, and where there are three replicas, whose sums have no order.
TEST(ReplicasByNccl, SumBucketsOfEverySize)
{
    for (const int replicas : {2, 3})
        for (const traces::Bytes bucket : {1, 1'500, 1 << 20}) {
            Plan plan = linear("1f1b", 2, replicas);
            plan.model.layers.assign(40, Linear{16, 16, Activation::None});
            plan.machine.bucketBytes = bucket;
            NcclSums gpus({.count = 2 * replicas});
            const Outcome outcome = gpus.run(plan);
            ASSERT_TRUE(outcome.result) << saidBy(outcome);
            EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
            gpus.expectNothingLeft();
        }
}

TEST(ReplicasByNccl, ConnectTheMembersOfEachStageBeforeTheFirstStep)
{
    Plan plan = linear("1f1b", 2, 2);
    plan.run.steps = 1;
    NcclSums gpus({.count = 4});
    ASSERT_TRUE(gpus.run(plan).result);
    const std::vector<std::string> log = gpus.nccl().log();
    EXPECT_EQ(std::ranges::count(log, "init 0/2"), 2);
    EXPECT_EQ(std::ranges::count(log, "init 1/2"), 2);
    EXPECT_EQ(std::ranges::count(log, "sum 0: 1"), 2);   // that connects them
    EXPECT_EQ(std::ranges::count(log, "sum 0: 256"), 4); // weights of two layers, for two stages
    EXPECT_EQ(std::ranges::count(log, "sum 1: 16"), 4);
    EXPECT_EQ(std::ranges::count(log, "finalize 0"), 2);
    gpus.expectNothingLeft();
}

// Where two directions cross, a stage has four copies on two ranks of each replica.
TEST(ReplicasByNccl, SumBothDirectionsInOneClique)
{
    Plan plan = replicated(littleTransformer("chimera", 2, 1, RunMode::Threads), 2);
    plan.run.clipNorm = 0.1;
    plan.run.lossScale = 8;
    plan.model.tiedEmbeddings = true;
    const Outcome onCpu = runPlan(plan);
    NcclSums gpus({.count = 4});
    const Outcome outcome = gpus.run(plan);
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
    EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
    const std::vector<std::string> log = gpus.nccl().log();
    EXPECT_EQ(std::ranges::count(log, "init 3/4"), 1);
    gpus.expectNothingLeft();
}

// An operation takes 1 µs, a sum 5: it begins when the last replica has its gradients, and the update when it is over.
TEST(ReplicasByNccl, SumOnStreamsOfTheirOwnBesideTheBackward)
{
    Plan plan = linear("1f1b", 2, 2);
    plan.run.steps = 1;
    plan.run.check = CheckMode::Off;
    NcclSums gpus({.count = 4, .ofOperation = 1'000, .ofExchange = 5'000});
    const Outcome outcome = gpus.run(plan, {.clock = &FakeGpus::get().clock()});
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    for (const int r : {0, 1, 2, 3}) {
        const traces::Lane& sums = outcome.trace.lane(*outcome.trace.findLane(Rank{r}, LaneKind::Collective));
        const traces::Lane& actions = outcome.trace.lane(*outcome.trace.findLane(Rank{r}, LaneKind::Compute));
        ASSERT_EQ(sums.size(), 4U);
        std::map<std::size_t, TimeNs> ready;
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(*outcome.trace.findLane(Rank{r}, LaneKind::Collective))) ready[edge.to.index] = edge.ready;
        TimeNs free = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            EXPECT_EQ(sums.begin(i), std::max(free, ready.at(i)));
            EXPECT_EQ(sums.end(i) - sums.begin(i), 5'000);
            free = sums.end(i);
        }
        EXPECT_LT(sums.begin(0), actions.end(actions.size() - 2)); // of the second layer, while the first goes back
        EXPECT_EQ(actions.begin(actions.size() - 1), free);
    }
    gpus.expectNothingLeft();
}

TEST(ReplicasByNccl, AreRefusedBeforeTheRunWhereTheyCannotBe)
{
    NcclSums gpus({.count = 2});
    Plan plan = linear("1f1b", 2, 2);
    EXPECT_THAT(gpus.refusal(plan), HasSubstr("run.transport: NCCL cannot sum the replicas' gradients: ranks 0 and 1 are both on GPU bus 0 of this host, and NCCL takes one "
                                              "rank per GPU. Take transport auto, which sums by copies, or give each rank of each replica a GPU of its own"));
    FakeGpus::get().reset({.count = 4});
    plan.run.gpus = {0, 1, 2, kOnCpu};
    EXPECT_THAT(gpus.refusal(plan), HasSubstr("rank 3 is on the CPU"));
    plan.run.gpus = {};
    Plan divides = divided(plan, Sharding::Zero1);
    EXPECT_THAT(gpus.refusal(divides), HasSubstr("what replicas divide goes by copies alone. Take transport auto"));
    const auto started = makeLocalSession({.devices = &FakeGpus::get().source()})->start(byNccl(plan));
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, HasSubstr("none of NVIDIA's"));
    EXPECT_THAT(gpus.nccl().log(), IsEmpty());
}

// Whose sums have an order.
TEST(ReplicasByNccl, GiveWayToCopiesWhereNobodyAsksForThem)
{
    NcclSums gpus({.count = 4});
    Plan plan = linear("1f1b", 2, 3);
    plan.run.device = DeviceKind::Cuda;
    const LocalSessionOptions options{.devices = &FakeGpus::get().source(), .nccl = &gpus.source};
    const Outcome outcome = runPlan(plan, options);
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
    plan.run.transport = Transport::Nccl;
    plan.run.mode = RunMode::Emulated;
    const Outcome emulated = runPlan(plan, options);
    ASSERT_TRUE(emulated.result) << saidBy(emulated);
    EXPECT_THAT(emulated.trace.notes(), Contains(HasSubstr("run.transport nccl has no effect")));
    EXPECT_THAT(gpus.nccl().log(), IsEmpty());
}

// Of two replicas ranks 2 and 3 are the second in their cliques.
TEST(ReplicasByNccl, EndWithTheReasonOfAnAsynchronousError)
{
    NcclSums gpus({.count = 4});
    const Outcome outcome = gpus.led(linear("1f1b", 2, 2), [&](Session&, Outcome&) { gpus.nccl().fail(1, kRemoteError); });
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->rank, AnyOf(2, 3));
    EXPECT_THAT(outcome.failure->text, HasSubstr("the sum of the replicas' gradients by NCCL failed: rank " + std::to_string(*outcome.failure->rank) + ": "));
    EXPECT_THAT(outcome.failure->text, HasSubstr("another rank has ended, or the connection to it broke"));
    EXPECT_THAT(outcome.failure->text, HasSubstr("Without NCCL: --transport auto"));
    EXPECT_GT(outcome.trace.steps().size(), 2U); // what ran until then
    gpus.expectNothingLeft();
}

// The clock by which NCCL is waited for is the test's: nothing is late before it says so.
TEST(ReplicasByNccl, EndWhereACallHangs)
{
    NcclSums gpus({.count = 4});
    ManualClock clock;
    gpus.source.clock = &clock;
    const Outcome outcome = gpus.led(linear("1f1b", 2, 2), [&](Session& session, Outcome& so) {
        gpus.nccl().hang(1);
        while (!gpus.nccl().hangs()) std::this_thread::yield();
        follow(session, so, [&] {
            clock.advance(30'000'000'000);
            return false;
        });
    });
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, AnyOf(HasSubstr("NCCL could not put"), HasSubstr("nothing has moved on its communication stream")));
    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
}

// NCCL ends its sum for all, but its kernel does not end.
TEST(ReplicasByNccl, GiveUpAGpuThatHangsInASum)
{
    NcclSums gpus({.count = 4, .hangsFromExchange = 2, .hangingGpu = 2});
    ManualClock clock;
    gpus.source.clock = &clock;
    {
        const auto session = gpus.session({.devicePatience = std::chrono::seconds(1)});
        Outcome outcome;
        ASSERT_TRUE(session->start(byNccl(linear("1f1b", 2, 2))).ok());
        followToEnd(*session, outcome);
        EXPECT_EQ(outcome.last, SessionState::Failed);
        EXPECT_THAT(saidBy(outcome), AllOf(HasSubstr("GPU 2 has not answered rank 2 for 1 s"), HasSubstr("the next run takes a new one")));
        EXPECT_NE(session->spent(), "");
    } // which waits for no one
    gpus.release();
}

TEST(ReplicasByNccl, LetNobodyWaitForARankThatFails)
{
    for (const int microbatch : {0, 3}) {
        NcclSums gpus({.count = 4});
        const InjectedFault fault{.kind = InjectedFault::Kind::Exception, .action = traces::ActionKind::Backward, .stage = traces::Stage{0},
                                  .microbatch = traces::MicroBatch{microbatch}, .step = traces::Step{1}};
        const Outcome outcome = gpus.run(linear("1f1b", 2, 2), {.fault = fault});
        EXPECT_EQ(outcome.last, SessionState::Failed);
        EXPECT_THAT(saidBy(outcome), HasSubstr("failed in step 1 on rank 0"));
        gpus.expectNothingLeft();
    }
}

TEST(ReplicasByNccl, EndWhereverAGpuFails)
{
    const int before = FakeGpus::get().blocks();
    const auto run = [](std::optional<int> failsFrom) {
        Plan plan = linear("1f1b", 2, 2);
        plan.run.check = CheckMode::Off;
        NcclSums gpus({.count = 4, .failsFrom = failsFrom});
        Outcome outcome = gpus.run(plan);
        EXPECT_THAT(gpus.nccl().misuse(), IsEmpty());
        return outcome;
    };
    ASSERT_TRUE(run({}).result);
    const int operations = FakeGpus::get().operations();
    for (const int part : {0, 20, 40, 60, 80, 95, 99}) {
        const Outcome outcome = run(operations * part / 100);
        EXPECT_EQ(outcome.last, SessionState::Failed) << part;
        EXPECT_THAT(saidBy(outcome), HasSubstr("illegal memory access")) << part;
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

TEST(ReplicasByNccl, PauseGoOnAndStopWithoutAFailure)
{
    NcclSums gpus({.count = 4});
    const Outcome outcome = gpus.led(linear("1f1b", 2, 2), [](Session& session, Outcome& so) {
        for (int round = 0; round < 10; ++round) {
            session.pause();
            follow(session, so, [&] { return session.state() == SessionState::Paused; });
            const std::size_t steps = so.trace.steps().size();
            session.resume();
            follow(session, so, [&] { return so.trace.steps().size() > steps; });
        }
        session.stop();
    });
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_FALSE(outcome.failure) << outcome.failure->text;
    EXPECT_TRUE(outcome.result);
    gpus.expectNothingLeft();
}

TEST(ReplicasByNccl, DoNotStartWhereTheRanksDoNotMeet)
{
    for (const char* call : {"init", "groupEnd", "allReduce"}) {
        NcclSums gpus({.count = 4});
        gpus.nccl().failCall(call, 2);
        const Outcome outcome = gpus.run(linear("1f1b", 2, 2));
        EXPECT_EQ(outcome.last, SessionState::Failed) << call;
        EXPECT_THAT(saidBy(outcome), HasSubstr("a call of the system failed in it")) << call;
        EXPECT_THAT(outcome.trace.steps(), IsEmpty());
        gpus.expectNothingLeft();
    }
}

TEST(ReplicasByNccl, EndWhereAThreadOfTheirSumsCannotBeStarted)
{
    NcclSums gpus({.count = 4});
    const InjectedFault fault{.kind = InjectedFault::Kind::NoThread, .stage = traces::Stage{1}};
    const Outcome outcome = gpus.run(linear("1f1b", 2, 2), {.fault = fault});
    EXPECT_EQ(outcome.last, SessionState::Failed);
    gpus.expectNothingLeft();
}

} // namespace
} // namespace stagecraft::runtime
