// SPDX-License-Identifier: Apache-2.0
//
// OFFLOAD and RELOAD on GPUs that are not there: to the host's memory or to a partner's, and back before the backward.
#include "tests/runtime/fake_gpu/run_on_gpus.h"
#include "tests/runtime/little_plan.h"

#include "engine/schedule/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;
using traces::ActionKind;
using traces::Bytes;
using traces::Lane;
using traces::LaneKind;
using traces::MemoryClass;
using traces::Rank;

// BPipe moves to a partner by itself, the others half of their activations to the host.
Plan moving(const std::string& schedule, int ranks, int chunks, RunMode mode)
{
    Plan plan = littleTransformer(schedule, ranks, chunks, mode);
    plan.pipeline.microbatches = 8;
    plan.pipeline.offload = schedule == "bpipe" ? 0 : 0.5;
    plan.run.steps = 2;
    return plan;
}

// What lies on the lanes of copies: by rank, kind of action and how often.
std::map<std::pair<int, std::string>, int> copiesIn(const traces::Trace& trace)
{
    std::map<std::pair<int, std::string>, int> copies;
    for (const Lane& lane : trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == LaneKind::Copy) ++copies[{lane.info().rank.value, toText(lane.action(i))}];
    return copies;
}

using Case = std::tuple<std::string, int, int>; // schedule, ranks, chunks
class MovingFamily : public testing::TestWithParam<Case> {};

TEST_P(MovingFamily, TrainsAsOnTheCpuInAnOrderThatEventsGive)
{
    const auto& [name, ranks, chunks] = GetParam();
    const int before = FakeGpus::get().blocks();
    for (const auto& [mode, gpus] : {std::pair{RunMode::Threads, 1}, {RunMode::Threads, 4}, {RunMode::Emulated, 1}}) {
        const Plan plan = moving(name, ranks, chunks, mode);
        const Outcome onCpu = runPlan(plan);
        const Outcome outcome = runOn({.count = gpus, .ofOperation = 1'000, .ofCopy = 3'000}, plan, {.clock = &FakeGpus::get().clock()});
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        EXPECT_NE(outcome.result->gradientCheck, GradientCheck::Failed);
        EXPECT_LT(outcome.result->gradientMaxAbsDiff, 1e-5);
        EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        EXPECT_FALSE(copiesIn(outcome.trace).empty());
        EXPECT_EQ(copiesIn(outcome.trace), copiesIn(onCpu.trace));
        // nothing goes back before what it takes is there
        int waits = 0;
        for (std::size_t l = 0; l < outcome.trace.laneCount(); ++l)
            for (const traces::Edge& edge : outcome.trace.edgesOfLane(traces::LaneId{l})) {
                const traces::Slice from = outcome.trace.slice(edge.from);
                if (!isCopy(from.action.kind())) continue;
                EXPECT_GE(outcome.trace.slice(edge.to).begin, from.end) << toText(from.action);
                ++waits;
            }
        EXPECT_GT(waits, 0);
    }
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

INSTANTIATE_TEST_SUITE_P(Offload, MovingFamily,
                         testing::Values(Case{"1f1b", 2, 1}, Case{"gpipe", 2, 1}, Case{"zb-h1", 2, 1}, Case{"interleaved", 2, 2}, Case{"bpipe", 4, 1}),
                         [](const auto& each) {
                             std::string name = std::get<0>(each.param);
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

// GPipe's ranks hold all micro-batches at once, and half of them are away. In threads that depends on how soon the copies come about.
TEST(OffloadOnGpus, LeavesTheRankLessToHold)
{
    Plan plan = moving("gpipe", 2, 1, RunMode::Emulated);
    const Outcome moved = runOn({.count = 1, .ofOperation = 1'000}, plan);
    plan.pipeline.offload = 0;
    const Outcome kept = runOn({.count = 1, .ofOperation = 1'000}, plan);
    ASSERT_TRUE(moved.result && kept.result);
    for (const int rank : {0, 1})
        EXPECT_LT(static_cast<double>(most(moved.trace, Rank{rank}, MemoryClass::Activations)),
                  0.8 * static_cast<double>(most(kept.trace, Rank{rank}, MemoryClass::Activations)));
}

TEST(OffloadOnGpus, GoesBetweenGpusAndTheCpu)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated})
        for (const char* schedule : {"1f1b", "bpipe"}) {
            Plan plan = moving(schedule, 4, 1, mode);
            const Outcome onCpu = runPlan(plan);
            plan.run.gpus = {0, 1, kOnCpu, kOnCpu};
            const Outcome outcome = runOn({.count = 2, .ofOperation = 1'000}, plan);
            ASSERT_TRUE(outcome.result) << saidBy(outcome);
            EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
            EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
        }
}

// With two replicas that divide all they can, the streams for sums and for copies go on beside each other.
TEST(OffloadOnGpus, GoesWithReplicas)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = moving("1f1b", 2, 1, mode);
        plan.machine.replicas = 2;
        plan.pipeline.sharding = Sharding::Zero2;
        const Outcome onCpu = runPlan(plan);
        const Outcome outcome = runOn({.count = 2}, plan);
        ASSERT_TRUE(outcome.result) << saidBy(outcome);
        EXPECT_THAT(outcome.result->loss, Pointwise(FloatNear(1e-4F), onCpu.result->loss));
        EXPECT_THAT(FakeGpus::get().races(), IsEmpty());
    }
}

} // namespace
} // namespace stagecraft::runtime
