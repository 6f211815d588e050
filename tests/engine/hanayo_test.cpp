// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

// F = 1 and B = 2 slots for a chunk, as the paper has it.
traces::StepFigures waveFigures(int ranks, int waves, int microbatches)
{
    return figuresOf(made("hanayo", ranks, microbatches, 2 * waves), slotCosts(2 * waves * ranks, kSlot, 2 * kSlot));
}

double paperBubble(int p, int waves) { return (2.0 * p - 2) / (3.0 * p * waves + p - 1); }

TEST(Hanayo, GoesThereAndBackInEveryWave)
{
    EXPECT_EQ(made("hanayo", 3, 3, 4).stageToRank, engine::wavePlacement(3, 4));
    EXPECT_EQ(engine::toText(made("hanayo", 2, 2, 2)), "0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n"
                                                       "1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n");
}

// values of an independent backward-first list schedule, with m = p
TEST(Hanayo, HasTheBubblesOfAListScheduleNearThoseOfThePaper)
{
    struct {
        int ranks;
        int waves;
        double bubble;
    } const rows[] = {{4, 2, .2131}, {4, 4, .1193}, {8, 2, .2381}};
    for (const auto& row : rows) {
        const double bubble = waveFigures(row.ranks, row.waves, row.ranks).bubbleMakespan;
        EXPECT_NEAR(bubble, row.bubble, 5e-5);
        EXPECT_NEAR(bubble, paperBubble(row.ranks, row.waves), .02);
    }
}

TEST(Hanayo, IdlesLessWithEveryWaveAndLessThanOneFOneB)
{
    for (const int p : {2, 4, 6, 8}) {
        double before = (p - 1.0) / (2 * p - 1); // 1F1B's
        for (const int waves : {1, 2, 4}) {
            const double bubble = waveFigures(p, waves, p).bubbleMakespan;
            EXPECT_LT(bubble, before) << "p=" << p << " W=" << waves;
            before = bubble;
        }
    }
}

TEST(Hanayo, IsLegalAndKeepsNoMoreThanItLetsIn)
{
    for (int p = 1; p <= 6; ++p)
        for (int waves = 1; waves <= 3; ++waves)
            for (int m = 1; m <= 14; ++m) {
                SCOPED_TRACE("p=" + std::to_string(p) + " W=" + std::to_string(waves) + " m=" + std::to_string(m));
                ASSERT_TRUE(engine::validate(made("hanayo", p, m, 2 * waves)).legal());
                const traces::StepFigures figures = waveFigures(p, waves, m);
                for (const traces::RankFigures& rank : figures.ranks) EXPECT_LE(rank.peakActivations, std::min(m, 2 * p));
                if (m == 1) {
                    EXPECT_EQ(figures.makespan, 6 * waves * p * kSlot);
                }
            }
}

// More micro-batches share the fill and the drain; the plans with more under way see to it.
TEST(Hanayo, IdlesNoMoreWithManyMicroBatches)
{
    for (const int p : {2, 4, 8})
        for (const int waves : {1, 2, 4}) {
            EXPECT_LE(waveFigures(p, waves, 8 * p).bubbleMakespan, waveFigures(p, waves, p).bubbleMakespan) << p << ' ' << waves;
        }
}

TEST(Hanayo, SaysThatAWaveMakesTwoChunks)
{
    const auto errorOf = [](int chunks) {
        return engine::generate({.name = "hanayo", .ranks = 4, .chunks = chunks}).error().message;
    };
    EXPECT_THAT(errorOf(3), HasSubstr("3 chunks per rank are not allowed, a wave goes there and back and makes two; use 2 or 4"));
    EXPECT_THAT(errorOf(1), HasSubstr("use 2 chunks"));
}

} // namespace
