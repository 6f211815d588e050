// SPDX-License-Identifier: Apache-2.0
//
// ZeRO-2 and -3 live: gradients and weights that replicas divide, where the schedule says REDUCE_GRAD, UNSHARD and RESHARD.
#include "tests/runtime/little_plan.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include "engine/checkpoint/checkpoint.h"
#include "engine/plan/plan_words.h"
#include "engine/schedule/shard.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

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
using traces::Step;
using traces::TimeNs;

// Two chunks on each of two ranks, and every tensor in equal halves.
Plan halved(RunMode mode)
{
    Plan plan = divided(littleTransformer("interleaved", 2, 2, mode), Sharding::Zero3);
    plan.model.layers.front() = Embedding{64, 16, 32};
    plan.model.layers.back() = Head{32, 64};
    return plan;
}

Bytes weightsAtTheEnd(const Outcome& outcome, int rank)
{
    const traces::MemorySeries* series = outcome.trace.memorySeries(Rank{rank}, MemoryClass::Weights);
    return series == nullptr ? 0 : series->value.back();
}

using Case = std::tuple<std::string, RunMode, Precision>;
class DividedFamily : public testing::TestWithParam<Case> {};

TEST_P(DividedFamily, TrainsAsWholeReplicasDo)
{
    const auto& [name, mode, precision] = GetParam();
    Plan plan = planOf(familyCase(*findFamily(name), 4, mode));
    plan.run.precision = precision;
    const Outcome whole = runPlan(divided(plan, Sharding::None));
    ASSERT_TRUE(whole.result);
    for (const Sharding sharding : {Sharding::Zero2, Sharding::Zero3}) {
        const Outcome parts = runPlan(divided(plan, sharding));
        ASSERT_TRUE(parts.result) << (parts.failure ? parts.failure->text : "");
        EXPECT_EQ(parts.result->gradientCheck, GradientCheck::Bitwise) << "largest difference " << parts.result->gradientMaxAbsDiff;
        EXPECT_EQ(parts.result->loss, whole.result->loss) << shardingName(sharding);
        EXPECT_EQ(parts.trace.lostEvents(), 0);
        const int ranks = plan.pipeline.ranks;
        for (int r = 0; r < ranks; ++r) {
            const Bytes together = weightsAtTheEnd(parts, r) + weightsAtTheEnd(parts, r + ranks);
            EXPECT_EQ(together, (sharding == Sharding::Zero3 ? 1 : 2) * weightsAtTheEnd(whole, r)) << "rank " << r;
        }
    }
}

std::vector<std::string> synchronousFamilies()
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies())
        if (!family.asynchronous) names.push_back(family.name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(Runtime, DividedFamily,
                         testing::Combine(testing::ValuesIn(synchronousFamilies()), testing::Values(RunMode::Threads, RunMode::Emulated),
                                          testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto& each) { return caseName(std::get<0>(each.param), std::get<1>(each.param), std::get<2>(each.param)); });

using Tensors = std::map<std::string, std::vector<std::byte>>;

void readAll(const TensorFile& file, Tensors& into)
{
    for (const auto& [name, entry] : file.tensors()) {
        std::vector<std::byte>& data = into[name];
        data.resize(static_cast<std::size_t>(entry.end - entry.begin));
        EXPECT_TRUE(file.read(name, data).ok());
    }
}

// Weights and optimizer state after the run.
Tensors trained(Plan plan)
{
    const traces::test::TemporaryFolder folder;
    plan.run.checkpoint = folder.file("kept");
    const Outcome outcome = runPlan(plan);
    EXPECT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    const Expected<Checkpoint> kept = openCheckpoint(plan.run.checkpoint);
    EXPECT_TRUE(kept.ok());
    Tensors all;
    if (!kept.ok()) return all;
    readAll(kept.value().weights, all);
    readAll(kept.value().optimizer, all);
    return all;
}

TEST(DividedReplicas, EndWithTheSameWeightsAndStateToTheBit)
{
    for (const OptimizerKind optimizer : {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::AdamW})
        for (const auto& [replicas, precision] : {std::pair(2, Precision::Fp32), {3, Precision::Fp32}, {2, Precision::Bf16}, {3, Precision::Bf16}}) {
            Plan plan = littleTransformer("zb-v", 2, 2, replicas == 2 ? RunMode::Threads : RunMode::Emulated);
            plan.run.precision = precision;
            plan.run.optimizer = optimizer;
            plan.run.learningRate = 1e-2;
            plan.pipeline.recompute = Recompute::Full;
            const Tensors whole = trained(divided(plan, Sharding::None, replicas));
            for (const Sharding sharding : {Sharding::Zero1, Sharding::Zero2, Sharding::Zero3})
                EXPECT_EQ(trained(divided(plan, sharding, replicas)), whole) << shardingName(sharding) << ", " << replicas << " in " << wordOf(kPrecisionWords, precision);
        }
}

// A table of which two stages have a copy each, or one stage uses twice; clipping goes by the norm of the whole gradient.
TEST(DividedReplicas, TieEmbeddingsAndClipToTheBit)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const double clip : {0.0, 0.1})
            for (const char* name : {"1f1b", "chimera"})
                for (const int ranks : {1, 2}) {
                    if (ranks == 1 && std::string(name) == "chimera") continue;
                    Plan plan = littleTransformer(name, ranks, 1, mode);
                    plan.model.tiedEmbeddings = true;
                    plan.run.clipNorm = clip;
                    plan.run.lossScale = 8;
                    plan.run.precision = clip > 0 ? Precision::Bf16 : Precision::Fp32;
                    const std::vector<double> whole = runPlan(divided(plan, Sharding::None)).result->loss;
                    for (const Sharding sharding : {Sharding::Zero2, Sharding::Zero3}) {
                        const Outcome parts = runPlan(divided(plan, sharding));
                        ASSERT_TRUE(parts.result) << (parts.failure ? parts.failure->text : "");
                        EXPECT_EQ(parts.result->gradientCheck, GradientCheck::Bitwise) << name;
                        EXPECT_EQ(parts.result->loss, whole) << name << " " << shardingName(sharding) << " clip " << clip;
                    }
                }
}

// What was trained whole goes on divided, and the other way round.
TEST(DividedReplicas, GoOnFromEachOthersCheckpoints)
{
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
        plan.run.precision = precision;
        plan.run.steps = 4;
        const std::vector<double> whole = runPlan(divided(plan, Sharding::None)).result->loss;
        for (const Sharding from : kShardings)
            for (const Sharding to : kShardings) {
                if ((from == Sharding::None) == (to == Sharding::None)) continue;
                const traces::test::TemporaryFolder folder;
                plan.run.steps = 2;
                plan.run.checkpoint = folder.file("kept");
                plan.run.resume.clear();
                ASSERT_TRUE(runPlan(divided(plan, from)).result);
                plan.run.steps = 4;
                plan.run.resume = folder.file("kept");
                plan.run.checkpoint.clear();
                const Outcome rest = runPlan(divided(plan, to));
                ASSERT_TRUE(rest.result) << (rest.failure ? rest.failure->text : "");
                EXPECT_EQ(rest.result->gradientCheck, GradientCheck::Bitwise);
                EXPECT_EQ(rest.result->loss, std::vector(whole.begin() + 2, whole.end())) << shardingName(from) << " to " << shardingName(to);
            }
    }
}

// Its first rank gathers anew for the backwards, its second keeps what it has.
constexpr const char* kOwnList = "0UNSHARD,0F0,0F1,0RESHARD,0UNSHARD,0B0,0B1,0REDUCE_GRAD,0RESHARD\n"
                                 "1UNSHARD,1F0,1B0,1F1,1B1,1REDUCE_GRAD\n";
// For the next step already, which gathers once more what the updates have changed.
constexpr const char* kAhead = "0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD,0UNSHARD\n"
                               "1UNSHARD,1F0,1B0,1F1,1B1,1REDUCE_GRAD,1RESHARD,1UNSHARD\n";
constexpr const char* kSumsAlone = "0F0,0F1,0B0,0B1,0REDUCE_GRAD\n"
                                   "1F0,1B0,1F1,1B1,1REDUCE_GRAD\n";

Plan custom(const char* list, int replicas, Sharding sharding, RunMode mode)
{
    Plan plan = littleTransformer("custom", 2, 1, mode);
    plan.pipeline.microbatches = 2;
    plan.pipeline.customSchedule = list;
    return divided(plan, sharding, replicas);
}

TEST(DividedReplicas, FollowAListOfTheirOwn)
{
    for (const int replicas : {1, 2, 3}) {
        Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
        plan.pipeline.microbatches = 2;
        const std::vector<double> whole = runPlan(divided(plan, Sharding::None, replicas)).result->loss;
        for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
            for (const Sharding sharding : kShardings)
                for (const char* list : {kOwnList, kAhead, kSumsAlone}) {
                    const Outcome outcome = runPlan(custom(list, replicas, sharding, mode));
                    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
                    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
                    EXPECT_EQ(outcome.result->loss, whole) << replicas << " replicas, " << shardingName(sharding) << "\n" << list;
                }
    }
}

// On the lane of collectives in the order of the list, and what a rank gives up between its own actions.
TEST(DividedReplicas, ShowTheActionsOfTheList)
{
    for (const int replicas : {1, 2})
        for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
            Plan plan = halved(mode);
            plan.machine.replicas = replicas;
            const Schedule schedule = scheduleOf(plan).value();
            const Outcome outcome = runPlan(plan);
            for (int r = 0; r < 2 * replicas; ++r) {
                std::vector<std::string> beside, givenUp, expectedBeside, expectedGivenUp;
                for (const Action& action : schedule.order[static_cast<std::size_t>(r % 2)]) {
                    if (!isSharding(action.kind())) continue;
                    (action.kind() == ActionKind::Reshard ? expectedGivenUp : expectedBeside).push_back(toText(action));
                }
                for (const Lane& lane : outcome.trace.lanes())
                    for (std::size_t i = 0; i < lane.size(); ++i) {
                        if (lane.info().rank != Rank{r} || lane.step(i) != Step{1} || !isSharding(lane.action(i).kind())) continue;
                        EXPECT_EQ(lane.info().kind == LaneKind::Compute, lane.action(i).kind() == ActionKind::Reshard);
                        (lane.info().kind == LaneKind::Compute ? givenUp : beside).push_back(toText(lane.action(i)));
                    }
                EXPECT_FALSE(beside.empty());
                EXPECT_EQ(beside, expectedBeside) << "rank " << r;
                EXPECT_EQ(givenUp, expectedGivenUp) << "rank " << r;
            }
        }
}

// Nothing uses weights before they are gathered, and the trace says what it has waited for.
TEST(DividedReplicas, WaitForTheirWeights)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = halved(mode);
        plan.machine.replica = {.latency = 50'000, .bytesPerSecond = 100e6};
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result);
        std::size_t edges = 0;
        for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l)
            for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
                const traces::Slice from = outcome.trace.slice(edge.from);
                const traces::Slice to = outcome.trace.slice(edge.to);
                if (from.action.kind() != ActionKind::Unshard) continue;
                ++edges;
                EXPECT_EQ(from.action.stage(), to.action.stage());
                EXPECT_EQ(from.step, to.step);
                EXPECT_LE(from.end, edge.ready);
                EXPECT_LE(edge.ready, to.begin);
            }
        const Schedule schedule = scheduleOf(plan).value();
        std::size_t uses = 0;
        for (const auto& list : schedule.order) uses += static_cast<std::size_t>(std::ranges::count_if(list, [](const Action& a) { return usesWeights(a.kind()); }));
        EXPECT_EQ(edges, 2 * 3 * uses); // of each replica and step
        TimeNs waited = 0;
        for (const traces::Gap& gap : traces::gapsOf(outcome.trace, Step{1}))
            if (gap.cause == traces::GapCause::Transfer && outcome.trace.slice(gap.producer).action.kind() == ActionKind::Unshard) waited += gap.span.length();
        if (mode == RunMode::Emulated) {
            EXPECT_GT(waited, 0);
        }
    }
}

// Where the ways are fast enough, weights come while the rank computes.
TEST(DividedReplicas, GatherBesideTheComputing)
{
    Plan plan = halved(RunMode::Emulated);
    plan.machine.replica = {.latency = 100, .bytesPerSecond = 0};
    const ManualClock even(10'000);
    const Outcome outcome = runPlan(plan, {.clock = &even, .cpuClock = &even});
    const Lane& compute = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Compute));
    const Lane& gathers = outcome.trace.lane(*outcome.trace.findLane(Rank{0}, LaneKind::Collective));
    bool beside = false;
    for (std::size_t g = 0; g < gathers.size(); ++g)
        for (std::size_t i = 0; i < compute.size(); ++i)
            beside = beside || (gathers.action(g).kind() == ActionKind::Unshard && traces::isCompute(compute.action(i).kind()) &&
                                compute.begin(i) <= gathers.begin(g) && gathers.end(g) <= compute.end(i));
    EXPECT_TRUE(beside);
}

std::map<std::pair<int, MemoryClass>, Bytes> peaks(const traces::Trace& trace, TimeNs from)
{
    std::map<std::pair<int, MemoryClass>, Bytes> most;
    for (const traces::MemorySeries& series : trace.memory())
        for (std::size_t i = 0; i < series.time.size(); ++i)
            if (series.time[i] >= from && (series.memory == MemoryClass::Weights || series.memory == MemoryClass::Gradients))
                most[{series.rank.value, series.memory}] = std::max(most[{series.rank.value, series.memory}], series.value[i]);
    return most;
}

// To the byte: of the peaks of weights and gradients, and of what is left when a step is over.
TEST(DividedReplicas, HoldWhatTheirSimulationSays)
{
    for (const auto& [sharding, precision] : {std::pair(Sharding::None, Precision::Fp32), {Sharding::Zero2, Precision::Fp32}, {Sharding::Zero3, Precision::Fp32},
                                              {Sharding::Zero2, Precision::Bf16}, {Sharding::Zero3, Precision::Bf16}}) {
        Plan plan = halved(RunMode::Emulated);
        plan.run.precision = precision;
        plan.model.layers.insert(plan.model.layers.begin() + 1, 5, TransformerBlock{32, 2, 64});
        plan.pipeline.chunks = 4; // more than can be gathered at a time
        plan.pipeline.sharding = sharding;
        plan.machine.replica = {.latency = 1'000, .bytesPerSecond = 1e9};
        plan.run.check = CheckMode::Off;
        const ManualClock even(10'000);
        const Outcome outcome = runPlan(plan, {.clock = &even, .cpuClock = &even});
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        plan.costs.source = CostSource::Measured;
        plan.costs.measured = outcome.result->measuredCosts;
        const traces::Trace simulated = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
        const auto measured = peaks(outcome.trace, 0);
        for (const auto& [place, bytes] : peaks(simulated, 0)) {
            EXPECT_EQ(measured.at(place), bytes) << shardingName(sharding) << " rank " << place.first << " " << traces::memoryClassText(place.second);
            EXPECT_EQ(measured.at({place.first + 2, place.second}), bytes); // the other replica
        }
        for (int r = 0; r < 4; ++r)
            for (const MemoryClass memory : {MemoryClass::Weights, MemoryClass::Gradients})
                EXPECT_EQ(outcome.trace.memorySeries(Rank{r}, memory)->value.back(), simulated.memorySeries(Rank{r % 2}, memory)->value.back())
                    << shardingName(sharding) << " rank " << r << " " << traces::memoryClassText(memory);
    }
}

// On threads, where nobody knows when the others come: what is sampled lies between the own part and all.
TEST(DividedReplicas, LetGoOfMemoryOnThreads)
{
    Plan plan = halved(RunMode::Threads);
    const Outcome outcome = runPlan(plan);
    plan.pipeline.sharding = Sharding::None;
    const Outcome whole = runPlan(plan);
    for (int r = 0; r < 4; ++r) {
        const std::vector<Bytes>& weights = outcome.trace.memorySeries(Rank{r}, MemoryClass::Weights)->value;
        const Bytes all = weightsAtTheEnd(whole, r);
        EXPECT_EQ(weights.front(), all / 2);
        EXPECT_EQ(weights.back(), all / 2);
        const Bytes mostWeights = *std::max_element(weights.begin(), weights.end());
        EXPECT_GE(mostWeights, all);           // both of its stages
        EXPECT_LT(mostWeights, all + all / 2); // and a part that is copied into its whole, where that is seen by another thread
        const std::vector<Bytes>& gradients = outcome.trace.memorySeries(Rank{r}, MemoryClass::Gradients)->value;
        const Bytes most = *std::max_element(gradients.begin(), gradients.end());
        EXPECT_GT(most, all / 2);
        EXPECT_LE(most, all); // less where those of one stage were summed before the other's last backward
        EXPECT_EQ(gradients.back(), 0);
    }
}

TEST(DividedReplicas, TellWhereThereIsNoRoomForWeights)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = halved(mode);
        const Outcome fits = runPlan(plan);
        Bytes before = 0; // any action: what the rank with most to hold has then
        for (int r = 0; r < 2; ++r) {
            Bytes held = 0;
            for (const traces::MemorySeries& series : fits.trace.memory())
                if (series.rank == Rank{r}) held += series.value.front();
            before = std::max(before, held);
        }
        plan.machine.memory = before + 6'000; // for the batch, and half of an embedding
        const Outcome outcome = runPlan(plan);
        EXPECT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, testing::ContainsRegex("[0-3]UNSHARD.*more do not fit"));
    }
}

TEST(DividedReplicas, AreNotForSchedulesThatUpdateWithinAStep)
{
    const Plan plan = divided(littleTransformer("pipedream", 2, 1, RunMode::Threads), Sharding::Zero3);
    EXPECT_THAT(makeLocalSession()->start(plan).error().message, testing::HasSubstr("pipeline.sharding: schedule pipedream updates its weights within a step"));
}

} // namespace
} // namespace stagecraft::runtime
