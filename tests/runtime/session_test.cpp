// SPDX-License-Identifier: Apache-2.0
//
// A session under command: pause, resume, stop, again, and destruction at any moment.
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <pthread.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;

Plan endless(RunMode mode, const char* name = "mlp")
{
    Plan plan = preset(name);
    plan.run.mode = mode;
    plan.run.steps = 1'000'000;
    plan.run.check = CheckMode::Off;
    return plan;
}

bool heard(const Outcome& outcome, SessionState state)
{
    return std::find(outcome.states.begin(), outcome.states.end(), state) != outcome.states.end();
}

void pause(engine::Session& session, Outcome& outcome)
{
    session.pause();
    follow(session, outcome, [&] { return heard(outcome, SessionState::Paused); });
}

// A run that has ended a step, and is paused.
void pauseAfterAStep(engine::Session& session, const Plan& plan, Outcome& outcome)
{
    ASSERT_TRUE(session.start(plan).ok());
    follow(session, outcome, [&] { return !outcome.trace.steps().empty(); });
    pause(session, outcome);
}

class InBothModes : public testing::TestWithParam<RunMode> {};
INSTANTIATE_TEST_SUITE_P(Session, InBothModes, testing::Values(RunMode::Threads, RunMode::Emulated),
                         [](const auto& each) { return std::string(runModeText(each.param)); });

TEST_P(InBothModes, StopsWhileItRunsAndKeepsWhatRan)
{
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(endless(GetParam())).ok());
    follow(*session, outcome, [&] { return outcome.trace.steps().size() >= 2; });
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_FALSE(outcome.failure);
    ASSERT_TRUE(outcome.result); // of the steps that were completed
    EXPECT_GE(outcome.result->steps, 2);
    EXPECT_GE(outcome.trace.sliceCount(), 2U * 4U * 8U);
}

TEST_P(InBothModes, RunsAnotherPlanAfterOneThatWasStopped)
{
    Outcome first;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(endless(GetParam())).ok());
    follow(*session, first, [&] { return !first.trace.steps().empty(); });
    session->stop();
    followToEnd(*session, first);

    Plan plan = preset("hello");
    plan.run.mode = GetParam();
    plan.run.steps = 3;
    Outcome second;
    ASSERT_TRUE(session->start(plan).ok());
    followToEnd(*session, second);
    EXPECT_EQ(second.last, SessionState::Finished);
    EXPECT_EQ(second.trace.info.ranks, 2);
    EXPECT_EQ(second.trace.steps().size(), 3U);
}

TEST_P(InBothModes, ActsNoMoreWhilePausedAndGoesOnAfterwards)
{
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_NO_FATAL_FAILURE(pauseAfterAStep(*session, endless(GetParam()), outcome));
    EXPECT_EQ(session->state(), SessionState::Paused);

    // What was recorded before the pause may still be on its way; after it comes nothing.
    while (session->waitForRecords(3 * std::chrono::milliseconds(16))) gather(outcome, session->takeRecords());
    const std::size_t slices = outcome.trace.sliceCount();
    const std::size_t steps = outcome.trace.steps().size();
    EXPECT_FALSE(session->waitForRecords(std::chrono::milliseconds(30)));

    session->resume();
    follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps + 1; });
    EXPECT_GT(outcome.trace.sliceCount(), slices);
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
}

TEST_P(InBothModes, CanBePausedBeforeItsFirstActionAndStoppedWhilePaused)
{
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(endless(GetParam())).ok());
    pause(*session, outcome);
    EXPECT_EQ(outcome.trace.sliceCount(), 0U);
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
}

TEST_P(InBothModes, StopsWhileItPreparesAndSaysHowFarItIs)
{
    Plan plan = endless(GetParam(), "gpt-small");
    plan.pipeline.microbatches = 256; // the reference alone would take very long
    plan.run.check = CheckMode::First;
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(plan).ok());
    const auto atReference = [&] {
        return std::any_of(outcome.progress.begin(), outcome.progress.end(), [](const ProgressMessage& progress) {
            return progress.text == "computing the reference gradients: 1 of 256";
        });
    };
    follow(*session, outcome, atReference);
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Stopped);
    EXPECT_FALSE(outcome.failure);
    EXPECT_THAT(outcome.progress.front().text, testing::StartsWith("building the stages: 1 of "));
    EXPECT_TRUE(atReference());
    EXPECT_LT(outcome.progress.back().fraction, 0.5);
    EXPECT_EQ(outcome.states, (std::vector{SessionState::Preparing, SessionState::Stopping, SessionState::Stopped}));
}

TEST_P(InBothModes, SaysThatItStopsAndNothingElseUntilItHas)
{
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_NO_FATAL_FAILURE(pauseAfterAStep(*session, endless(GetParam()), outcome));
    session->stop();
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.states, (std::vector{SessionState::Preparing, SessionState::Running, SessionState::Paused,
                                           SessionState::Stopping, SessionState::Stopped}));
    session->stop(); // of what is over already: nothing
    EXPECT_EQ(session->state(), SessionState::Stopped);
    EXPECT_TRUE(session->takeRecords().empty());
}

// Stacks of this size fit in no address space, so no thread can be started while it lives.
class NoThreads {
public:
    NoThreads()
    {
        pthread_attr_init(&attributes_);
        pthread_getattr_default_np(&attributes_);
        pthread_attr_getstacksize(&attributes_, &size_);
        setSize(std::size_t{1} << 47U);
    }
    ~NoThreads()
    {
        setSize(size_);
        pthread_attr_destroy(&attributes_);
    }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

private:
    void setSize(std::size_t size)
    {
        pthread_attr_setstacksize(&attributes_, size);
        pthread_setattr_default_np(&attributes_);
    }
    pthread_attr_t attributes_{};
    std::size_t size_ = 0;
};

TEST(LocalSession, SaysThatItCannotStartAThreadAndRunsLater)
{
    const auto session = makeLocalSession();
    Plan plan = preset("hello");
    plan.run.steps = 1;
    {
        const NoThreads noThreads;
        const auto started = session->start(plan);
        ASSERT_FALSE(started.ok());
        EXPECT_THAT(started.error().message, testing::HasSubstr("cannot be started"));
        EXPECT_EQ(session->state(), SessionState::Idle);
    }
    ASSERT_TRUE(session->start(plan).ok());
    Outcome outcome;
    followToEnd(*session, outcome);
    EXPECT_EQ(outcome.last, SessionState::Finished);
}

TEST_P(InBothModes, EndsWithItsOwner)
{
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(endless(GetParam())).ok());
    Outcome outcome;
    follow(*session, outcome, [&] { return outcome.trace.sliceCount() > 0; });
    // the destructor stops and joins; a hang shows as a time-out of the test
}

TEST_P(InBothModes, EndsWithItsOwnerWhilePausedOrJustStarted)
{
    const auto paused = makeLocalSession();
    ASSERT_TRUE(paused->start(endless(GetParam())).ok());
    paused->pause();
    Outcome outcome;
    follow(*paused, outcome, [&] { return heard(outcome, SessionState::Paused); });
    const auto justStarted = makeLocalSession();
    ASSERT_TRUE(justStarted->start(endless(GetParam())).ok());
}

// Virtual time stands still: the pause has its place in it and no length.
TEST(LocalSession, RecordsThePlaceOfAPauseInVirtualTime)
{
    Outcome outcome;
    const auto session = makeLocalSession();
    ASSERT_NO_FATAL_FAILURE(pauseAfterAStep(*session, endless(RunMode::Emulated), outcome));
    session->resume();
    const std::size_t steps = outcome.trace.steps().size();
    follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps + 1; });
    session->stop();
    followToEnd(*session, outcome);
    ASSERT_EQ(outcome.trace.pauses().size(), 1U);
    EXPECT_EQ(outcome.trace.pauses()[0].length(), 0);
    EXPECT_GE(outcome.trace.pauses()[0].begin, outcome.trace.steps()[0].span.end);
    EXPECT_LE(outcome.trace.pauses()[0].begin, outcome.trace.extent().end);
}

TEST(LocalSession, RecordsThePauseAndLeavesItOutOfTheStep)
{
    constexpr TimeNs kPause = 3'600'000'000'000; // an hour on the test's clock
    ManualClock clock;
    Outcome outcome;
    const auto session = makeLocalSession({.clock = &clock, .ringCapacity = 1 << 14, .fault = std::nullopt});
    ASSERT_NO_FATAL_FAILURE(pauseAfterAStep(*session, endless(RunMode::Threads), outcome));
    clock.advance(kPause);
    session->resume();
    const std::size_t steps = outcome.trace.steps().size();
    follow(*session, outcome, [&] { return outcome.trace.steps().size() > steps + 2; });
    session->stop();
    followToEnd(*session, outcome);

    ASSERT_EQ(outcome.trace.pauses().size(), 1U);
    const traces::Interval pause = outcome.trace.pauses()[0];
    EXPECT_GE(pause.length(), kPause);
    for (const traces::Lane& lane : outcome.trace.lanes()) {
        if (lane.info().kind != traces::LaneKind::Compute) continue;
        for (std::size_t i = 0; i < lane.size(); ++i)
            EXPECT_TRUE(lane.begin(i) <= pause.begin || lane.begin(i) >= pause.end) << traces::toText(lane.action(i));
    }
    ASSERT_TRUE(outcome.result);
    EXPECT_LT(outcome.result->stepNs, kPause);
}

TEST(LocalSession, RefusesToStartWhileARunGoesOn)
{
    const auto session = makeLocalSession();
    ASSERT_TRUE(session->start(endless(RunMode::Threads)).ok());
    const auto again = session->start(endless(RunMode::Threads));
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message, testing::HasSubstr("a run is going on"));
}

TEST(LocalSession, SaysWhyAPlanCannotRunAndWhatToDo)
{
    const auto session = makeLocalSession();
    const auto reason = [&](const Plan& plan) {
        const auto started = session->start(plan);
        return started.ok() ? std::string("it started") : started.error().message;
    };
    Plan plan = preset("hello");
    plan.model = {};
    plan.partition = {};
    plan.costs.source = CostSource::Assumed;
    EXPECT_THAT(reason(plan), testing::HasSubstr("no model"));

    plan = preset("hello");
    plan.model.microbatchRows = 1 << 20;
    plan.pipeline.microbatches = 1 << 14; // 2^34 rows
    // 2^34 rows of 1024 floats, in and out: 2^47 bytes
    EXPECT_THAT(reason(plan), testing::AllOf(testing::HasSubstr("inputs and targets 1.31e+05 GiB"),
                                             testing::HasSubstr("fewer or smaller micro-batches")));

    plan = preset("hello");
    plan.pipeline.schedule = "custom";
    plan.pipeline.customSchedule = "0F0,0B0,0ALL_REDUCE\n1F0,1B0\n";
    plan.pipeline.microbatches = 1;
    EXPECT_THAT(reason(plan), testing::HasSubstr("cannot execute 0ALL_REDUCE"));

    plan.pipeline.customSchedule = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n";
    plan.pipeline.microbatches = 2;
    EXPECT_THAT(reason(plan), testing::HasSubstr("deadlocks, each waits for the next: rank 0 at position 1 (0B0) waits for 1B0 on rank 1; rank 1 at position 0"));
    EXPECT_EQ(session->state(), SessionState::Idle);
}

TEST(LocalSession, RunsASchedulePutTogetherByHand)
{
    Plan plan = preset("hello");
    plan.pipeline.schedule = "custom";
    plan.pipeline.customSchedule = "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n";
    plan.pipeline.microbatches = 2;
    plan.run.steps = 2;
    const Outcome outcome = runPlan(plan);
    ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise); // the reference accumulates in the same order
}

} // namespace
} // namespace stagecraft::runtime
