// SPDX-License-Identifier: Apache-2.0
//
// What replicas divide (ZeRO-1, -2, -3) on GPUs that are not there.
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/little_plan.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

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
using traces::TimeNs;

constexpr std::array kDivided{Sharding::Zero1, Sharding::Zero2, Sharding::Zero3};

// Two chunks on each of two ranks, every tensor in equal halves, and layers for which LibTorch takes the same kernels wherever they are.
Plan halved(Sharding sharding, RunMode mode)
{
    Plan plan;
    plan.model.layers.assign(4, Linear{32, 32, Activation::None});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = "interleaved", .ranks = 2, .chunks = 2, .microbatches = 4, .customSchedule = {}};
    plan.run.mode = mode;
    plan.run.steps = 3;
    plan.run.check = CheckMode::All;
    plan.run.optimizer = OptimizerKind::AdamW;
    plan.run.learningRate = 1e-2;
    return divided(plan, sharding);
}

// What the host does lies between what the devices do.
LocalSessionOptions onDevicesClock() { return {.clock = &FakeGpus::get().clock()}; }

std::vector<Bytes> held(const traces::Trace& trace, int rank, MemoryClass memory)
{
    const traces::MemorySeries* series = trace.memorySeries(Rank{rank}, memory);
    return series == nullptr ? std::vector<Bytes>{0} : series->value;
}

Bytes most(const std::vector<Bytes>& values) { return *std::max_element(values.begin(), values.end()); }

std::vector<CaseOnGpus> everySynchronousFamily()
{
    std::vector<CaseOnGpus> cases;
    for (const ScheduleFamily& family : scheduleFamilies())
        for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 4}, {RunMode::Emulated, 1}})
            if (!family.asynchronous) cases.push_back({familyCase(family, 4, mode), gpus});
    return cases;
}

class DividedFamilyOnGpus : public testing::TestWithParam<CaseOnGpus> {};

TEST_P(DividedFamilyOnGpus, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    Plan whole = planOf(GetParam().family);
    whole.run.steps = 2;
    const std::vector<double> expected = runPlan(divided(whole, Sharding::None)).result->loss;
    for (const Sharding sharding : kDivided) {
        const Outcome outcome = runOn({.count = GetParam().gpus, .ofOperation = 100}, divided(whole, sharding), onDevicesClock());
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
        EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-5);
        EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), expected)) << shardingName(sharding);
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty()) << shardingName(sharding);
        EXPECT_EQ(outcome.trace.lostEvents(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(All, DividedFamilyOnGpus, testing::ValuesIn(everySynchronousFamily()), [](const testing::TestParamInfo<CaseOnGpus>& of) {
    return nameOf(of.param);
});

// The same bits as whole replicas on the CPU; of each class each replica holds its part when a step is over.
TEST(DividedOnGpus, TrainToTheBitWithWhatIsTheirsOfTheMemory)
{
    const Outcome whole = runPlan(halved(Sharding::None, RunMode::Threads));
    for (const Sharding sharding : kDivided)
        for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 1}, {RunMode::Threads, 2}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}}) {
            const Outcome outcome = runOn({.count = gpus, .ofOperation = 1'000, .ofCopy = 2'000}, halved(sharding, mode), onDevicesClock());
            ASSERT_TRUE(outcome.result) << saidBy(outcome);
            EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise) << shardingName(sharding) << " " << outcome.result->gradientMaxAbsDiff;
            EXPECT_EQ(outcome.result->loss, whole.result->loss) << shardingName(sharding) << " on " << gpus;
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
            for (int r = 0; r < 4; ++r) {
                const Bytes all = most(held(whole.trace, r, MemoryClass::Weights));
                const std::vector<Bytes> weights = held(outcome.trace, r, MemoryClass::Weights);
                EXPECT_EQ(weights.front(), sharding == Sharding::Zero3 ? all / 2 : all);
                EXPECT_EQ(weights.back(), weights.front());
                EXPECT_EQ(most(weights), all); // both of its stages
                const std::vector<Bytes> gradients = held(outcome.trace, r, MemoryClass::Gradients);
                EXPECT_LE(most(gradients), all);
                EXPECT_EQ(gradients.back(), 0);
                if (sharding != Sharding::Zero1) { // a stage's whole gradients are gone before its update
                    EXPECT_TRUE(std::any_of(gradients.begin(), gradients.end(), [&](Bytes bytes) { return bytes > 0 && bytes < all / 2; })) << r;
                }
                EXPECT_NEAR(static_cast<double>(held(outcome.trace, r, MemoryClass::Optimizer).back()),
                            static_cast<double>(held(whole.trace, r, MemoryClass::Optimizer).back()) / 2, 4 * 4.0);
            }
        }
}

TEST(DividedOnGpus, GatherWeightsOfBfloat16)
{
    const auto inBf16 = [](Sharding sharding) {
        Plan plan = halved(sharding, RunMode::Threads);
        plan.run.precision = Precision::Bf16;
        return plan;
    };
    const Outcome whole = runPlan(inBf16(Sharding::None));
    for (const Sharding sharding : kDivided) {
        const Outcome outcome = runOn({.count = 2, .ofOperation = 1'000, .ofCopy = 2'000}, inBf16(sharding), onDevicesClock());
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed) << shardingName(sharding);
        EXPECT_EQ(outcome.result->loss, whole.result->loss) << shardingName(sharding);
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        EXPECT_EQ(held(outcome.trace, 0, MemoryClass::Weights).back(), most(held(whole.trace, 0, MemoryClass::Weights)) / (sharding == Sharding::Zero3 ? 2 : 1));
    }
}

// RESHARD lies between the rank's own actions, UNSHARD and REDUCE_GRAD beside them, and nothing uses weights that are not there.
TEST(DividedOnGpus, ShowTheActionsOfTheListInTheDevicesTime)
{
    Plan plan = halved(Sharding::Zero3, RunMode::Threads);
    plan.run.check = CheckMode::Off;
    const Outcome outcome = runOn({.count = 4, .ofOperation = 1'000, .ofCopy = 5'000}, plan, onDevicesClock());
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    std::set<std::string> kinds;
    int waited = 0;
    for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l) {
        const Lane& lane = outcome.trace.lanes()[l];
        const bool computes = lane.info().kind == LaneKind::Compute;
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (i > 0) {
                EXPECT_GE(lane.begin(i), lane.end(i - 1));
            }
            const ActionKind kind = lane.action(i).kind();
            const bool beside = kind == ActionKind::Unshard || kind == ActionKind::ReduceGrad;
            EXPECT_TRUE(!beside || lane.info().kind == LaneKind::Collective);
            EXPECT_TRUE(kind != ActionKind::Reshard || computes);
            kinds.insert(std::string(traces::kindName(kind)));
        }
        for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
            const traces::Slice from = outcome.trace.slice(edge.from);
            const traces::Slice to = outcome.trace.slice(edge.to);
            EXPECT_LE(edge.ready, to.begin);
            if (from.action.kind() != ActionKind::Unshard) continue;
            EXPECT_EQ(edge.ready, from.end);
            waited += to.begin == from.end ? 1 : 0;
        }
    }
    for (const ActionKind kind : {ActionKind::Unshard, ActionKind::Reshard, ActionKind::ReduceGrad}) EXPECT_TRUE(kinds.contains(std::string(traces::kindName(kind))));
    EXPECT_GT(waited, 0); // the first of a step has nothing to do before its weights have come
}

TEST(DividedOnGpus, TieEmbeddingsAndClip)
{
    for (const char* schedule : {"1f1b", "chimera"})
        for (const double clip : {0.0, 0.1})
            for (const Sharding sharding : {Sharding::Zero2, Sharding::Zero3})
                for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 2}, {RunMode::Emulated, 1}}) {
                    Plan plan = littleTransformer(schedule, 2, 1, mode);
                    plan.model.tiedEmbeddings = true;
                    plan.run.clipNorm = clip;
                    plan.run.steps = 2;
                    const std::vector<double> expected = runPlan(divided(plan, Sharding::None)).result->loss;
                    const Outcome outcome = runOn({.count = gpus}, divided(plan, sharding), onDevicesClock());
                    ASSERT_TRUE(outcome.result) << saidBy(outcome);
                    EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
                    EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), expected));
                    EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
                }
}

// Its first rank gathers anew for the backwards; a list may be for one replica as well, and then says the same of nothing.
TEST(DividedOnGpus, FollowAListOfTheirOwn)
{
    for (const int replicas : {1, 2})
        for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
            Plan plan = littleTransformer("custom", 2, 1, mode);
            plan.pipeline.microbatches = 2;
            plan.pipeline.customSchedule = "0UNSHARD,0F0,0F1,0RESHARD,0UNSHARD,0B0,0B1,0REDUCE_GRAD,0RESHARD\n"
                                           "1UNSHARD,1F0,1B0,1F1,1B1,1REDUCE_GRAD\n";
            plan = divided(plan, Sharding::None, replicas);
            const Outcome onCpu = runPlan(plan);
            const Outcome outcome = runOn({.count = 2}, plan, onDevicesClock());
            ASSERT_TRUE(outcome.result) << saidBy(outcome);
            EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        }
}

TEST(DividedOnGpus, TellWhereThereIsNoRoomForWeights)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = halved(Sharding::Zero3, mode);
        plan.run.check = CheckMode::Off;
        const Outcome fits = runOn({.count = 2}, plan);
        Bytes before = 0;
        for (const traces::MemorySeries& series : fits.trace.memory())
            if (series.rank == Rank{0}) before += series.value.front();
        plan.machine.memory = before + 4'000; // for the batch, and less than a stage's weights of 4,224 bytes
        const Outcome outcome = runOn({.count = 2}, plan);
        EXPECT_EQ(outcome.last, SessionState::Failed);
        EXPECT_THAT(saidBy(outcome), testing::ContainsRegex("[0-3]UNSHARD.*came to hold"));
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    }
}

// Divided on GPUs, whole on the CPU, and the other way round.
TEST(DividedOnGpus, GoOnFromCheckpointsOfWholeReplicas)
{
    Plan plan = halved(Sharding::None, RunMode::Threads);
    plan.run.steps = 4;
    const std::vector<double> whole = runPlan(plan).result->loss;
    for (const Sharding sharding : kDivided)
        for (const bool first : {true, false}) { // the GPUs are
            const traces::test::TemporaryFolder folder;
            const auto run = [&](bool onGpus, int steps, const std::string& resume) {
                Plan part = halved(onGpus ? sharding : Sharding::None, RunMode::Threads);
                part.run.steps = steps;
                (resume.empty() ? part.run.checkpoint : part.run.resume) = folder.file("kept").string();
                return onGpus ? runOn({.count = 2}, part) : runPlan(part);
            };
            const Outcome begun = run(first, 2, "");
            ASSERT_TRUE(begun.result) << saidBy(begun);
            const Outcome rest = run(!first, 4, "kept");
            ASSERT_TRUE(rest.result) << saidBy(rest);
            EXPECT_EQ(rest.result->loss, std::vector(whole.begin() + 2, whole.end())) << shardingName(sharding);
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        }
}

} // namespace
} // namespace stagecraft::runtime
