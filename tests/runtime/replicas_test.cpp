// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel replicas live: d pipelines on other rows of the batch, whose gradients are summed in buckets.
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include "engine/explain/observed.h"
#include "engine/runtime/replica_part.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Bytes;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;
using traces::Stage;
using traces::TimeNs;

Plan replicated(const std::string& schedule, int ranks, int chunks, int microbatches, int replicas, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.pipeline.microbatches = microbatches;
    plan.machine.replicas = replicas;
    plan.machine.bucketBytes = 16 << 10;
    plan.run.steps = 2;
    return plan;
}

Plan legal(Plan plan)
{
    while (!checkPlan(plan).ok() && plan.pipeline.microbatches < 32) ++plan.pipeline.microbatches;
    return plan;
}

using Case = std::tuple<std::string, RunMode>;
class ReplicatedFamily : public testing::TestWithParam<Case> {};

// The check goes through the whole batch of all replicas with the sequential model, and adds up in the order in which they do.
TEST_P(ReplicatedFamily, TrainsWithTheGradientsOfTheWholeBatch)
{
    const auto& [name, mode] = GetParam();
    const ScheduleFamily& family = *findFamily(name);
    const bool two = name == "dualpipe" || name == "chimera";
    const Plan plan = legal(replicated(name, two ? 4 : 2, family.minChunks, two ? 8 : 4, 2, mode));
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    EXPECT_EQ(outcome.result->outputs.front().front(), 2 * plan.pipeline.microbatches * plan.model.microbatchRows);
    EXPECT_EQ(outcome.trace.info.ranks, 2 * plan.pipeline.ranks);
    EXPECT_EQ(outcome.trace.lostEvents(), 0);
    EXPECT_TRUE(outcome.trace.notes().empty() || mode == RunMode::Emulated);

    // both replicas do all that the schedule says
    std::map<int, std::multiset<std::string>> ran;
    for (const Lane& lane : outcome.trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == LaneKind::Compute) ran[lane.info().rank.value].insert(toText(lane.action(i)));
    for (int r = 0; r < plan.pipeline.ranks; ++r) EXPECT_EQ(ran[r], ran[r + plan.pipeline.ranks]);

    // no rank updates a stage before its sums are there, and every sum is of something that was made
    const Schedule schedule = scheduleOf(plan).value();
    std::size_t updates = 0;
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l) {
        const Lane& lane = outcome.trace.lanes()[l];
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
            const traces::Slice from = outcome.trace.slice(edge.from);
            const traces::Slice to = outcome.trace.slice(edge.to);
            EXPECT_GE(to.begin, edge.ready);
            if (to.action.kind() == ActionKind::Optimizer) {
                ++updates;
                EXPECT_EQ(from.action.kind(), ActionKind::AllReduce);
                EXPECT_GE(edge.ready, from.end);
                EXPECT_EQ(from.step, to.step);
            } else if (lane.info().kind == LaneKind::Collective) {
                EXPECT_TRUE(from.action.kind() == ActionKind::Backward || from.action.kind() == ActionKind::WeightGrad ||
                            from.action.kind() == ActionKind::Overlap);
                EXPECT_LE(edge.ready, from.end);
                EXPECT_GE(edge.ready, from.begin);
            }
        }
    }
    const std::size_t copies = schedule.flows().size();
    EXPECT_EQ(updates, schedule.inference() ? 0 : 2 * 2 * copies * static_cast<std::size_t>(schedule.stages()));
}

std::vector<std::string> synchronousFamilies()
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies())
        if (!family.asynchronous) names.push_back(family.name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(Runtime, ReplicatedFamily,
                         testing::Combine(testing::ValuesIn(synchronousFamilies()), testing::Values(RunMode::Threads, RunMode::Emulated)),
                         [](const auto& each) { return caseName(std::get<0>(each.param), std::get<1>(each.param)); });

// Neither the number of buckets nor the kind of run nor the cut of the model changes a bit of the training.
TEST(Replicas, TrainAlikeWithBucketsOfAnySize)
{
    for (const int replicas : {1, 2, 3}) {
        std::vector<double> expected;
        for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
            for (const Bytes bucket : {Bytes{1}, Bytes{5000}, Bytes{25} << 20}) {
                for (const char* schedule : {"1f1b", "zb-h1"}) {
                    Plan plan = replicated(schedule, 2, 1, 4, replicas, mode);
                    plan.machine.bucketBytes = bucket;
                    plan.run.steps = 3;
                    const Outcome outcome = runPlan(plan);
                    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
                    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
                    if (expected.empty()) expected = outcome.result->loss;
                    EXPECT_EQ(outcome.result->loss, expected) << replicas << " replicas, " << schedule << ", buckets of " << bucket;
                }
            }
    }
}

// The same micro-batches by one pipeline: the same mean, but for the order in which gradients are added up.
TEST(Replicas, TrainAsOnePipelineWouldOnAllTheirData)
{
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Threads);
    const std::vector<double> two = runPlan(plan).result->loss;
    plan.machine.replicas = 1;
    plan.pipeline.microbatches = 8;
    const std::vector<double> one = runPlan(plan).result->loss;
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5);
}

TEST(Replicas, NameTheLanesOfEach)
{
    const Outcome outcome = runPlan(replicated("1f1b", 2, 1, 4, 2, RunMode::Threads));
    std::set<std::string> names;
    for (const Lane& lane : outcome.trace.lanes()) names.insert(lane.info().name);
    EXPECT_TRUE(names.contains("replica 0 · rank 1"));
    EXPECT_TRUE(names.contains("replica 1 · rank 0"));
    EXPECT_TRUE(names.contains("replica 1 · rank 0 collectives"));
    EXPECT_EQ(traces::replicaOf(outcome.trace.info, Rank{3}), 1);
    EXPECT_EQ(traces::rankInReplica(outcome.trace.info, Rank{3}), Rank{1});
    EXPECT_EQ(traces::stepFigures(outcome.trace, traces::Step{1}).value().ranks.size(), 4U);
    EXPECT_THAT(outcome.trace.info.title, testing::HasSubstr("2 replicas of 2 ranks"));
}

// Of stage 0, one bucket for each layer: that of the block behind the embedding is on its way while the backward goes on.
TEST(Replicas, SumBesideTheBackward)
{
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Emulated);
    plan.machine.bucketBytes = 1;
    plan.machine.replica = {.latency = 1000, .bytesPerSecond = 1e9};
    const ManualClock even(1'000);
    const Outcome outcome = runPlan(plan, {.clock = &even, .cpuClock = &even});
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    const Lane& sums = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Collective));
    const Lane& compute = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Compute));
    TimeNs lastBackward = 0;
    for (std::size_t i = 0; i < compute.size(); ++i)
        if (compute.action(i).kind() == ActionKind::Backward && compute.step(i) == traces::Step{0}) lastBackward = compute.end(i);
    EXPECT_LT(sums.begin(0), lastBackward);
    // as many as there are parameters, twice the time of half the bytes each (and two latencies)
    const std::size_t parameters = outcome.trace.info.ranks == 4 ? sums.size() / 2 : 0;
    EXPECT_EQ(parameters, 2U + 12U); // embedding and block
    TimeNs time = 0;
    for (std::size_t i = 0; i < parameters; ++i) time += sums.end(i) - sums.begin(i);
    const Bytes bytes = 4 * (layerCounts(plan.model)[0].parameters + layerCounts(plan.model)[1].parameters);
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(parameters * 2 * 1000) + static_cast<double>(bytes), static_cast<double>(parameters) * 2);
}

// What a run measures predicts its own step, with the ways between the replicas as the plan has them: but for the buckets, which a
// simulation takes as equal and a run fills with whole parameters.
TEST(Replicas, TakeTheTimeThatASimulationOfTheirCostsSays)
{
    for (const Sharding sharding : kShardings) {
        Plan plan = replicated("1f1b", 2, 1, 8, 2, RunMode::Emulated);
        plan.model.layers = {Embedding{500, 32, 64}, TransformerBlock{64, 2, 256}, TransformerBlock{64, 2, 256}, Head{64, 500}};
        plan.pipeline.sharding = sharding;
        plan.machine.bucketBytes = 100 << 10;
        plan.machine.replica = {.latency = 20'000, .bytesPerSecond = 300e6};
        plan.costs.latency = 50'000;
        plan.run.steps = 6;
        plan.run.check = CheckMode::First;
        const ManualClock even(10'000);
        const Outcome outcome = runPlan(plan, {.clock = &even, .cpuClock = &even});
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        const auto step = static_cast<double>(outcome.result->stepNs);
        EXPECT_NEAR(static_cast<double>(outcome.result->predictedStepNs), step, 0.05 * step) << shardingName(sharding);
        EXPECT_LT(outcome.result->idealStepNs, outcome.result->predictedStepNs);
        // and so does a plan that is made of the trace alone
        const Expected<Observed> seen = observe(outcome.trace);
        ASSERT_TRUE(seen.ok()) << seen.error().message;
        EXPECT_EQ(seen.value().plan.machine.replicas, 2);
        const Plan& again = seen.value().plan;
        EXPECT_NEAR(static_cast<double>(simulate(scheduleOf(again).value(), costsOf(again).value()).value().extent().length()), step, 0.05 * step);
    }
}

std::map<int, Bytes> heldAtTheEnd(const Outcome& outcome, MemoryClass memory)
{
    std::map<int, Bytes> held;
    for (const traces::MemorySeries& series : outcome.trace.memory())
        if (series.memory == memory) held[series.rank.value] = series.value.back();
    return held;
}

// ZeRO-1: the same weights to the bit after every step, with the optimizer's state divided.
TEST(Replicas, DivideTheUpdateToTheBit)
{
    for (const OptimizerKind optimizer : {OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::AdamW})
        for (const int replicas : {2, 3})
            for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
                Plan plan = replicated("1f1b", 2, 1, 4, replicas, mode);
                plan.run.optimizer = optimizer;
                plan.run.steps = 4;
                plan.run.learningRate = 1e-2;
                const Outcome whole = runPlan(plan);
                plan.pipeline.sharding = Sharding::Zero1;
                const Outcome divided = runPlan(plan);
                ASSERT_TRUE(divided.result) << (divided.failure ? divided.failure->text : "");
                EXPECT_EQ(divided.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << divided.result->gradientMaxAbsDiff;
                EXPECT_EQ(divided.result->loss, whole.result->loss);
                // what all replicas hold together is what one held, but for Adam's step counters of 4 bytes a tensor
                const auto wholeState = heldAtTheEnd(whole, MemoryClass::Optimizer);
                const auto dividedState = heldAtTheEnd(divided, MemoryClass::Optimizer);
                for (int r = 0; r < 2; ++r) {
                    Bytes sum = 0;
                    for (int j = 0; j < replicas; ++j) {
                        const Bytes own = dividedState.at(j * 2 + r);
                        sum += own;
                        EXPECT_LT(static_cast<double>(own), static_cast<double>(wholeState.at(r)) / replicas * 1.1);
                    }
                    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(wholeState.at(r)), 4.0 * 16 * replicas);
                }
                EXPECT_EQ(heldAtTheEnd(divided, MemoryClass::Weights), heldAtTheEnd(whole, MemoryClass::Weights));
                EXPECT_EQ(heldAtTheEnd(divided, MemoryClass::Gradients), heldAtTheEnd(whole, MemoryClass::Gradients));
                std::set<std::string> kinds;
                const Lane& lane = divided.trace.lane(*divided.trace.findLane(Rank{0}, LaneKind::Collective));
                for (std::size_t i = 0; i < lane.size(); ++i) kinds.insert(toText(lane.action(i)));
                EXPECT_THAT(kinds, testing::ElementsAre("0REDUCE_GRAD", "0UNSHARD"));
            }
}

TEST(Replicas, DivideTheUpdateOfTwoDirections)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = replicated("chimera", 4, 1, 8, 2, mode);
        plan.run.steps = 3;
        const std::vector<double> whole = runPlan(plan).result->loss;
        plan.pipeline.sharding = Sharding::Zero1;
        const Outcome divided = runPlan(plan);
        ASSERT_TRUE(divided.result) << (divided.failure ? divided.failure->text : "");
        EXPECT_EQ(divided.result->gradientCheck, GradientCheck::Bitwise);
        EXPECT_EQ(divided.result->loss, whole);
    }
}

// Each copy's sum over the replicas first, then the two of the table.
TEST(Replicas, TieEmbeddings)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const Sharding sharding : {Sharding::None, Sharding::Zero1}) {
            std::vector<double> expected;
            for (const int ranks : {1, 2, 4}) {
                Plan plan = replicated("1f1b", ranks, 1, 4, 2, mode);
                plan.model.tiedEmbeddings = true;
                plan.pipeline.sharding = sharding;
                const Outcome outcome = runPlan(plan);
                ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
                EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << ranks;
                if (expected.empty()) expected = outcome.result->loss;
                EXPECT_EQ(outcome.result->loss, expected) << ranks;
            }
            for (const char* name : {"zb-v", "chimera"}) {
                Plan plan = replicated(name, 2, findFamily(name)->minChunks, 4, 2, mode);
                plan.model.tiedEmbeddings = true;
                plan.pipeline.sharding = sharding;
                EXPECT_EQ(runPlan(plan).result->gradientCheck, GradientCheck::Bitwise) << name;
            }
        }
}

// The norm is that of the whole sum, in every replica; where the update is divided every replica gets the whole sum for it.
TEST(Replicas, ClipByTheNormOfTheWholeBatch)
{
    std::vector<double> expected;
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const Sharding sharding : {Sharding::None, Sharding::Zero1})
            for (const int ranks : {1, 2}) {
                Plan plan = replicated("1f1b", ranks, 1, 4, 2, mode);
                plan.run.clipNorm = 0.1;
                plan.run.lossScale = 8;
                plan.run.steps = 3;
                plan.pipeline.sharding = sharding;
                const Outcome outcome = runPlan(plan);
                ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
                EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
                if (expected.empty()) expected = outcome.result->loss;
                EXPECT_EQ(outcome.result->loss, expected);
            }
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Threads);
    plan.run.steps = 3;
    EXPECT_NE(runPlan(plan).result->loss, expected);
}

TEST(Replicas, GoOnFromACheckpoint)
{
    const traces::test::TemporaryFolder folder;
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Threads);
    plan.run.steps = 4;
    const std::vector<double> whole = runPlan(plan).result->loss;
    plan.run.steps = 2;
    plan.run.checkpoint = folder.file("kept");
    ASSERT_TRUE(runPlan(plan).result);
    plan.run.steps = 4;
    plan.run.resume = folder.file("kept");
    plan.run.checkpoint.clear();
    const Outcome rest = runPlan(plan);
    ASSERT_TRUE(rest.result) << (rest.failure ? rest.failure->text : "");
    EXPECT_EQ(rest.result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(rest.result->loss, std::vector(whole.begin() + 2, whole.end()));
}

TEST(Replicas, TrainWithSlicesAndRecomputation)
{
    Plan plan = replicated("seq1f1b", 2, 1, 4, 2, RunMode::Threads);
    plan.pipeline.recompute = Recompute::Full;
    EXPECT_EQ(runPlan(plan).result->gradientCheck, GradientCheck::Bitwise);
    plan.pipeline.slices = 3;
    EXPECT_NE(runPlan(plan).result->gradientCheck, GradientCheck::Failed);
}

// The gradient of a key's bias is nothing but rounding, which slices do otherwise than whole sequences. A replica whose part of the bias is
// just that is judged beside the whole.
TEST(Replicas, AreCheckedByTheWholeOfWhatTheyDivide)
{
    Plan plan = littleTransformer("seq1f1b", 2, 1, RunMode::Emulated);
    plan.pipeline.slices = 2;
    plan.pipeline.sharding = Sharding::Zero1;
    plan.machine.replicas = 3; // of queries, keys and values, one bias each
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Tolerance);
}

TEST(Replicas, AreNotForSchedulesThatUpdateWithinAStep)
{
    const auto started = makeLocalSession()->start(replicated("pipedream", 2, 1, 4, 2, RunMode::Threads));
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, testing::HasSubstr("machine.replicas: schedule pipedream updates its weights while micro-batches are in flight"));
    Plan many = replicated("1f1b", 2, 1, 4, 200, RunMode::Threads);
    EXPECT_THAT(makeLocalSession()->start(many).error().message, testing::HasSubstr("mode threads runs at most 256 ranks, the plan has 400"));
}

// A wrong gradient of one replica is found, and a failure ends all of them.
TEST(Replicas, AreCheckedAndEndTogether)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = replicated("1f1b", 2, 1, 4, 2, mode);
        const Outcome wrong = runPlan(plan, {.fault = InjectedFault{.kind = InjectedFault::Kind::WrongGradient,
                                                                    .action = ActionKind::Backward,
                                                                    .stage = Stage{1},
                                                                    .microbatch = traces::MicroBatch{1}}});
        EXPECT_EQ(wrong.last, SessionState::Failed);
        ASSERT_TRUE(wrong.result);
        EXPECT_EQ(wrong.result->gradientCheck, GradientCheck::Failed);
        const Outcome thrown = runPlan(plan, {.fault = InjectedFault{.kind = InjectedFault::Kind::Exception,
                                                                     .action = ActionKind::Backward,
                                                                     .stage = Stage{0},
                                                                     .microbatch = traces::MicroBatch{2}}});
        EXPECT_EQ(thrown.last, SessionState::Failed);
        ASSERT_TRUE(thrown.failure);
        EXPECT_THAT(thrown.failure->text, testing::HasSubstr("exception injected"));
    }
    const Outcome none = runPlan(replicated("1f1b", 2, 1, 4, 2, RunMode::Threads),
                                 {.fault = InjectedFault{.kind = InjectedFault::Kind::NoThread, .stage = Stage{1}}});
    EXPECT_EQ(none.last, SessionState::Failed);
}

// What is made of a batch for all is nobody's; a rank holds the rows that it takes.
TEST(Replicas, HoldTheirOwnDataAlone)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{256, 256, Activation::None});
    plan.model.microbatchRows = 8;
    plan.costs.source = CostSource::Model;
    plan.run.steps = 1;
    const Bytes ofMicrobatch = 8 * 256 * 4;
    const auto dataOf = [](const Outcome& outcome, int rank) {
        const traces::MemorySeries* other = outcome.trace.memorySeries(Rank{rank}, MemoryClass::Other);
        return other == nullptr ? Bytes{0} : other->value.front();
    };
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        plan.run.mode = mode;
        plan.pipeline = {.schedule = "1f1b", .ranks = 2, .microbatches = 4, .customSchedule = {}};
        plan.machine.replicas = 4;
        const Outcome replicas = runPlan(plan);
        ASSERT_EQ(replicas.last, SessionState::Finished);
        for (int r = 0; r < 8; ++r) EXPECT_NEAR(static_cast<double>(dataOf(replicas, r)), static_cast<double>(4 * ofMicrobatch), 1024) << "rank " << r;

        // stage 0 down and the last stage up: inputs of one half of the micro-batches and targets of the other
        plan.pipeline = {.schedule = "dualpipe", .ranks = 4, .microbatches = 8, .customSchedule = {}};
        plan.machine.replicas = 1;
        const Outcome two = runPlan(plan);
        ASSERT_EQ(two.last, SessionState::Finished);
        EXPECT_NEAR(static_cast<double>(dataOf(two, 0)), static_cast<double>(8 * ofMicrobatch), 1024);
        EXPECT_NEAR(static_cast<double>(dataOf(two, 1)), 0, 1024);
    }
}

// With divided updates a rank waits for the others' weights at the end of a step, and then may be the one that checks it: until that is
// done nothing is called paused.
TEST(Replicas, ArePausedOnceTheStepIsChecked)
{
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Threads);
    plan.pipeline.sharding = Sharding::Zero1;
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::All;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(plan).ok());
    Outcome outcome;
    follow(*session, outcome, [&] { return outcome.trace.steps().size() >= 2; });
    for (int round = 0; round < 20; ++round) {
        session->pause();
        follow(*session, outcome, [&] { return session->state() == SessionState::Paused; });
        while (session->waitForRecords(std::chrono::milliseconds(20))) gather(outcome, session->takeRecords());
        const std::size_t steps = outcome.trace.steps().size();
        EXPECT_FALSE(session->waitForRecords(std::chrono::milliseconds(20))) << "after " << steps << " steps";
        session->resume();
        follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps; });
    }
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
}

TEST(Replicas, PauseGoOnAndStop)
{
    Plan plan = replicated("1f1b", 2, 1, 4, 2, RunMode::Threads);
    plan.run.steps = 100'000;
    plan.run.check = CheckMode::Off;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(plan).ok());
    Outcome outcome;
    follow(*session, outcome, [&] { return outcome.trace.steps().size() >= 2; });
    session->pause();
    follow(*session, outcome, [&] { return session->state() == SessionState::Paused; });
    session->resume();
    const std::size_t steps = outcome.trace.steps().size();
    follow(*session, outcome, [&] { return outcome.trace.steps().size() >= steps + 2; });
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_FALSE(outcome.trace.pauses().empty());
}

} // namespace
} // namespace stagecraft::runtime
