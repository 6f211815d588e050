// SPDX-License-Identifier: Apache-2.0
//
// Every golden file of the families we have: same order, action by action, and the figures its comments state.
#include "golden.h"
#include "unit_costs.h"

#include "engine/schedule/validate.h"

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

struct Case {
    const char* file;
    const char* schedule;
};

class GoldenSchedule : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenSchedule, IsGeneratedActionByAction)
{
    const Golden golden = readGolden(GetParam().file);
    ASSERT_GT(golden.ranks, 0);
    const engine::Schedule schedule = made(GetParam().schedule, golden.ranks, golden.microbatches, golden.chunks);
    EXPECT_EQ(engine::toText(schedule), withoutComments(golden.text));
}

TEST_P(GoldenSchedule, HasTheStatedFigures)
{
    const Golden golden = readGolden(GetParam().file);
    const engine::Schedule schedule = engine::parseSchedule(golden.text).value();
    ASSERT_TRUE(engine::validate(schedule).legal());
    const traces::StepFigures figures = figuresOf(schedule, slotCosts(schedule.stages(), kSlot, 2 * kSlot));
    EXPECT_EQ(static_cast<double>(figures.makespan), golden.makespan * kSlot);
    EXPECT_EQ(static_cast<double>(figures.maxSpan), golden.maxSpan * kSlot);
    EXPECT_EQ(figures.work, golden.workPerRank * kSlot);
    EXPECT_NEAR(figures.bubbleMakespan, golden.bubble, 5e-7);
    EXPECT_NEAR(figures.bubbleSpan, golden.spanBubble, 5e-7);
    ASSERT_EQ(golden.peakChunks.size(), figures.ranks.size());
    for (std::size_t r = 0; r < figures.ranks.size(); ++r)
        EXPECT_DOUBLE_EQ(figures.ranks[r].peakActivations, static_cast<double>(golden.peakChunks[r]) / golden.chunks)
            << "rank " << r;
}

TEST_P(GoldenSchedule, SurvivesTextFormAndBack)
{
    const Golden golden = readGolden(GetParam().file);
    const engine::Schedule schedule = engine::parseSchedule(golden.text).value();
    EXPECT_EQ(engine::toText(schedule), withoutComments(golden.text));
    EXPECT_EQ(schedule.ranks, golden.ranks);
    EXPECT_EQ(schedule.chunks, golden.chunks);
    EXPECT_EQ(schedule.microbatches, golden.microbatches);
}

// a line each, so that a file is added without touching another's
const Case kCases[] = {
    {"1f1b_p4_m2.txt", "1f1b"},
    {"1f1b_p4_m8.txt", "1f1b"},
    {"gpipe_p4_m8.txt", "gpipe"},
    {"eager1f1b_p4_m8.txt", "eager-1f1b"},
    {"interleaved1f1b_p4_m8_v2.txt", "interleaved"},
    {"interleaved1f1b_p4_m3_v2_flex.txt", "interleaved"},
    {"loopedbfs_p4_m4_v2.txt", "looped-bfs"},
    {"zbh1_p4_m8.txt", "zb-h1"},
    {"zbh2_p4_m8.txt", "zb-h2"},
    {"zbauto_1p_p4_m8.txt", "zb-auto"},
    {"interleavedzb_p4_m8_v2.txt", "interleaved-zb"},
    {"zbv_p4_m8.txt", "zb-v"},
    {"zbvauto_p4_m8.txt", "zb-v-auto"},
    {"vhalf_p4_m8.txt", "v-half"},
    {"vhalf_p3_m7.txt", "v-half"},
    {"vmin_p4_m8.txt", "v-min"},
    {"vmin_p6_m5.txt", "v-min"},
    {"1f1bv_p4_m8.txt", "1f1b-v"},
    {"1f1bv_p6_m5.txt", "1f1b-v"},
    {"dualpipev_p2_m8.txt", "dualpipe-v"},
};

INSTANTIATE_TEST_SUITE_P(Files, GoldenSchedule, ::testing::ValuesIn(kCases),
                         [](const auto& test) {
                             std::string name = test.param.file;
                             for (char& c : name)
                                 if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                             return name;
                         });

} // namespace
