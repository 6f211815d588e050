// SPDX-License-Identifier: Apache-2.0
//
// Schedules of two directions, DualPipe and Chimera, and of slices, Seq1F1B: orders, figures, and what others write of them.
#include "golden.h"
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

std::string errorOf(const engine::ScheduleRequest& request)
{
    const traces::Expected<engine::Schedule> schedule = engine::generate(request);
    return schedule.ok() ? "no error" : schedule.error().message;
}

// F = I = W = 1, a pair as given.
engine::CostTable splitCosts(int stages, traces::TimeNs pair)
{
    engine::CostTable costs = slotCosts(stages, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.overlap = pair;
    return costs;
}

std::vector<double> peaksOf(const traces::StepFigures& figures)
{
    std::vector<double> peaks;
    for (const traces::RankFigures& rank : figures.ranks) peaks.push_back(rank.peakActivations);
    return peaks;
}

TEST(DualPipe, IsGeneratedActionByAction)
{
    const Golden golden = readGolden("dualpipe_p4_m8.txt");
    const engine::Schedule schedule = made("dualpipe", 4, 8);
    EXPECT_EQ(engine::toText(schedule), withoutComments(golden.text));
    EXPECT_EQ(engine::parseSchedule(golden.text, "dualpipe").value(), schedule);
}

// Bubble time (p/2-1)(F&B + B - 3W) (the authors' README); 8 ranks with 20 micro-batches are their picture.
TEST(DualPipe, HasTheBubbleOfItsAuthors)
{
    for (const auto& [p, m, makespan] : {std::tuple{4, 8, 26}, {8, 16, 54}, {8, 20, 66}}) {
        SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches");
        const traces::StepFigures figures = figuresOf(made("dualpipe", p, m), splitCosts(p, 3 * kSlot));
        EXPECT_EQ(figures.makespan, makespan * kSlot);
        EXPECT_EQ(figures.makespan, static_cast<traces::TimeNs>(figures.work) + (p / 2 - 1) * (3 + 2 - 3) * kSlot);
        EXPECT_EQ(peaksOf(figures), std::vector<double>(static_cast<std::size_t>(p), p + 1));
    }
}

// Pairs that take less than their parts: 2.5 instead of 3.
TEST(DualPipe, IdlesNoLongerThanItsFormulaWherePairsSaveTime)
{
    const traces::StepFigures figures = figuresOf(made("dualpipe", 8, 20), splitCosts(8, 5 * kSlot / 2));
    traces::TimeNs least = figures.makespan;
    traces::TimeNs most = 0;
    for (const traces::RankFigures& rank : figures.ranks) {
        least = std::min(least, rank.idle);
        most = std::max(most, rank.idle);
    }
    EXPECT_EQ(most, 9 * kSlot / 2); // (8/2-1)(2.5 + 2 - 3)
    EXPECT_EQ(least, 7 * kSlot / 2);
}

TEST(DualPipe, NamesTheNearestNumbersThatItTakes)
{
    EXPECT_THAT(errorOf({.name = "dualpipe", .ranks = 3, .microbatches = 8}), HasSubstr("3 ranks are not allowed, the two directions meet between two ranks; use 2 or 4"));
    EXPECT_THAT(errorOf({.name = "dualpipe", .ranks = 4, .microbatches = 9}), HasSubstr("use 8 or 10"));
    EXPECT_THAT(errorOf({.name = "dualpipe", .ranks = 4, .microbatches = 6}), HasSubstr("use at least 2p = 8"));
    EXPECT_THAT(errorOf({.name = "chimera", .ranks = 1, .microbatches = 2}), HasSubstr("1 rank"));
}

// Every unit goes through both its pairs and its parts: each once, over many shapes.
TEST(DualPipe, IsLegalForAllItsShapes)
{
    for (int p = 2; p <= 12; p += 2)
        for (int m = 2 * p; m <= 4 * p; m += 2) {
            const engine::Schedule schedule = made("dualpipe", p, m);
            ASSERT_TRUE(engine::validate(schedule).legal()) << p << " ranks, " << m << " micro-batches";
            const traces::StepFigures figures = figuresOf(schedule, splitCosts(p, 3 * kSlot));
            EXPECT_EQ(figures.makespan, static_cast<traces::TimeNs>(figures.work) + (p / 2 - 1) * 2 * kSlot);
        }
}

TEST(DualPipe, IsLoweredPairByPair)
{
    const engine::Schedule lowered = engine::lowerCommunication(made("dualpipe", 2, 4)).value();
    EXPECT_TRUE(engine::validate(lowered).legal());
    const std::string text = engine::toText(lowered);
    EXPECT_THAT(text, HasSubstr("(u1F1;d0B0)OVERLAP_F_B,u1B1"));      // the last stage forward, the first backward: nothing to send
    EXPECT_THAT(text, HasSubstr("d0F0,d0SEND_F0"));
    EXPECT_THAT(text, HasSubstr("u0RECV_B0,"));
    // its times are those of the compute alone, transfers take none
    EXPECT_EQ(figuresOf(lowered, splitCosts(2, 3 * kSlot)).makespan, figuresOf(made("dualpipe", 2, 4), splitCosts(2, 3 * kSlot)).makespan);
}

TEST(Chimera, IsGeneratedActionByAction)
{
    EXPECT_EQ(engine::toText(made("chimera", 4, 4)), withoutComments(readGolden("chimera_p4_m4.txt").text));
}

// Bubble (p-2)/(2m+p-2) with F = B (Table 2 of the paper), activations p/2+1 to p.
TEST(Chimera, HasTheBubbleAndTheMemoryOfItsPaper)
{
    for (const auto& [p, m, makespan] :
         {std::tuple{4, 4, 10}, {4, 8, 18}, {8, 8, 22}, {8, 16, 38}, {6, 12, 28}, {16, 64, 142}, {2, 4, 8}}) {
        SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches");
        const engine::Schedule schedule = made("chimera", p, m);
        ASSERT_TRUE(engine::validate(schedule).legal());
        const traces::StepFigures figures = figuresOf(schedule, slotCosts(p, kSlot, kSlot));
        EXPECT_EQ(figures.makespan, makespan * kSlot);
        EXPECT_DOUBLE_EQ(figures.bubbleMakespan, (p - 2.0) / (2.0 * m + p - 2));
        const std::vector<double> peaks = peaksOf(figures);
        EXPECT_DOUBLE_EQ(peaks.front(), p / 2 + 1);
        EXPECT_DOUBLE_EQ(peaks[static_cast<std::size_t>(p / 2)], p);
        EXPECT_DOUBLE_EQ(*std::max_element(peaks.begin(), peaks.end()), p);
    }
}

// With backwards twice as long there are bubbles in the middle (an independent list schedule gave the same).
TEST(Chimera, HasBubblesInTheMiddleWhereBackwardsAreLonger)
{
    EXPECT_DOUBLE_EQ(figuresOf(made("chimera", 4, 4), slotCosts(4, kSlot, 2 * kSlot)).bubbleMakespan, .25);
    EXPECT_DOUBLE_EQ(figuresOf(made("chimera", 8, 8), slotCosts(8, kSlot, 2 * kSlot)).bubbleMakespan, 1.0 / 3);
}

engine::Schedule concatenated(engine::Concatenation how, int p, int m)
{
    return engine::generate({.name = "chimera", .ranks = p, .microbatches = m, .concatenation = how}).value();
}

// Slots of two forwards or one backward: 3m/2 + p - 2 of them, each as long as two forwards, and none is lost between the units.
TEST(Chimera, LosesNothingBetweenUnitsWithDoubledForwards)
{
    for (const int p : {2, 4, 6, 8, 12, 16})
        for (const int units : {1, 2, 3}) {
            const int m = 2 * p * units;
            SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches");
            const engine::Schedule schedule = concatenated(engine::Concatenation::Doubling, p, m);
            ASSERT_TRUE(engine::validate(schedule).legal());
            const traces::StepFigures figures = figuresOf(schedule, slotCosts(p, kSlot, 2 * kSlot));
            EXPECT_LE(figures.makespan, (3 * m + 2 * (p - 2)) * kSlot);
            EXPECT_LE(figures.makespan, figuresOf(made("chimera", p, m), slotCosts(p, kSlot, 2 * kSlot)).makespan);
            const std::vector<double> peaks = peaksOf(figures);
            EXPECT_DOUBLE_EQ(*std::max_element(peaks.begin(), peaks.end()), 2 * p); // twice those of the direct way
        }
}

// Makespans of an independent list schedule and event simulation, F 1 and B 2.
TEST(Chimera, TakesAsLongAsAnotherSimulationSaysWithDoubledForwards)
{
    for (const auto& [p, m, makespan] : {std::tuple{2, 4, 12}, {4, 8, 27}, {4, 16, 52}, {4, 10, 36}, {6, 12, 42}, {8, 64, 204}, {16, 64, 220}})
        EXPECT_EQ(figuresOf(concatenated(engine::Concatenation::Doubling, p, m), slotCosts(p, kSlot, 2 * kSlot)).makespan, makespan * kSlot) << p << ' ' << m;
}

TEST(Chimera, TakesTwoMicroBatchesForwardAtOnceWithDoubledForwards)
{
    const std::string text = engine::toText(concatenated(engine::Concatenation::Doubling, 4, 8));
    EXPECT_EQ(text.substr(0, text.find('\n')),
              "d0F0,d0F1,d0F2,d0F3,u3F0,u3F1,u3B0,u3B1,u3F2,u3F3,u3B2,u3B3,d0B0,d0B1,d0B2,d0B3");
}

// The order of doubled forwards over halves, which are as half as long and as large.
TEST(Chimera, IsDoublingOverHalvesWithHalvedBackwards)
{
    for (const auto& [p, m] : {std::pair{2, 2}, {4, 4}, {4, 10}, {6, 24}, {8, 32}}) {
        SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches");
        const engine::Schedule halves = concatenated(engine::Concatenation::Halving, p, m);
        EXPECT_TRUE(engine::validate(halves).legal());
        EXPECT_EQ(halves.slices, 2);
        EXPECT_EQ(halves.microbatches, m);
        EXPECT_EQ(engine::parseSchedule(engine::toText(halves), "chimera").value(), halves);
        const traces::StepFigures figures = figuresOf(halves, slotCosts(p, kSlot, 2 * kSlot));
        EXPECT_EQ(figures.makespan, figuresOf(concatenated(engine::Concatenation::Doubling, p, 2 * m), slotCosts(p, kSlot, 2 * kSlot)).makespan);
        const std::vector<double> peaks = peaksOf(figures);
        EXPECT_LE(*std::max_element(peaks.begin(), peaks.end()), p); // as of the direct way
    }
}

TEST(Chimera, TakesEveryEvenNumberOfMicroBatchesInEveryWay)
{
    for (const engine::Concatenation how : {engine::Concatenation::Doubling, engine::Concatenation::Halving})
        for (int p = 2; p <= 8; p += 2)
            for (int m = 2; m <= 40; m += 2) EXPECT_TRUE(engine::validate(concatenated(how, p, m)).legal()) << p << ' ' << m;
}

TEST(Chimera, AloneIsMadeOfUnits)
{
    EXPECT_THAT(errorOf({.name = "1f1b", .concatenation = engine::Concatenation::Doubling}),
                HasSubstr("it is not made of units that could be concatenated with doubled forwards; use direct, or chimera"));
    EXPECT_THAT(errorOf({.name = "dualpipe", .microbatches = 8, .concatenation = engine::Concatenation::Halving}), HasSubstr("halved backwards"));
}

TEST(Seq1F1B, IsGeneratedActionByAction)
{
    const Golden golden = readGolden("seq1f1b_p4_m4_s2.txt");
    const engine::Schedule schedule = engine::generate({.name = "seq1f1b", .ranks = 4, .microbatches = 4, .slices = 2}).value();
    EXPECT_EQ(withoutComments(engine::toText(schedule)), withoutComments(golden.text));
    ASSERT_TRUE(engine::validate(schedule).legal());
    const traces::StepFigures figures = figuresOf(schedule, slotCosts(4, kSlot, 2 * kSlot));
    EXPECT_EQ(static_cast<double>(figures.makespan), golden.makespan * kSlot);
    EXPECT_NEAR(figures.bubbleMakespan, golden.bubble, 5e-7);
    EXPECT_EQ(peaksOf(figures), (std::vector<double>{2.5, 2, 1.5, 1})); // slices over 2: in micro-batches
    EXPECT_EQ(engine::parseSchedule(engine::toText(schedule), "seq1f1b").value(), schedule);
}

// Bubble (p-1)/(mk+p-1) and at most p-1-r+k slices, over many shapes; with whole sequences it is 1F1B.
TEST(Seq1F1B, HasTheBubbleAndTheMemoryOfItsPaper)
{
    for (int p = 1; p <= 6; ++p)
        for (int m = 1; m <= 8; ++m)
            for (int k = 1; k <= 4; ++k) {
                SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches, " + std::to_string(k) + " slices");
                const engine::Schedule schedule =
                    engine::generate({.name = "seq1f1b", .ranks = p, .microbatches = m, .slices = k}).value();
                ASSERT_TRUE(engine::validate(schedule).legal());
                const traces::StepFigures figures = figuresOf(schedule, slotCosts(p, kSlot, 2 * kSlot));
                const std::vector<double> peaks = peaksOf(figures);
                for (int r = 0; r < p; ++r)
                    EXPECT_DOUBLE_EQ(peaks[static_cast<std::size_t>(r)], std::min(p - 1 - r + k, m * k) / static_cast<double>(k));
                if (m > 1 || k == 1) {
                    EXPECT_NEAR(figures.bubbleMakespan, (p - 1.0) / (m * k + p - 1.0), 1e-12);
                }
                if (k == 1) {
                    EXPECT_EQ(schedule.order, made("1f1b", p, m).order);
                }
            }
}

TEST(Slices, AreRefusedByFamiliesThatTakeSequencesWhole)
{
    EXPECT_THAT(errorOf({.name = "1f1b", .slices = 2}), HasSubstr("2 slices of a sequence are not allowed, it takes sequences whole; use 1 slice, or seq1f1b"));
    EXPECT_THAT(errorOf({.name = "seq1f1b", .slices = 0}), HasSubstr("1 to 1024"));
}

} // namespace
