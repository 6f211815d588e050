// SPDX-License-Identifier: Apache-2.0
//
// The steps of a trace: where they lie, how long they took, and what it costs to have the figures of all.
#include "tests/traces/staircase.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/step_index.h"
#include "traces/analysis/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace stagecraft::traces {
namespace {

using testing::ElementsAre;

Trace ofSteps(int steps)
{
    Trace trace;
    for (int r = 0; r < 2; ++r) trace.addLane({.rank = Rank{r}, .name = ""});
    for (int s = 0; s < steps; ++s) {
        for (int r = 0; r < 2; ++r) {
            const TimeNs begin = s * 1000 + r * 100;
            trace.append(LaneId{r}, {begin, begin + 100, forward(Stage{r}, MicroBatch{0}), Step{s}});
            trace.append(LaneId{r}, {begin + 300, begin + 400, backward(Stage{r}, MicroBatch{0}), Step{s}});
        }
        trace.addStep({Step{s}, {s * 1000, s * 1000 + 500}, {}});
    }
    return trace;
}

TEST(StepIndex, FindsStepsThatOverlapOnALane)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .name = ""});
    int at = 0;
    for (const int step : {0, 0, 1, 0, 1, 1, 2}) {
        trace.append(lane, {at, at + 1, forward(Stage{0}, MicroBatch{at}), Step{step}});
        ++at;
    }
    const StepIndex index(trace);
    EXPECT_THAT(index.steps(), ElementsAre(Step{0}, Step{1}, Step{2}));
    const auto places = [&](int step) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
        for (const StepIndex::Run& run : index.runs(lane, Step{step})) found.emplace_back(run.begin, run.end);
        return found;
    };
    EXPECT_THAT(places(0), ElementsAre(std::pair(0U, 2U), std::pair(3U, 4U)));
    EXPECT_THAT(places(1), ElementsAre(std::pair(2U, 3U), std::pair(4U, 6U)));
    EXPECT_THAT(places(2), ElementsAre(std::pair(6U, 7U)));
    EXPECT_TRUE(places(3).empty());
}

TEST(AllStepFigures, AreThoseOfTheSingleSteps)
{
    const Trace trace = ofSteps(5);
    const std::vector<StepFigures> all = allStepFigures(trace);
    ASSERT_EQ(all.size(), 5U);
    for (const StepFigures& figures : all) {
        EXPECT_EQ(figures.span, stepFigures(trace, figures.step).value().span);
        EXPECT_EQ(figures.makespan, 500);
        EXPECT_EQ(figures.ranks[1].busy, 200);
    }
}

// Processor time, so that a busy machine changes nothing. Eight times the steps: 8 times the time where each is looked at
// once, 64 times where each step passes over the whole trace.
TEST(AllStepFigures, CostAsMuchAsTheTraceIsLong)
{
    const auto timeOf = [](int steps) {
        const std::clock_t before = std::clock();
        const Trace trace = ofSteps(steps);
        EXPECT_EQ(allStepFigures(trace).size(), static_cast<std::size_t>(steps));
        return static_cast<double>(std::clock() - before);
    };
    timeOf(2'000); // warm
    EXPECT_LT(timeOf(16'000), 25 * timeOf(2'000));
}

TEST(StepTimes, LeaveTheFirstStepOutWhereThereAreThree)
{
    const std::vector<StepSpan> steps{{Step{0}, {0, 900}, {}}, {Step{1}, {1000, 1300}, {}}, {Step{2}, {2000, 2500}, {}}};
    const std::vector<Interval> pauses{{2100, 2400}};
    EXPECT_THAT(countedSteps(steps, pauses), ElementsAre(StepTime{Step{1}, 300}, StepTime{Step{2}, 200}));
    EXPECT_THAT(countedSteps({steps[0], steps[1]}, pauses), ElementsAre(StepTime{Step{0}, 900}, StepTime{Step{1}, 300}));
    EXPECT_TRUE(countedSteps({}, {}).empty());
}

TEST(StepTimes, TheMiddleIsAStepThatHappened)
{
    EXPECT_EQ(middleStep({{Step{0}, 30}, {Step{1}, 10}, {Step{2}, 20}}), (StepTime{Step{2}, 20}));
    EXPECT_EQ(middleStep({{Step{0}, 40}, {Step{1}, 10}, {Step{2}, 20}, {Step{3}, 30}}), (StepTime{Step{2}, 20}));
    EXPECT_EQ(middleStep({{Step{4}, 7}}), (StepTime{Step{4}, 7}));
}

TEST(Trace, ReplacesTheSpanOfAStepInWhateverOrderTheyCome)
{
    Trace trace;
    for (const int step : {5, 1, 3, 1, 5}) trace.addStep({Step{step}, {0, step}, step * 0.5});
    ASSERT_EQ(trace.steps().size(), 3U);
    EXPECT_EQ(trace.steps()[0].step, Step{5});
    EXPECT_EQ(trace.steps()[1].step, Step{1});
    EXPECT_EQ(trace.steps()[2].step, Step{3});
}

} // namespace
} // namespace stagecraft::traces
