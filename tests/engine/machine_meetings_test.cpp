// SPDX-License-Identifier: Apache-2.0
#include "machine_trace.h"
#include "random_case.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/recompute.h"
#include "engine/schedule/shard.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/machine.h"
#include "traces/analysis/critical_path.h"

#include <gmock/gmock.h>

#include <set>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::SendMode;
using engine::TransferPlace;
using traces::LaneKind;
using traces::Rank;
using traces::TimeNs;

namespace {

// Two ranks that both send before they receive: buffered that is fine, and where a send waits for its receipt it is for ever.
TEST(Machine, WaitsForTheOtherSideInARendezvous)
{
    const std::string order = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
    const engine::Schedule schedule = engine::parseSchedule(order).value();
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    EXPECT_EQ(figuresOf(schedule, costs).makespan, 6 * kSlot);
    costs.machine.send = SendMode::Rendezvous;
    const traces::Expected<traces::Trace> stuck = engine::simulate(schedule, costs);
    ASSERT_FALSE(stuck.ok());
    EXPECT_THAT(stuck.error().message, ::testing::HasSubstr("rank 0 at position 3 (0SEND_F1) waits for"));
    const engine::PartialSimulation partial = engine::simulateUntilStuck(schedule, costs).value();
    ASSERT_EQ(partial.deadlock.size(), 2U);
    EXPECT_EQ(partial.deadlock[1].action, "1SEND_B0");
    EXPECT_EQ(endOf(partial.trace, "1B0"), 3 * kSlot); // as far as it came
    EXPECT_EQ(partial.trace.steps().size(), 1U);

    // received in another order it runs: 0F1 [1,2] waits with its send until rank 1 takes it at 3
    const engine::Schedule meets = engine::parseSchedule("0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
                                                         "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                                       .value();
    const traces::Trace trace = simulated(meets, costs);
    EXPECT_EQ(endOf(trace, "0F1"), 2 * kSlot);
    EXPECT_EQ(endOf(trace, "1F1"), 4 * kSlot);
    EXPECT_EQ(figuresIn(trace).makespan, 6 * kSlot);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::Unexplained), 0);
    EXPECT_EQ(idleBy(figuresIn(trace), 0, traces::GapCause::WaitForStage), 2 * kSlot); // for 1B0 from 2 to 3, for 1B1 from 4 to 5
}

// Megatron-LM's fused pairs: each rank is in its send and its receipt at once, so 1F1B takes the time that it takes with buffers.
TEST(Machine, WaitsForTransfersThatArePostedTogetherAsOne)
{
    engine::CostTable costs = slotCosts(2, kSlot, 2 * kSlot);
    costs.machine.send = SendMode::Rendezvous;
    const engine::Schedule fused = engine::lowerCommunication(made("1f1b", 2, 3), engine::LoweringRule::Megatron).value();
    const traces::Trace trace = simulated(fused, costs);
    // by hand: rank 1 is in (1SEND_B0;1RECV_F1) from 4 on, rank 0 in (0SEND_F1;0RECV_B0) from 2 on
    EXPECT_EQ(endOf(trace, "0B0"), 6 * kSlot);
    EXPECT_EQ(endOf(trace, "1B1"), 7 * kSlot);
    EXPECT_EQ(endOf(trace, "0B2"), 12 * kSlot);
    for (int p = 2; p <= 5; ++p)
        for (const int chunks : {1, 2}) {
            const engine::Schedule plain = made(chunks == 1 ? "1f1b" : "interleaved", p, 2 * p, chunks);
            for (const engine::LoweringRule rule : engine::kLoweringRules) {
                const engine::Schedule lowered = engine::lowerCommunication(plain, rule).value();
                engine::CostTable table = slotCosts(plain.stages(), kSlot, 2 * kSlot, kSlot / 2);
                table.machine.send = SendMode::Rendezvous;
                EXPECT_EQ(engine::simulate(lowered, table).ok(), engine::validate(lowered, {.send = SendMode::Rendezvous}).legal())
                    << p << " " << chunks << " " << engine::loweringRuleName(rule);
            }
        }
}

TEST(Machine, RefusesAChannelWhoseMessagesAreTakenInAnotherOrder)
{
    const engine::Schedule schedule =
        engine::parseSchedule("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1\n").value();
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    EXPECT_TRUE(engine::simulate(schedule, costs).ok());
    costs.machine.send = SendMode::Channel;
    EXPECT_THAT(engine::simulate(schedule, costs).error().message, ::testing::HasSubstr("1RECV_F1"));
    // as far as it comes: rank 1 never has what stands behind the message that it does not want first
    const engine::PartialSimulation stuck = engine::simulateUntilStuck(schedule, costs).value();
    EXPECT_FALSE(stuck.deadlock.empty());
    EXPECT_EQ(stuck.trace.lane(traces::LaneId{0U}).size(), 2U);
    EXPECT_EQ(stuck.trace.lane(traces::LaneId{1U}).size(), 0U);
}

TEST(Machine, LetsAChannelPassInItsOrderInEveryStep)
{
    engine::CostTable costs = slotCosts(4, kSlot, 2 * kSlot, kSlot / 2);
    const engine::Schedule schedule = engine::lowerCommunication(made("1f1b", 4, 6)).value();
    const TimeNs buffered = simulated(schedule, costs, 3).extent().end;
    costs.machine.send = SendMode::Channel;
    EXPECT_EQ(simulated(schedule, costs, 3).extent().end, buffered);
}

// Sums of what is idle, memory that comes and goes, and nothing that ends before it can: for random machines.
TEST(Machine, KeepsItsBooksOnRandomMachines)
{
    for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        std::mt19937 random(seed);
        const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        const int p = drawn.schedule.ranks;
        const TimeNs plain = figuresOf(drawn.schedule, drawn.costs).makespan;
        for (engine::StageCosts& stage : drawn.costs.stages) {
            stage.optimizer = among(0, 300);
            stage.weightBytes = among(1, 3000);
            stage.gradientBytes = stage.weightBytes;
            stage.optimizerBytes = 2 * stage.weightBytes;
            stage.outputBytes = among(0, 400);
            stage.inputBytes = 10;
        }
        engine::MachineModel& machine = drawn.costs.machine;
        machine.ranksPerNode = among(0, 3);
        machine.between = {.latency = drawn.costs.transfer + among(0, 500), .bytesPerSecond = 1e9};
        machine.transfers = static_cast<TransferPlace>(among(0, 1));
        machine.sharedLinks = among(0, 1) == 1;
        machine.replicas = among(1, 4);
        machine.replica = {.latency = 7, .bytesPerSecond = 1e9};
        machine.bucketBytes = 700;
        machine.barrier = among(0, 1) == 1;
        for (int r = 0; r < p; ++r) machine.rankScale.push_back(1 + 0.25 * among(0, 4));
        if (among(0, 1) == 1)
            for (int r = 0; r < p; ++r) machine.lateStart.push_back(among(0, 900));
        machine.host = {.latency = among(0, 300), .bytesPerSecond = 1e9};
        drawn.costs.sharding = static_cast<engine::Sharding>(among(0, 3));
        if (drawn.schedule.asynchronous() || drawn.schedule.inference()) drawn.costs.sharding = static_cast<engine::Sharding>(among(0, 1));
        if (among(0, 1) == 1) drawn.schedule = engine::shard(drawn.schedule, drawn.costs.sharding);
        if (among(0, 2) == 0 && !engine::hasOffload(drawn.schedule) && !drawn.schedule.inference())
            drawn.schedule = engine::withRecompute(drawn.schedule);
        if (among(0, 1) == 1) machine.send = engine::SendMode::Channel;
        ASSERT_TRUE(engine::validate(drawn.schedule, {.send = machine.send}).legal());
        const traces::Trace trace = simulated(drawn.schedule, drawn.costs, 3);
        ASSERT_EQ(trace.steps().size(), 3U);
        for (int step = 0; step < 3; ++step) {
            const traces::StepFigures figures = figuresIn(trace, step);
            if (step == 0) {
                EXPECT_GE(trace.steps().front().span.end, plain);
            }
            for (const traces::RankFigures& rank : figures.ranks) {
                EXPECT_EQ(rank.busy + rank.idle, figures.makespan);
                TimeNs causes = 0;
                for (const TimeNs part : rank.idleByCause) causes += part;
                EXPECT_EQ(causes, rank.idle);
            }
            const traces::CriticalPath path = traces::criticalPath(trace, traces::Step{step}).value();
            EXPECT_EQ(path.total.sum(), figures.makespan);
            if (machine.lateStart.empty()) { // whatever else a rank waits for is some action
                EXPECT_EQ(path.total.wait, 0) << "step " << step;
            }
        }
        for (const traces::MemorySeries& series : trace.memory()) {
            EXPECT_GE(*std::min_element(series.value.begin(), series.value.end()), 0) << memoryClassText(series.memory);
            const bool stays = series.memory == traces::MemoryClass::Weights || series.memory == traces::MemoryClass::Optimizer ||
                               (series.memory == traces::MemoryClass::Versions && drawn.schedule.name == "pipedream-2bw");
            if (!stays) {
                EXPECT_EQ(series.value.back(), 0) << memoryClassText(series.memory);
            }
        }
    }
}

// The same where hand-offs keep both ranks, and where a send waits for its receipt.
TEST(Machine, ExplainsEveryWaitOfRanksThatMeet)
{
    int ran = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        engine::MachineModel& machine = drawn.costs.machine;
        machine.transfers = seed % 3 == 0 ? TransferPlace::Nothing : TransferPlace::Ranks;
        machine.send = seed % 2 == 0 ? SendMode::Rendezvous : SendMode::Buffered;
        machine.replicas = 1 + static_cast<int>(seed % 2);
        machine.replica = {.latency = 70, .bytesPerSecond = 1e9};
        const traces::Expected<traces::Trace> trace = engine::simulate(drawn.schedule, drawn.costs, {}, 2);
        if (!trace.ok()) continue; // the order of the transfers hangs
        ++ran;
        for (int step = 0; step < 2; ++step) {
            const traces::CriticalPath path = traces::criticalPath(trace.value(), traces::Step{step}).value();
            EXPECT_EQ(path.total.sum(), figuresIn(trace.value(), step).makespan);
            EXPECT_EQ(path.total.wait, 0) << "step " << step;
        }
    }
    EXPECT_GT(ran, 100);
}

// With fixed orders and ways that nobody shares.
TEST(Machine, NeverEndsEarlierWithMoreLatency)
{
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        for (engine::StageCosts& stage : drawn.costs.stages) stage.outputBytes = 50;
        engine::MachineModel& machine = drawn.costs.machine;
        machine.ranksPerNode = 1 + static_cast<int>(seed % 3);
        machine.transfers = static_cast<TransferPlace>(seed % 3);
        machine.send = seed % 2 == 0 ? SendMode::Buffered : SendMode::Channel;
        const TimeNs before = simulated(drawn.schedule, drawn.costs).extent().end;
        machine.between.latency += 137;
        drawn.costs.inside.latency += 31;
        drawn.costs.transfer += 31;
        EXPECT_GE(simulated(drawn.schedule, drawn.costs).extent().end, before);
    }
}

} // namespace
