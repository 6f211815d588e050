// SPDX-License-Identifier: Apache-2.0
//
// Whole runs: every preset with a model and every schedule, in both modes.
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/milestones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::MicroBatch;
using traces::Rank;
using traces::Stage;

void expectEveryAction(const Outcome& outcome, const Schedule& schedule, int steps)
{
    for (int r = 0; r < schedule.ranks; ++r) {
        const Lane& lane = outcome.trace.lane(*outcome.trace.findLane(Rank{r}, LaneKind::Compute));
        std::vector<std::string> expected;
        for (int step = 0; step < steps; ++step) {
            for (const auto& action : schedule.order[static_cast<std::size_t>(r)]) expected.push_back(toText(action));
            for (int s = 0; s < schedule.stages(); ++s) {
                if (schedule.stageToRank[static_cast<std::size_t>(s)] == Rank{r})
                    expected.push_back(std::to_string(s) + "OPTIMIZER");
            }
        }
        std::vector<std::string> ran;
        for (std::size_t i = 0; i < lane.size(); ++i) ran.push_back(toText(lane.action(i)));
        EXPECT_EQ(ran, expected) << "rank " << r;
    }
}

// Every action of another stage's data has one edge, and begins when its data is there or later.
void expectEdges(const Outcome& outcome, const Schedule& schedule, int steps)
{
    const auto boundaries = static_cast<std::size_t>(2 * (schedule.stages() - 1) * schedule.microbatches * steps);
    EXPECT_EQ(outcome.trace.edgeCount(), boundaries);
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l) {
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
            EXPECT_GE(edge.ready, outcome.trace.slice(edge.from).end);
            EXPECT_GE(outcome.trace.slice(edge.to).begin, edge.ready);
        }
    }
}

Plan shortRun(std::string_view name, RunMode mode)
{
    Plan plan = preset(name);
    plan.run.mode = mode;
    plan.run.steps = 2;
    plan.run.check = CheckMode::All;
    return plan;
}

class EveryPreset : public testing::TestWithParam<std::tuple<std::string, RunMode>> {};

TEST_P(EveryPreset, RunsWithTheGradientsOfTheSequentialModel)
{
    const auto& [name, mode] = GetParam();
    const Plan plan = shortRun(name, mode);
    const Outcome outcome = runPlan(plan, {.cpuClock = &monotonicClock()}); // a quiet machine
    ASSERT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");
    ASSERT_TRUE(outcome.result);
    const RunResult& result = *outcome.result;
    EXPECT_EQ(result.gradientCheck, GradientCheck::Bitwise) << "largest difference " << result.gradientMaxAbsDiff;
    EXPECT_EQ(result.steps, 2);
    ASSERT_EQ(result.loss.size(), 2U);
    EXPECT_LT(result.loss[1], result.loss[0]);
    EXPECT_EQ(result.outputs.front(), outputShape(plan.model, plan.model.microbatchRows * plan.pipeline.microbatches));
    EXPECT_GT(result.efficiency, 0);

    const Schedule schedule = scheduleOf(plan).value();
    expectEveryAction(outcome, schedule, 2);
    expectEdges(outcome, schedule, 2);
    EXPECT_EQ(outcome.trace.lostEvents(), 0);
    EXPECT_TRUE(outcome.trace.notes().empty());
    EXPECT_EQ(outcome.states, (std::vector{SessionState::Preparing, SessionState::Running, SessionState::Finished}));
}

std::vector<std::string> presetsWithModel()
{
    std::vector<std::string> names;
    for (const PresetPlan& plan : presetPlans()) {
        const Plan made = presetPlan(plan.name).value();
        if (!made.model.empty() && made.machine.memory == 0) names.push_back(plan.name); // the others tell the story of memory
    }
    return names;
}

INSTANTIATE_TEST_SUITE_P(Runtime, EveryPreset,
                         testing::Combine(testing::ValuesIn(presetsWithModel()),
                                          testing::Values(RunMode::Threads, RunMode::Emulated)),
                         [](const auto& each) { return caseName(std::get<0>(each.param), std::get<1>(each.param)); });

TEST(LocalSession, SaysWhatHelloGivesOut)
{
    const Outcome outcome = runPlan(shortRun("hello", RunMode::Threads));
    ASSERT_TRUE(outcome.result);
    EXPECT_EQ(outcome.result->outputs, (std::vector<std::vector<std::int64_t>>{{32, 1024}}));
}

// The losses of a run follow from seed and model alone: not from schedule, partition, ranks or mode. To the bit.
TEST(LocalSession, ComputesTheSameLossesWithEveryScheduleAndInBothModes)
{
    std::vector<double> expected;
    const auto expectSame = [&](const Plan& plan) {
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << plan.pipeline.schedule << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << plan.pipeline.schedule;
        if (expected.empty()) expected = outcome.result->loss;
        EXPECT_EQ(outcome.result->loss, expected) << plan.pipeline.schedule;
    };
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        expectSame(littleTransformer("naive", 2, 1, mode));
        expectSame(littleTransformer("gpipe", 2, 1, mode));
        expectSame(littleTransformer("1f1b", 2, 1, mode));
        expectSame(littleTransformer("1f1b", 4, 1, mode));
        expectSame(littleTransformer("interleaved", 2, 2, mode));
        // the others that are made of F and B in one direction
        for (const char* name : {"eager-1f1b", "seq1f1b"}) expectSame(littleTransformer(name, 2, 1, mode));
        for (const char* name : {"1f1b-v", "hanayo"}) expectSame(littleTransformer(name, 2, 2, mode));
    }
}

// Every family that the engine executes, split backwards, V and wave placements, two directions and pairs among them: with the
// gradients of the sequential model to the bit, whatever order they are added up in.
class EveryFamily : public testing::TestWithParam<FamilyCase> {}; // each precision by the sequential model's in the same

TEST_P(EveryFamily, TrainsWithTheGradientsOfTheSequentialModel)
{
    const Plan plan = planOf(GetParam());
    const Schedule schedule = scheduleOf(plan).value();
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    EXPECT_EQ(outcome.trace.info.stageToRank, schedule.stageToRank);
    EXPECT_EQ(outcome.trace.info.upStageToRank, schedule.upStageToRank);
    EXPECT_EQ(outcome.trace.info.inference, schedule.inference());
    if (!schedule.inference()) {
        EXPECT_LT(outcome.result->loss.back(), outcome.result->loss.front());
    }
    // what ran is what the schedule says, each action on its rank, each edge in its order
    std::map<int, std::multiset<std::string>> expected, ran;
    for (int r = 0; r < schedule.ranks; ++r)
        for (const traces::Action& action : schedule.order[static_cast<std::size_t>(r)])
            engine::forEachWork(action, [&](const traces::Work& work) {
                if (work.kind == ActionKind::Optimizer) return; // the synchronous ones have it added
                for (int step = 0; step < plan.run.steps; ++step) expected[r].insert(toText(traces::Action{work, {}}));
            });
    for (const Lane& lane : outcome.trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == LaneKind::Compute && lane.action(i).kind() != ActionKind::Optimizer)
                ran[lane.info().rank.value].insert(toText(lane.action(i)));
    EXPECT_EQ(ran, expected);
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l)
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
            EXPECT_GE(edge.ready, outcome.trace.slice(edge.from).end);
            EXPECT_GE(outcome.trace.slice(edge.to).begin, edge.ready);
        }
    // everything that was kept for a backward is gone at the end
    for (const traces::MemorySeries& series : outcome.trace.memory())
        if (series.memory == traces::MemoryClass::Activations || series.memory == traces::MemoryClass::Gradients ||
            series.memory == traces::MemoryClass::Recompute) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
}

TEST_P(EveryFamily, TrainsAlikeWhereActivationsAreComputedAgain)
{
    Plan plan = planOf(GetParam());
    const std::vector<double> expected = runPlan(plan).result->loss;
    plan.pipeline.recompute = Recompute::Full;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << outcome.result->gradientMaxAbsDiff;
    EXPECT_EQ(outcome.result->loss, expected);
}

INSTANTIATE_TEST_SUITE_P(Runtime, EveryFamily, testing::ValuesIn(everyFamilyCase(5)),
                         [](const auto& each) { return caseName(each.param.name, each.param.mode, each.param.precision); });

// Sequences in slices: keys and values go from slice to slice, their gradients back. Sums round otherwise than those of whole
// sequences.
TEST(LocalSession, TrainsOnSequencesInSlices)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const Slicing slicing : {Slicing::Equal, Slicing::Balanced})
            for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
                Plan plan = littleTransformer("seq1f1b", 2, 1, mode);
                const std::vector<double> whole = runPlan(plan).result->loss;
                plan.pipeline.slices = 3; // of 16 positions
                plan.pipeline.slicing = slicing;
                plan.pipeline.recompute = recompute;
                plan.costs.attentionShare = 0.6;
                const Outcome outcome = runPlan(plan);
                ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
                EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Tolerance);
                EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-6);
                EXPECT_EQ(outcome.result->outputs, (std::vector<std::vector<std::int64_t>>{{8, 16, 50}}));
                ASSERT_EQ(outcome.result->loss.size(), whole.size());
                for (std::size_t step = 0; step < whole.size(); ++step) EXPECT_NEAR(outcome.result->loss[step], whole[step], 1e-4);
                EXPECT_EQ(outcome.trace.info.slices, 3);
                for (const traces::MemorySeries& series : outcome.trace.memory())
                    if (series.memory == traces::MemoryClass::Activations) {
                        EXPECT_EQ(series.value.back(), 0);
                    }
            }
}

// Chimera's units one after the other: doubled forwards are an order like any other; halved backwards take the halves of a
// micro-batch's rows by themselves, whose sums round otherwise.
TEST(LocalSession, TrainsWithEveryConcatenationOfUnits)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const Concatenation concatenation : {Concatenation::Direct, Concatenation::Doubling, Concatenation::Halving}) {
            Plan plan = littleTransformer("chimera", 4, 1, mode);
            plan.pipeline.microbatches = 8;
            plan.pipeline.concatenation = concatenation;
            const Outcome outcome = runPlan(plan);
            ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
            const bool halves = concatenation == Concatenation::Halving;
            EXPECT_EQ(outcome.result->gradientCheck, halves ? GradientCheck::Tolerance : GradientCheck::Bitwise);
            EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-6);
            EXPECT_EQ(outcome.result->outputs, (std::vector<std::vector<std::int64_t>>{{16, 16, 50}}));
        }
    Plan odd = littleTransformer("chimera", 4, 1, RunMode::Threads);
    odd.pipeline.concatenation = Concatenation::Halving;
    odd.model.microbatchRows = 3;
    const auto refused = makeLocalSession()->start(odd);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, testing::HasSubstr("in halves, and they have 3 rows: give an even number"));
}

// Weights that change while micro-batches are in flight: the versions that a stage holds are those that the schedule says.
TEST(LocalSession, KeepsTheVersionsOfAnAsynchronousSchedule)
{
    for (const auto& [mode, together] : {std::pair{RunMode::Threads, false}, {RunMode::Emulated, false}, {RunMode::Threads, true}, {RunMode::Emulated, true}}) {
        Plan plan = littleTransformer("pipedream", 4, 1, mode);
        plan.pipeline.verticalSync = together;
        plan.pipeline.microbatches = 8;
        plan.run.optimizer = OptimizerKind::Sgd;
        plan.run.learningRate = 0.1;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
        const std::vector<StageCosts>& costs = outcome.result->measuredCosts;
        for (int r = 0; r < 4; ++r) {
            // p - r micro-batches in flight, each with the weights of its forward; the newest are the weights themselves. With vertical
            // sync each rank keeps what the first does.
            const traces::MemorySeries* versions = outcome.trace.memorySeries(Rank{r}, traces::MemoryClass::Versions);
            const traces::Bytes most = versions ? *std::max_element(versions->value.begin(), versions->value.end()) : 0;
            EXPECT_EQ(most, (together ? 3 : 4 - 1 - r) * costs[static_cast<std::size_t>(r)].weightBytes) << "rank " << r;
        }
    }
}

// In mode threads the two of a pair run on two threads of the rank, at the same time (PairHelper's own test shows that they can; here
// each takes some milliseconds, so that of many pairs on a busy machine some do).
TEST(LocalSession, RunsThePartsOfAPairTogether)
{
    Plan plan = littleTransformer("dualpipe", 4, 1, RunMode::Threads);
    plan.model.layers = {Embedding{50, 64, 128}, TransformerBlock{128, 2, 512}, TransformerBlock{128, 2, 512}, Head{128, 50}};
    plan.model.microbatchRows = 8;
    plan.pipeline.microbatches = 8;
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    std::size_t pairs = 0;
    std::size_t together = 0;
    for (int r = 0; r < 4; ++r) {
        const auto beside = outcome.trace.findLane(Rank{r}, LaneKind::Compute, 1);
        if (!beside) continue;
        const Lane& forwards = outcome.trace.lane(*beside);
        const Lane& own = outcome.trace.lane(*outcome.trace.findLane(Rank{r}, LaneKind::Compute));
        for (std::size_t i = 0; i < forwards.size(); ++i) {
            ++pairs;
            for (std::size_t k = 0; k < own.size(); ++k)
                if (own.begin(k) < forwards.end(i) && forwards.begin(i) < own.end(k)) ++together;
        }
    }
    const Schedule schedule = scheduleOf(plan).value();
    std::size_t expected = 0;
    for (const auto& list : schedule.order)
        expected += static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](const auto& a) { return a.kind() == ActionKind::Overlap; }));
    EXPECT_EQ(pairs, expected * static_cast<std::size_t>(plan.run.steps));
    EXPECT_GT(together, 0U);
}

// Backwards in the opposite order add the gradients up in it: the plain run does so too, and another schedule's losses differ in
// the last bits.
TEST(LocalSession, ComputesNearlyTheSameLossesWithBackwardsInTheOppositeOrder)
{
    const std::vector<double> ahead = runPlan(littleTransformer("gpipe", 2, 1, RunMode::Threads)).result->loss;
    for (const auto& [schedule, chunks] : {std::pair{"gpipe-lifo", 1}, {"looped-bfs", 2}})
        for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
            const Outcome outcome = runPlan(littleTransformer(schedule, 2, chunks, mode));
            ASSERT_TRUE(outcome.result) << schedule;
            EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << schedule;
            ASSERT_EQ(outcome.result->loss.size(), ahead.size());
            for (std::size_t step = 0; step < ahead.size(); ++step) EXPECT_NEAR(outcome.result->loss[step], ahead[step], 1e-5) << schedule;
        }
}

// Sends and receives follow from the order of the computing actions: the engine makes its own hand-offs of them.
TEST(LocalSession, RunsAScheduleWithCommunicationLikeTheOneWithout)
{
    const Plan plain = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    const Schedule schedule = scheduleOf(plain).value();
    const Plan lowered = withCustomSchedule(plain, toText(lowerCommunication(schedule).value())).value();
    const Outcome expected = runPlan(plain);
    ASSERT_TRUE(expected.result);
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = lowered;
        plan.run.mode = mode;
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
        EXPECT_EQ(outcome.result->loss, expected.result->loss);
        expectEveryAction(outcome, schedule, plan.run.steps);
        expectEdges(outcome, schedule, plan.run.steps);
    }
}

// With every optimizer, and a rate that rises and falls; synchronous and not.
TEST(LocalSession, TrainsWithEveryOptimizer)
{
    for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::AdamW})
        for (const char* schedule : {"1f1b", "pipedream"}) {
            Plan plan = littleTransformer(schedule, 2, 1, RunMode::Threads);
            plan.run.optimizer = kind;
            plan.run.steps = 4;
            plan.run.learningRate = plan.run.optimizerValues() == 2 ? 3e-3 : 0.1;
            plan.run.warmupSteps = 1;
            plan.run.rateCourse = RateCourse::Cosine;
            const Outcome outcome = runPlan(plan);
            ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
            EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << schedule;
            EXPECT_LT(outcome.result->loss[3], outcome.result->loss[0]) << schedule;
            EXPECT_EQ(outcome.result->measuredCosts[0].optimizerBytes, plan.run.optimizerValues() * outcome.result->measuredCosts[0].weightBytes);
        }
}

// In the emulation nothing but the schedule decides when an action begins: its rank is free and its data has arrived.
TEST(LocalSession, EmulatedActionsBeginExactlyWhenTheyCan)
{
    Plan plan = littleTransformer("1f1b", 4, 1, RunMode::Emulated);
    plan.costs.latency = 250'000;
    const Outcome outcome = runPlan(plan);
    ASSERT_EQ(outcome.last, SessionState::Finished);
    for (int r = 0; r < 4; ++r) {
        const traces::LaneId id = *outcome.trace.findLane(Rank{r}, LaneKind::Compute);
        const Lane& lane = outcome.trace.lane(id);
        std::map<std::uint32_t, traces::TimeNs> ready;
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(id)) {
            ready[edge.to.index] = edge.ready;
            EXPECT_EQ(edge.ready, outcome.trace.slice(edge.from).end + 250'000);
        }
        for (std::size_t i = 0; i < lane.size(); ++i) {
            traces::TimeNs can = outcome.trace.steps()[traces::index(lane.step(i))].span.begin;
            if (i > 0) can = std::max(can, lane.end(i - 1));
            if (const auto found = ready.find(static_cast<std::uint32_t>(i)); found != ready.end())
                can = std::max(can, found->second);
            ASSERT_EQ(lane.begin(i), can) << traces::toText(lane.action(i));
        }
    }
    ASSERT_TRUE(outcome.result);
    EXPECT_EQ(outcome.result->measuredTransferNs, 250'000);
    EXPECT_EQ(outcome.trace.info.clock, traces::ClockKind::Virtual);
    EXPECT_EQ(outcome.trace.info.label, traces::TraceLabel::Emulated);
}

// A thread that got its core for so much of the time.
class SharedCore final : public Clock {
public:
    explicit SharedCore(double share) : share_(share) {}
    [[nodiscard]] TimeNs now() const noexcept override
    {
        return static_cast<TimeNs>(static_cast<double>(monotonicClock().now() - origin_) * share_);
    }

private:
    double share_;
    TimeNs origin_ = monotonicClock().now();
};

TEST(LocalSession, SaysWhenOtherProgramsDisturbedAnEmulation)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Emulated);
    const SharedCore half(0.5);
    const Outcome disturbed = runPlan(plan, {.cpuClock = &half});
    ASSERT_EQ(disturbed.trace.notes().size(), 1U);
    EXPECT_THAT(disturbed.trace.notes()[0], testing::StartsWith("the machine was busy: the actions took "));

    const SharedCore most(0.95);
    EXPECT_TRUE(runPlan(plan, {.cpuClock = &most}).trace.notes().empty());
    plan.run.mode = RunMode::Threads; // ranks that wait for each other compute less than the time that passes
    EXPECT_TRUE(runPlan(plan, {.cpuClock = &half}).trace.notes().empty());
}

TEST(LocalSession, SaysFirstWhenARunMayNotFitIntoMemory)
{
    const Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    const HostMemory tight{.total = Bytes{1} << 30, .available = 4096};
    const Outcome outcome = runPlan(plan, {.memory = tight});
    EXPECT_EQ(outcome.last, SessionState::Finished); // the estimate may err
    ASSERT_EQ(outcome.trace.notes().size(), 1U);
    EXPECT_THAT(outcome.trace.notes()[0], testing::HasSubstr("4 KiB of memory is available"));
    const auto isNote = [](const traces::Record& record) { return std::holds_alternative<traces::NoteRecord>(record); };
    const auto isSlice = [](const traces::Record& record) { return std::holds_alternative<traces::SliceRecord>(record); };
    EXPECT_LT(std::find_if(outcome.records.begin(), outcome.records.end(), isNote),
              std::find_if(outcome.records.begin(), outcome.records.end(), isSlice));

    const auto session = makeLocalSession({.memory = HostMemory{.total = 4096, .available = 4096}});
    const auto refused = session->start(plan);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, testing::HasSubstr("4 KiB is all the memory there is"));
}

TEST(LocalSession, SaysWhatOfTheMachineItLeavesOut)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    plan.run.steps = 1;
    plan.machine.ranksPerNode = 1;
    plan.machine.barrier = true;
    const Outcome outcome = runPlan(plan);
    ASSERT_EQ(outcome.trace.notes().size(), 1U);
    EXPECT_EQ(outcome.trace.notes()[0],
              "of the plan's machine a run takes the memory of a rank and the replicas; ranks_per_node, barrier are simulated and not run");
}

TEST(LocalSession, OpensTheStreamWithThePlanItRuns)
{
    const Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    const Outcome outcome = runPlan(plan);
    ASSERT_FALSE(outcome.records.empty());
    const auto* info = std::get_if<traces::InfoRecord>(&outcome.records.front());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(readPlan(info->info.planJson).value(), plan);
    EXPECT_EQ(info->info.label, traces::TraceLabel::Measured);
    EXPECT_EQ(info->info.clock, traces::ClockKind::Monotonic);
    EXPECT_EQ(info->info.ranks, 2);
}

TEST(LocalSession, CountsEventsThatItHadNoRoomFor)
{
    Plan plan = littleTransformer("gpipe", 2, 1, RunMode::Emulated);
    plan.pipeline.microbatches = 32;
    const Outcome outcome = runPlan(plan, {.ringCapacity = 4});
    EXPECT_EQ(outcome.last, SessionState::Finished); // recording never stops a run
    EXPECT_GT(outcome.trace.lostEvents(), 0);
}

} // namespace
} // namespace stagecraft::runtime
