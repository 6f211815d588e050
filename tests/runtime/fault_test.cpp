// SPDX-License-Identifier: Apache-2.0
//
// Faults put into a run: the first one is told with its place, every rank ends, and the session can be used again.
#include "engine/runtime/run_messages.h"
#include "tests/runtime/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;
using Kind = InjectedFault::Kind;

Plan fourRanks(RunMode mode)
{
    Plan plan = preset("mlp");
    plan.run.mode = mode;
    plan.run.steps = 100;
    return plan;
}

LocalSessionOptions faulty(Kind kind, ActionKind action, int stage, int microbatch, int step)
{
    LocalSessionOptions options;
    options.fault = InjectedFault{kind, action, Stage{stage}, MicroBatch{microbatch}, Step{step}, 1};
    return options;
}

class Faults : public testing::TestWithParam<RunMode> {};
INSTANTIATE_TEST_SUITE_P(Session, Faults, testing::Values(RunMode::Threads, RunMode::Emulated),
                         [](const auto& each) { return std::string(runModeText(each.param)); });

void expectPlace(const Outcome& outcome, int stage, int microbatch, int step)
{
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->rank, stage); // one stage a rank
    EXPECT_EQ(outcome.failure->stage, stage);
    EXPECT_EQ(outcome.failure->microbatch, microbatch);
    EXPECT_EQ(outcome.failure->step, step);
    EXPECT_FALSE(outcome.result);
    EXPECT_EQ(outcome.states.back(), SessionState::Failed);
}

TEST_P(Faults, AnExceptionInAForwardIsToldWithItsPlace)
{
    const Outcome outcome = runPlan(fourRanks(GetParam()), faulty(Kind::Exception, ActionKind::Forward, 2, 1, 1));
    expectPlace(outcome, 2, 1, 1);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("2F1 failed in step 1 on rank 2"));
    EXPECT_EQ(outcome.trace.steps().size(), 1U); // what ran before is kept
    EXPECT_GT(outcome.trace.sliceCount(), 0U);
}

TEST_P(Faults, AnExceptionInABackwardIsToldWithItsPlace)
{
    const Outcome outcome = runPlan(fourRanks(GetParam()), faulty(Kind::Exception, ActionKind::Backward, 3, 0, 0));
    expectPlace(outcome, 3, 0, 0);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("3B0"));
}

TEST_P(Faults, AnAllocationThatFailsIsToldWithItsSizeAndARemedy)
{
    for (const ActionKind action : {ActionKind::Forward, ActionKind::Backward}) {
        const Outcome outcome = runPlan(fourRanks(GetParam()), faulty(Kind::AllocationFailure, action, 1, 2, 0));
        expectPlace(outcome, 1, 2, 0);
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("not enough memory for "));
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("smaller micro-batches"));
    }
}

TEST_P(Faults, AWrongGradientFailsTheCheckAndTheRun)
{
    const Outcome outcome = runPlan(fourRanks(GetParam()), faulty(Kind::WrongGradient, ActionKind::Backward, 1, 3, 0));
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("gradient check failed in step 0: parameter 0 of stage 1"));
    EXPECT_EQ(outcome.failure->stage, 1);
    ASSERT_TRUE(outcome.result); // so that the word "failed" reaches `run --json`
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Failed);
    EXPECT_NEAR(outcome.result->gradientMaxAbsDiff, 1.0, 1e-3); // what was put in
}

TEST_P(Faults, TheCheckLooksAtEveryStepWhenAsked)
{
    Plan plan = fourRanks(GetParam());
    plan.run.steps = 4;
    const LocalSessionOptions options = faulty(Kind::WrongGradient, ActionKind::Backward, 0, 0, 2);
    EXPECT_EQ(runPlan(plan, options).last, SessionState::Finished); // `first` does not see step 2
    plan.run.check = CheckMode::All;
    const Outcome outcome = runPlan(plan, options);
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->step, 2);
}

TEST_P(Faults, AnExceptionBetweenTwoStepsEndsTheRunAndIsTold)
{
    const Outcome outcome = runPlan(fourRanks(GetParam()), faulty(Kind::ExceptionAfterStep, ActionKind::Forward, 0, 0, 1));
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("exception injected"));
    EXPECT_THAT(outcome.failure->text, testing::Not(testing::HasSubstr("building the stages")));
    EXPECT_EQ(outcome.trace.steps().size(), 1U);
}

TEST(Fault, AThreadThatCannotBeStartedIsToldWithTheRemedyAndHangsNobody)
{
    const Outcome outcome = runPlan(fourRanks(RunMode::Threads), faulty(Kind::NoThread, ActionKind::Forward, 2, 0, 0));
    EXPECT_EQ(outcome.last, SessionState::Failed);
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("the thread of rank 2 cannot be started"));
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("mode emulated"));
    EXPECT_EQ(outcome.trace.sliceCount(), 0U);
}

// So is the one beside it, for the other action of a pair or for copies.
TEST(Fault, ASecondThreadThatCannotBeStartedIsToldLikewise)
{
    Plan pairs = fourRanks(RunMode::Threads);
    pairs.pipeline.schedule = "dualpipe";
    Plan copies = fourRanks(RunMode::Threads);
    copies.pipeline.offload = 0.5;
    for (const Plan& plan : {pairs, copies}) {
        const Outcome outcome = runPlan(plan, faulty(Kind::NoSecondThread, ActionKind::Forward, 1, 0, 0));
        EXPECT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("the thread of rank 1, a second one beside it, cannot be started"));
        EXPECT_THAT(outcome.failure->text, testing::HasSubstr("mode emulated"));
    }
}

// A learning rate far too high: the weights overflow, and the sequential model's would as well.
TEST_P(Faults, ALossThatIsNoNumberEndsTheRunAtOnceAndIsNoWrongGradient)
{
    Plan plan = fourRanks(GetParam());
    plan.run.optimizer = OptimizerKind::Sgd;
    plan.run.learningRate = 1e6;
    plan.run.check = CheckMode::All;
    const Outcome outcome = runPlan(plan, {.cpuClock = &monotonicClock()}); // a quiet machine
    ASSERT_TRUE(outcome.failure);
    const int step = outcome.failure->step.value_or(-1);
    EXPECT_THAT(step, testing::AllOf(testing::Gt(0), testing::Lt(6)));
    expectPlace(outcome, 3, 0, step);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("3F0 failed in step " + std::to_string(step) + " on rank 3: the loss is "));
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("the training has diverged. Take a lower learning rate than 1e+06"));
    // what was recorded stays
    ASSERT_EQ(outcome.trace.steps().size(), static_cast<std::size_t>(step));
    for (const traces::StepSpan& each : outcome.trace.steps()) EXPECT_TRUE(std::isfinite(each.loss.value_or(NAN)));
    EXPECT_GT(outcome.trace.sliceCount(), 0U);
}

TEST(Fault, ALossThatIsNoNumberBeforeAnyUpdateIsNotBlamedOnTheLearningRate)
{
    EXPECT_THAT(divergedLoss(NAN, false, 1e-3), testing::HasSubstr("the loss is nan before any update of the weights: look for values in the data"));
}

TEST_P(Faults, TheSessionRunsAgainAfterAFailure)
{
    const auto session = makeLocalSession(faulty(Kind::Exception, ActionKind::Forward, 3, 0, 0));
    ASSERT_TRUE(session->start(fourRanks(GetParam())).ok());
    Outcome first;
    followToEnd(*session, first);
    EXPECT_EQ(first.last, SessionState::Failed);

    Plan plan = preset("hello"); // two stages: the fault's stage is not there
    plan.run.mode = GetParam();
    plan.run.steps = 2;
    ASSERT_TRUE(session->start(plan).ok());
    Outcome second;
    followToEnd(*session, second);
    EXPECT_EQ(second.last, SessionState::Finished);
    EXPECT_FALSE(second.failure);
}

} // namespace
} // namespace stagecraft::runtime
