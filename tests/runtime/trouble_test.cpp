// SPDX-License-Identifier: Apache-2.0
//
// Stages that are slow or stand still on purpose.
#include "engine/runtime/trouble.h"

#include "tests/runtime/run_plan.h"
#include "traces/analysis/median.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;
using traces::Rank;
using traces::Stage;
using traces::TimeNs;

Plan steady(RunMode mode, int steps)
{
    Plan plan;
    plan.model.layers.assign(2, Linear{128, 128, Activation::Relu});
    plan.model.microbatchRows = 64;
    plan.pipeline = {.schedule = "1f1b", .ranks = 2, .microbatches = 4, .customSchedule = {}};
    plan.run.mode = mode;
    plan.run.steps = steps;
    plan.run.check = CheckMode::First;
    return plan;
}

TimeNs medianOf(const traces::Trace& trace, int rank, ActionKind kind, const std::function<bool(traces::Step)>& in)
{
    const Lane& lane = trace.lane(*trace.findLane(Rank{rank}, LaneKind::Compute));
    std::vector<TimeNs> times;
    for (std::size_t i = 0; i < lane.size(); ++i)
        if (lane.action(i).kind() == kind && in(lane.step(i))) times.push_back(lane.end(i) - lane.begin(i));
    return traces::medianOf(std::move(times));
}

std::size_t heldSlices(const traces::Trace& trace, int stage)
{
    const std::string text = "stage " + std::to_string(stage) + " held";
    std::size_t count = 0;
    for (const Lane& lane : trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i) count += lane.text(i) != traces::TextId{} && trace.text(lane.text(i)) == text ? 1 : 0;
    return count;
}

TEST(Trouble, HoldsARankUntilItIsLetGo)
{
    Trouble trouble(2, {});
    EXPECT_TRUE(trouble.awaitRelease(Stage{1}));
    trouble.set({.stage = 1, .held = true});
    EXPECT_TRUE(trouble.holds(Stage{1}));
    EXPECT_FALSE(trouble.holds(Stage{0}));
    std::atomic<bool> gone{false};
    std::jthread rank([&] {
        EXPECT_TRUE(trouble.awaitRelease(Stage{1}));
        gone = true;
    });
    EXPECT_FALSE(gone);
    trouble.set({.stage = 1, .held = false});
    rank.join();

    trouble.set({.stage = 0, .factor = 3.0, .held = true});
    EXPECT_EQ(trouble.factorOf(Stage{0}), 3.0);
    EXPECT_EQ(trouble.factorOf(Stage{1}), 1.0);
    std::jthread other([&] { EXPECT_FALSE(trouble.awaitRelease(Stage{0})); });
    trouble.cancel();
    other.join();
    trouble.linger(Stage{0}, TimeNs{1} << 60); // no wait lasts any more
    trouble.set({.stage = 7, .held = true});   // there is none
}

TEST(Trouble, LingersSoManyTimesAsLongAsTheWorkTook)
{
    const Trouble none(1, {});
    Trouble trouble(2, {1, 4});
    const TimeNs begin = monotonicClock().now();
    trouble.linger(Stage{1}, 500'000);
    EXPECT_GE(monotonicClock().now() - begin, 1'500'000);
}

TEST(Trouble, StretchesTheActionsOfASlowStage)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        Plan plan = steady(mode, 4);
        plan.run.slowdown = {1, 8};
        const Outcome outcome = runPlan(plan);
        ASSERT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "");
        EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
        // equal layers: the second, slow one, takes many times as long (its backward makes no smaller work than the first's)
        const auto all = [](traces::Step) { return true; };
        EXPECT_GT(medianOf(outcome.trace, 1, ActionKind::Forward, all), 3 * medianOf(outcome.trace, 0, ActionKind::Forward, all));
        EXPECT_GT(medianOf(outcome.trace, 1, ActionKind::Backward, all), 3 * medianOf(outcome.trace, 0, ActionKind::Backward, all));
    }
}

// Set while the run goes on; its effect is in what comes after.
TEST(Trouble, CanBeMadeAndEndedWhileARunGoesOn)
{
    for (const RunMode mode : {RunMode::Threads, RunMode::Emulated}) {
        const std::unique_ptr<Session> session = makeLocalSession();
        Outcome outcome;
        ASSERT_TRUE(session->start(steady(mode, 1'000'000)).ok());
        const auto stepsFrom = [&](std::size_t from, std::size_t count) { return [&, from, count] { return outcome.trace.steps().size() >= from + count; }; };
        follow(*session, outcome, stepsFrom(0, 20));
        session->trouble({.stage = 0, .factor = 20.0});
        const std::size_t slowFrom = outcome.trace.steps().size();
        // some may have passed before it took hold, and were not shown yet
        follow(*session, outcome, [&] {
            const auto last = [&](traces::Step step) { return step.value + 1 == static_cast<int>(outcome.trace.steps().size()); };
            const auto first = [&](traces::Step step) { return step.value < 20; };
            return outcome.trace.steps().size() > slowFrom &&
                   medianOf(outcome.trace, 0, ActionKind::Forward, last) > 5 * medianOf(outcome.trace, 0, ActionKind::Forward, first);
        });
        session->trouble({.stage = 0, .factor = 1.0});
        session->trouble({.stage = 1, .held = true});
        // nothing comes to its end while a stage stands still
        std::size_t still = outcome.trace.steps().size();
        for (int quiet = 0; quiet < 5;) {
            session->waitForRecords(std::chrono::milliseconds(20));
            gather(outcome, session->takeRecords());
            quiet = outcome.trace.steps().size() == still ? quiet + 1 : 0;
            still = outcome.trace.steps().size();
        }
        EXPECT_EQ(session->state(), SessionState::Running);
        session->trouble({.stage = 1, .held = false});
        follow(*session, outcome, stepsFrom(still, 3));
        // in virtual time a rank stands still only for as long as the other could go on
        EXPECT_TRUE(heldSlices(outcome.trace, 1) == 1 || (mode == RunMode::Emulated && heldSlices(outcome.trace, 1) == 0));

        session->trouble({.stage = 1, .held = true});
        session->stop(); // also of a stage that stands still
        followToEnd(*session, outcome);
        EXPECT_EQ(outcome.last, SessionState::Stopped);
    }
}

TEST(Trouble, IsNothingToASessionWithoutARun)
{
    const std::unique_ptr<Session> session = makeLocalSession();
    session->trouble({.stage = 0, .factor = 2.0});
    EXPECT_EQ(session->state(), SessionState::Idle);
}

} // namespace
} // namespace stagecraft::runtime
