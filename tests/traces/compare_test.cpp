// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/staircase.h"
#include "traces/analysis/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

using test::staircase;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Step kStep{0};

// Predicted: F and B take one unit. Actual: the backward of rank 1 takes two, and all is later by a unit.
const std::vector<std::string> kPredicted{"0F0 0F1 . 0B0 . 0B1", ". 1F0 1B0 1F1 1B1 ."};
const std::vector<std::string> kActual{"0F0 0F1 . . 0B0 . . 0B1", ". 1F0 1B0 - 1F1 1B1 - ."};

TEST(CompareSteps, GivesThePredictionError)
{
    const StepComparison c =
        compareSteps(staircase(kPredicted), kStep, staircase(kActual, {.origin = 50'000}), kStep).value();
    EXPECT_EQ(c.predictedTime, 6000);
    EXPECT_EQ(c.actualTime, 8000);
    EXPECT_EQ(c.stepTimeError, -0.25);
    EXPECT_EQ(c.matched, 8u);
    EXPECT_EQ(c.onlyPredicted + c.onlyActual, 0u);
    EXPECT_THAT(c.kinds, ElementsAre(KindComparison{ActionKind::Forward, 4, 1000, 1000, 0.0, 0.0},
                                     KindComparison{ActionKind::Backward, 4, 1000, 1500, -0.25, -0.25}));
    // begins differ by 0, 0, 1, 2 units on rank 0 and by 0, 0, 1, 1 on rank 1
    EXPECT_EQ(c.medianShift, 500);
    EXPECT_EQ(c.maxShift, 2000);
    EXPECT_EQ(c.furthest, (SliceRef{LaneId{0}, 3}));
}

TEST(CompareSteps, IsExactForEqualTraces)
{
    const StepComparison c = compareSteps(staircase(kActual), kStep, staircase(kActual), kStep).value();
    EXPECT_EQ(c.stepTimeError, 0.0);
    EXPECT_EQ(c.maxShift, 0);
}

TEST(CompareSteps, CountsWhatOnlyOneSideHas)
{
    const StepComparison c =
        compareSteps(staircase({"0F0 0F1 0B0"}), kStep, staircase({"0F0 0B0 0OPTIMIZER 0W7"}), kStep).value();
    EXPECT_EQ(c.matched, 2u);
    EXPECT_EQ(c.onlyPredicted, 1u);
    EXPECT_EQ(c.onlyActual, 2u);
}

TEST(CompareSteps, MatchesAlikeActionsInTheOrderOfTime)
{
    const StepComparison c = compareSteps(staircase({"0F0 0F0 -"}), kStep, staircase({"0F0 . 0F0 -"}), kStep).value();
    EXPECT_EQ(c.matched, 2u);
    EXPECT_EQ(c.maxShift, 1000);
    EXPECT_EQ(c.kinds.front().medianError, 0.0);
}

TEST(CompareSteps, LeavesPausesOut)
{
    Trace actual = staircase({"0F0 . . . 0B0"});
    actual.addPause({1000, 4000});
    const StepComparison c = compareSteps(staircase({"0F0 0B0"}), kStep, actual, kStep).value();
    EXPECT_EQ(c.stepTimeError, 0.0);
    EXPECT_EQ(c.maxShift, 0);
}

TEST(CompareSteps, SaysWhatIsMissing)
{
    const auto errorOf = [](const Trace& a, Step s, const Trace& b, Step t) {
        const Expected<StepComparison> c = compareSteps(a, s, b, t);
        return c.ok() ? std::string("compared") : c.error().message;
    };
    const Trace trace = staircase(kPredicted);
    EXPECT_THAT(errorOf(trace, Step{4}, trace, kStep), testing::AllOf(HasSubstr("predicted"), HasSubstr("step 4")));
    EXPECT_THAT(errorOf(trace, kStep, trace, Step{5}), testing::AllOf(HasSubstr("actual"), HasSubstr("step 5")));
    EXPECT_THAT(errorOf(staircase({"0F0"}), kStep, staircase({"1F0"}), kStep), HasSubstr("no action in common"));
}

TEST(CompareTraces, HoldsEveryStepAgainstTheOnlyOneOfASimulation)
{
    Trace actual = staircase(kActual);
    test::addStaircase(actual, kPredicted, {.origin = 20'000, .step = Step{1}});
    const std::vector<StepComparison> all = compareTraces(staircase(kPredicted), actual).value().steps;
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].stepTimeError, -0.25);
    EXPECT_EQ(all[1].stepTimeError, 0.0);
    EXPECT_EQ(all[1].predicted, Step{0});
    EXPECT_EQ(all[1].actual, Step{1});
    EXPECT_EQ(compareTraces(actual, actual).value().steps[1].predicted, Step{1});
    EXPECT_TRUE(compareTraces(staircase(kPredicted), actual).value().onlyActual.empty());
    EXPECT_FALSE(compareTraces(actual, Trace{}).ok());
    EXPECT_FALSE(compareTraces(Trace{}, actual).ok());
}

Trace ofSteps(int first, int last)
{
    Trace trace = staircase(kActual, {.step = Step{first}});
    for (int s = first + 1; s <= last; ++s) test::addStaircase(trace, kActual, {.origin = (s - first) * 20'000, .step = Step{s}});
    return trace;
}

TEST(CompareTraces, HoldsAgainstEachOtherWhatBothHaveAndTellsWhatIsLeftOut)
{
    const auto numbers = [](const std::vector<Step>& steps) {
        std::vector<int> all;
        for (const Step step : steps) all.push_back(step.value);
        return all;
    };
    const TraceComparison longer = compareTraces(ofSteps(0, 2), ofSteps(0, 4)).value();
    ASSERT_EQ(longer.steps.size(), 3u);
    EXPECT_EQ(longer.steps[2].actual, Step{2});
    EXPECT_EQ(numbers(longer.onlyActual), (std::vector<int>{3, 4}));
    EXPECT_TRUE(longer.onlyPredicted.empty());
    const TraceComparison shifted = compareTraces(ofSteps(0, 4), ofSteps(2, 5)).value();
    ASSERT_EQ(shifted.steps.size(), 3u);
    EXPECT_EQ(numbers(shifted.onlyPredicted), (std::vector<int>{0, 1}));
    EXPECT_EQ(numbers(shifted.onlyActual), (std::vector<int>{5}));
    EXPECT_THAT(compareTraces(ofSteps(0, 1), ofSteps(4, 6)).error().message, HasSubstr("no step in common: the predicted one has those from 0 to 1, the actual one from 4 to 6"));
}

} // namespace
} // namespace stagecraft::traces
