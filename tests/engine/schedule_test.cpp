// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/schedule/families.h"
#include "engine/schedule/placement.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

std::string errorOf(const engine::ScheduleRequest& request)
{
    traces::Expected<engine::Schedule> schedule = engine::generate(request);
    return schedule.ok() ? "no error" : schedule.error().message;
}

TEST(Naive, FinishesAMicroBatchBeforeTheNext)
{
    EXPECT_EQ(engine::toText(made("naive", 3, 2)), "0F0,0B0,0F1,0B1\n"
                                                   "1F0,1B0,1F1,1B1\n"
                                                   "2F0,2B0,2F1,2B1\n");
}

TEST(GPipe, RunsAllForwardsThenAllBackwardsInTheirOrder)
{
    EXPECT_EQ(engine::toText(made("gpipe", 2, 3)), "0F0,0F1,0F2,0B0,0B1,0B2\n"
                                                   "1F0,1F1,1F2,1B0,1B1,1B2\n");
}

TEST(GPipeLifo, ReversesTheBackwards)
{
    EXPECT_EQ(engine::toText(made("gpipe-lifo", 2, 3)), "0F0,0F1,0F2,0B2,0B1,0B0\n"
                                                       "1F0,1F1,1F2,1B2,1B1,1B0\n");
}

TEST(OneFOneB, WarmsUpByTheDistanceToTheLastRank)
{
    EXPECT_EQ(engine::toText(made("1f1b", 3, 4)), "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
                                                  "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
                                                  "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n");
}

TEST(OneFOneB, TakesFewerMicroBatchesThanRanks)
{
    EXPECT_EQ(engine::toText(made("1f1b", 4, 1)), "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n");
}

TEST(EagerOneFOneB, WarmsUpByTwiceTheDistanceToTheLastRank)
{
    EXPECT_EQ(engine::toText(made("eager-1f1b", 3, 5)), "0F0,0F1,0F2,0F3,0F4,0B0,0B1,0B2,0B3,0B4\n"
                                                       "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1B3,1B4\n"
                                                       "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,2F4,2B4\n");
}

TEST(LoopedBfs, TakesAllMicroBatchesThroughAChunkBeforeTheNext)
{
    EXPECT_EQ(engine::toText(made("looped-bfs", 2, 2, 2)), "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n"
                                                           "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n");
    EXPECT_EQ(made("looped-bfs", 4, 6, 1).order, made("gpipe-lifo", 4, 6).order);
}

TEST(ZbH1, PutsOffWeightGradientsByTheRank)
{
    EXPECT_EQ(engine::toText(made("zb-h1", 3, 4)), "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
                                                   "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3\n"
                                                   "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3\n");
}

TEST(ZbH2, WarmsUpTwiceAsLong)
{
    EXPECT_EQ(engine::toText(made("zb-h2", 2, 4)), "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
                                                   "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n");
}

TEST(InterleavedZb, IsZbH1WithOneChunk)
{
    for (const int p : {1, 2, 4, 7})
        for (const int m : {1, 2, 7, 8, 14})
            if (engine::checkRequest({"interleaved-zb", p, 1, m}).ok()) {
                EXPECT_EQ(made("interleaved-zb", p, m).order, made("zb-h1", p, m).order) << p << ' ' << m;
            }
}

TEST(InterleavedZb, TakesTheGridOfPyTorch)
{
    for (const auto& [v, m, p] : {std::array{2, 2, 2}, {2, 4, 4}, {2, 8, 4}, {4, 8, 4}, {3, 12, 4}, {4, 6, 3}, {4, 10, 5}, {2, 3, 4}, {2, 10, 4}})
        EXPECT_TRUE(engine::validate(made("interleaved-zb", p, m, v)).legal()) << "v=" << v << " m=" << m << " p=" << p;
    EXPECT_THAT(errorOf({"interleaved-zb", 4, 2, 9}), HasSubstr("the nearest number that fits is 8"));
}

TEST(ForwardOnly, ComesNotBack)
{
    EXPECT_EQ(engine::toText(made("forward-only", 2, 3)), "0F0,0F1,0F2\n1F0,1F1,1F2\n");
}

TEST(Interleaved, GoesThroughTheChunksInGroups)
{
    EXPECT_EQ(engine::toText(made("interleaved", 2, 2, 2)), "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
                                                            "1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
}

// PyTorch's test grid of ScheduleInterleaved1F1B (v, m, p), and the cases where m is no multiple of p.
TEST(Interleaved, IsLegalOverTheGridOfPyTorch)
{
    const int grid[][3] = {{2, 2, 2},  {2, 4, 2},  {2, 8, 2},   {2, 8, 4},   {2, 8, 8},    {4, 4, 4}, {4, 8, 4},
                           {4, 8, 8},  {4, 16, 4}, {4, 64, 4},  {4, 16, 16}, {4, 32, 32},  {3, 2, 2}, {3, 8, 2},
                           {3, 12, 4}, {4, 6, 3},  {4, 10, 5},  {2, 3, 4},   {2, 4, 4},    {2, 10, 4}, {2, 15, 4}};
    for (const auto& [v, m, p] : grid) {
        const engine::Schedule schedule = made("interleaved", p, m, v);
        EXPECT_TRUE(engine::validate(schedule).legal()) << "v=" << v << " m=" << m << " p=" << p;
        EXPECT_EQ(schedule.actionCount(), static_cast<std::size_t>(2 * p * v * m));
    }
}

// reference value of an independent simulation: p=4, m=10, v=2, 69 unit slots, peak 12 chunks
TEST(Interleaved, TakesTenMicroBatchesOnFourRanksInTwoRoundsOfFive)
{
    const traces::StepFigures figures = figuresOf(made("interleaved", 4, 10, 2), slotCosts(8, kSlot, 2 * kSlot));
    EXPECT_EQ(figures.makespan, 69 * kSlot);
    EXPECT_DOUBLE_EQ(figures.ranks[0].peakActivations, 12 / 2.0);
}

engine::ScheduleRequest inGroups(int ranks, int chunks, int microbatches, int group)
{
    return {.name = "interleaved", .ranks = ranks, .chunks = chunks, .microbatches = microbatches, .group = group};
}

// Megatron-LM's example of its schedule table: two ranks, two chunks, groups of three, five micro-batches.
TEST(Interleaved, GivesTheRestToTheLastGroup)
{
    const engine::Schedule schedule = engine::generate(inGroups(2, 2, 5, 3)).value();
    std::string forwards;
    std::string backwards;
    for (const engine::Action& action : schedule.order[0])
        (action.kind() == engine::ActionKind::Forward ? forwards : backwards) += traces::toText(action) + ' ';
    EXPECT_EQ(forwards, "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4 ");
    EXPECT_EQ(backwards, "2B0 2B1 2B2 0B0 0B1 0B2 2B3 2B4 0B3 0B4 ");
    // warm-up (v-1)g + 2(p-1-r)
    EXPECT_EQ(engine::toText(schedule), "0F0,0F1,0F2,2F0,2F1,2F2,2B0,0F3,2B1,0F4,2B2,2F3,0B0,2F4,0B1,0B2,2B3,2B4,0B3,0B4\n"
                                        "1F0,1F1,1F2,3F0,3B0,3F1,3B1,3F2,3B2,1F3,1B0,1F4,1B1,3F3,1B2,3F4,3B3,3B4,1B3,1B4\n");
}

TEST(Interleaved, IsLegalWithEveryGroupThatItTakes)
{
    int taken = 0;
    for (int p = 1; p <= 6; ++p)
        for (int v = 2; v <= 4; ++v)
            for (int m = 1; m <= 16; ++m)
                for (int group = 1; group <= m; ++group) {
                    const traces::Expected<engine::Schedule> schedule = engine::generate(inGroups(p, v, m, group));
                    if (!schedule.ok()) continue;
                    ++taken;
                    EXPECT_TRUE(engine::validate(schedule.value()).legal()) << p << ' ' << v << ' ' << m << ' ' << group;
                    if (m % p == 0 && group == p) {
                        EXPECT_EQ(schedule.value(), made("interleaved", p, m, v));
                    }
                }
    EXPECT_GT(taken, 500);
}

TEST(Interleaved, NamesTheNearestGroupThatFits)
{
    EXPECT_THAT(errorOf(inGroups(4, 2, 8, 3)), HasSubstr("groups of 3 micro-batches are not allowed, a group takes 4 to 8; the nearest size that fits is 4"));
    EXPECT_THAT(errorOf(inGroups(4, 2, 8, 9)), HasSubstr("the nearest size that fits is 8"));
    EXPECT_THAT(errorOf(inGroups(4, 2, 8, -1)), HasSubstr("a group takes 4 to 8; the nearest size that fits is 4"));
    EXPECT_THAT(errorOf(inGroups(4, 2, 9, 6)), HasSubstr("they leave 3 for the last group, too few for 4 ranks; the nearest size that fits is 5"));
    EXPECT_THAT(errorOf(inGroups(4, 2, 3, 2)), HasSubstr("a group takes 3 to 3"));
    EXPECT_THAT(errorOf({.name = "1f1b", .group = 4}), HasSubstr("it does not go in groups; use 0, or interleaved"));
}

TEST(Generate, NamesTheNearestMicroBatchesThatFit)
{
    EXPECT_THAT(errorOf({"interleaved", 4, 2, 9}), HasSubstr("the nearest number that fits is 8"));
    EXPECT_THAT(errorOf({"interleaved", 4, 2, 13}), HasSubstr("the nearest number that fits is 12")); // three rounds of four
}

TEST(Generate, RefusesWhatAFamilyCannotTake)
{
    EXPECT_THAT(errorOf({"1f1b", 4, 2, 8}), HasSubstr("2 chunks per rank are not allowed"));
    EXPECT_THAT(errorOf({"interleaved", 4, 1, 8}), HasSubstr("use 2 chunks, or 1f1b"));
    EXPECT_THAT(errorOf({"1f1b", 0, 1, 8}), HasSubstr("0 ranks is not allowed; 1 to 16384"));
    EXPECT_THAT(errorOf({"1f1b", 4, 1, 0}), HasSubstr("0 micro-batches is not allowed"));
    EXPECT_THAT(errorOf({"1f1b", 4, 1, 2000000000}), HasSubstr("2000000000 micro-batches is not allowed"));
    EXPECT_THAT(errorOf({"2f2b", 4, 1, 8}), HasSubstr("known are naive, gpipe, gpipe-lifo, 1f1b, "));
}

TEST(CheckRequest, SaysWhatGenerateWouldSay)
{
    std::vector<std::string> names{"unknown"};
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) names.push_back(family.name);
    int refused = 0;
    for (const std::string& name : names)
        for (const int ranks : {-1, 0, 1, 3, 4, engine::kMaxStages, engine::kMaxStages + 1})
            for (const int chunks : {0, 1, 2, engine::kMaxStages})
                for (const int microbatches : {0, 1, 7, 10, 1000000000}) {
                    const engine::ScheduleRequest request{name, ranks, chunks, microbatches};
                    const traces::Expected<void> verdict = engine::checkRequest(request);
                    const traces::Expected<engine::Schedule> whole = engine::generate(request);
                    ASSERT_EQ(verdict.ok(), whole.ok()) << name << ' ' << ranks << ' ' << chunks << ' ' << microbatches;
                    if (whole.ok()) continue;
                    EXPECT_EQ(verdict.error().message, whole.error().message);
                    ++refused;
                }
    EXPECT_GT(refused, 100);
}

TEST(Families, AreDescribedForPeople)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        EXPECT_FALSE(family.title.empty());
        EXPECT_TRUE(family.idea.ends_with('.')) << family.name;
        EXPECT_FALSE(family.conditions.empty());
        EXPECT_FALSE(family.source.empty());
        EXPECT_EQ(engine::findFamily(family.name), &family);
    }
    EXPECT_EQ(engine::findFamily("nothing"), nullptr);
}

TEST(Generate, GivesNothingWhereItWasStopped)
{
    std::stop_source stop;
    const auto request = [&](const engine::ScheduleFamily& family) {
        return engine::ScheduleRequest{
            .name = family.name, .ranks = 4, .chunks = family.minChunks, .microbatches = 8, .stop = stop.get_token()};
    };
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) EXPECT_EQ(errorOf(request(family)), "no error") << family.name;
    stop.request_stop();
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        EXPECT_THAT(errorOf(request(family)), HasSubstr("stopped")) << family.name;
}

// Where a table says that stages lie is where the schedule puts them.
TEST(Placement, IsThatOfTheSchedule)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        const engine::Schedule schedule = made(family.name, 4, 8, family.minChunks);
        EXPECT_EQ(engine::placementOf(family.name, 4, family.minChunks), schedule.stageToRank) << family.name;
    }
    EXPECT_EQ(engine::placementOf("custom", 2, 2), engine::loopPlacement(2, 2));
}

// The work itself ends, not only its result: a window waits for it.
TEST(Generate, FillsNoFurtherRankOnceItIsStopped)
{
    std::stop_source stop;
    stop.request_stop();
    for (const engine::Generator& generator : engine::generators())
        EXPECT_EQ(generator
                      .generate({.name = generator.family.name,
                                 .ranks = 4,
                                 .chunks = generator.family.minChunks,
                                 .microbatches = 8,
                                 .stop = stop.get_token()})
                      .actionCount(),
                  0U)
            << generator.family.name;
}

} // namespace
