// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a run when its GPU fails for good, runs out of memory, or never answers: it ends with the reason, what ran until then
// is kept, and whether the process can go on is known.
#include "tests/runtime/fake_gpu/fake_gpu.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using traces::LaneKind;

Plan planOf(RunMode mode, const char* schedule = "1f1b")
{
    Plan plan = littleTransformer(schedule, 2, 1, mode);
    plan.run.device = DeviceKind::Cuda;
    plan.run.check = CheckMode::Off;
    return plan;
}

std::size_t actionsIn(const traces::Trace& trace)
{
    std::size_t actions = 0;
    for (const traces::Lane& lane : trace.lanes())
        if (lane.info().kind == LaneKind::Compute) actions += lane.size();
    return actions;
}

// How many operations a sound run takes, and how many there are before its first action.
struct Sound {
    int operations = 0;
    std::size_t actions = 0;
};
Sound soundRun(const Plan& plan)
{
    FakeGpus::get().reset({.count = 2});
    const Outcome outcome = runPlan(plan, {.devices = &FakeGpus::get().source()});
    EXPECT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    return {FakeGpus::get().operations(), actionsIn(outcome.trace)};
}

class FaultyGpu : public testing::TestWithParam<RunMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, FaultyGpu, testing::Values(RunMode::Threads, RunMode::Emulated),
                         [](const testing::TestParamInfo<RunMode>& of) { return std::string(runModeText(of.param)); });

TEST_P(FaultyGpu, EndsTheRunWhereverItFailsAndTheProcessForGpus)
{
    const int before = FakeGpus::get().blocks();
    const Plan plan = planOf(GetParam());
    const Sound sound = soundRun(plan);
    std::size_t kept = 0;
    for (const int part : {0, 1, 20, 35, 50, 65, 80, 95, 99}) {
        const int from = sound.operations * part / 100;
        FakeGpus::get().reset({.count = 2, .failsFrom = from});
        const std::unique_ptr<Session> session = makeLocalSession({.devices = &FakeGpus::get().source()});
        Outcome outcome;
        ASSERT_TRUE(session->start(plan).ok());
        followToEnd(*session, outcome);
        ASSERT_EQ(outcome.last, SessionState::Failed) << from;
        ASSERT_TRUE(outcome.failure) << from;
        EXPECT_THAT(outcome.failure->text, AllOf(HasSubstr("illegal memory access"), HasSubstr("the next run takes a new one"))) << from;
        EXPECT_LT(actionsIn(outcome.trace), sound.actions) << from;
        kept = std::max(kept, actionsIn(outcome.trace));
        EXPECT_THAT(session->spent(), HasSubstr("illegal memory access"));
        const auto again = session->start(plan);
        ASSERT_FALSE(again.ok());
        EXPECT_THAT(again.error().message, HasSubstr("lost to this process"));
    }
    EXPECT_GT(kept, sound.actions / 2); // of the failures that came late
    EXPECT_EQ(FakeGpus::get().blocks(), before);
}

// What is offloaded lies in memory that LibTorch does not take back from a GPU that has failed.
TEST(GpuFault, IsToldAlsoWhereActivationsAreOnTheHost)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = planOf(mode);
        plan.pipeline.offload = 0.5;
        const Sound sound = soundRun(plan);
        for (const int part : {40, 60, 80}) {
            FakeGpus::get().reset({.count = 2, .failsFrom = sound.operations * part / 100});
            const Outcome outcome = runPlan(plan, {.devices = &FakeGpus::get().source()});
            ASSERT_TRUE(outcome.failure) << part;
            EXPECT_THAT(outcome.failure->text, HasSubstr("illegal memory access")) << part;
        }
    }
}

// Of those that were asked for and not waited for, the first is meant: it, or something before that nobody saw.
TEST(GpuFault, NamesAnActionOnItsRank)
{
    const Plan plan = planOf(RunMode::Threads);
    const Sound sound = soundRun(plan);
    FakeGpus::get().reset({.count = 2, .failsFrom = sound.operations * 2 / 3});
    const Outcome outcome = runPlan(plan, {.devices = &FakeGpus::get().source()});
    ASSERT_TRUE(outcome.failure);
    EXPECT_TRUE(outcome.failure->rank) << outcome.failure->text;
    EXPECT_TRUE(outcome.failure->step) << outcome.failure->text;
}

TEST_P(FaultyGpu, ThatIsFullEndsTheRunAtItsActionAndIsThereForTheNext)
{
    const int before = FakeGpus::get().blocks();
    Plan plan = planOf(GetParam(), "gpipe");
    plan.pipeline.microbatches = 16;
    FakeGpus::get().reset({.count = 1, .memory = 900'000}); // enough for few micro-batches at once
    const std::unique_ptr<Session> session = makeLocalSession({.devices = &FakeGpus::get().source()});
    Outcome full;
    ASSERT_TRUE(session->start(plan).ok());
    followToEnd(*session, full);
    ASSERT_EQ(full.last, SessionState::Failed);
    ASSERT_TRUE(full.failure);
    EXPECT_THAT(full.failure->text, AllOf(HasSubstr(" failed in step 0 on rank "), HasSubstr("out of memory"), Not(HasSubstr("takes a new one"))));
    EXPECT_GT(actionsIn(full.trace), 0U);
    EXPECT_EQ(session->spent(), "");
    EXPECT_EQ(FakeGpus::get().blocks(), before);

    plan.pipeline.schedule = "1f1b";
    Outcome fits;
    ASSERT_TRUE(session->start(plan).ok());
    followToEnd(*session, fits);
    EXPECT_EQ(fits.last, SessionState::Finished) << (fits.failure ? fits.failure->text : "");
}

TEST_P(FaultyGpu, ThatNeverAnswersIsGivenUpAndWhatRanIsKept)
{
    const int before = FakeGpus::get().blocks();
    const Plan plan = planOf(GetParam());
    const Sound sound = soundRun(plan);
    FakeGpus::get().reset({.count = 2, .hangsFrom = sound.operations * 2 / 3});
    {
        const std::unique_ptr<Session> session = makeLocalSession({.devices = &FakeGpus::get().source(), .devicePatience = std::chrono::seconds(1)});
        Outcome outcome;
        ASSERT_TRUE(session->start(plan).ok());
        followToEnd(*session, outcome);
        EXPECT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, AllOf(HasSubstr("has not answered rank"), HasSubstr("takes a new one")));
        EXPECT_TRUE(outcome.failure->rank);
        EXPECT_GT(actionsIn(outcome.trace), 0U);
        EXPECT_LT(actionsIn(outcome.trace), sound.actions);
        EXPECT_NE(session->spent(), "");
        EXPECT_FALSE(session->start(plan).ok());
    } // which waits for no one
    FakeGpus::get().release();
    while (FakeGpus::get().blocks() > before) std::this_thread::yield(); // its threads end
}

// Before the first action as well, whatever it is asked for then: each GPU is measured once, and then come parameters and data.
TEST_P(FaultyGpu, ThatNeverAnswersWhileTheRunIsPreparedIsGivenUp)
{
    const int before = FakeGpus::get().blocks();
    const Plan plan = planOf(GetParam());
    const auto given = [&](int from) {
        FakeGpus::get().reset({.count = 2, .hangsFrom = from});
        std::string text;
        {
            const std::unique_ptr<Session> session = makeLocalSession({.devices = &FakeGpus::get().source(), .devicePatience = std::chrono::seconds(1)});
            Outcome outcome;
            EXPECT_TRUE(session->start(plan).ok());
            followToEnd(*session, outcome);
            EXPECT_EQ(outcome.last, SessionState::Failed);
            EXPECT_EQ(actionsIn(outcome.trace), 0U);
            text = saidBy(outcome);
            EXPECT_NE(session->spent(), "");
        }
        FakeGpus::get().release();
        while (FakeGpus::get().blocks() > before) std::this_thread::yield();
        return text;
    };
    EXPECT_THAT(given(0), AllOf(HasSubstr("GPU 0 has not answered rank 0 for 1 s, being measured: it hangs"), HasSubstr("takes a new one")));
    EXPECT_THAT(given(6), HasSubstr(" for 1 s, building its stages"));
    EXPECT_THAT(given(40), HasSubstr("has not answered rank "));
}

} // namespace
} // namespace stagecraft::runtime
