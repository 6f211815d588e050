// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/catalogue.h"
#include "engine/explain/schedule_picture.h"
#include "engine/explain/survey.h"
#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>

namespace stagecraft::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan planOf(int ranks, int microbatches)
{
    Plan plan;
    plan.pipeline.ranks = ranks;
    plan.pipeline.microbatches = microbatches;
    return plan;
}

SurveyEntry surveyed(const char* schedule, const Plan& plan) { return survey(plan, *findFamily(schedule)); }

// Volumes per step in tensors of a boundary: loop placement 2m(pv-1), a V 2m·2(p-1) for its turns are free, two directions 2m(p-1),
// slices as many times more messages (arXiv 2104.04473 sec. 2.2, 2405.15362, 2412.19437, 2406.03488).
TEST(Survey, CountsWhatGoesBetweenRanks)
{
    const Plan plan = planOf(4, 8);
    EXPECT_EQ(surveyed("1f1b", plan).handOffs, 2 * 8 * 3);
    EXPECT_EQ(surveyed("interleaved", plan).handOffs, 2 * 8 * (4 * 2 - 1));
    EXPECT_EQ(surveyed("zb-v", plan).handOffs, 2 * 8 * 2 * 3);
    EXPECT_EQ(surveyed("dualpipe", plan).handOffs, 2 * 8 * 3);
    EXPECT_EQ(surveyed("forward-only", plan).handOffs, 8 * 3);
    EXPECT_EQ(surveyed("bpipe", plan).handOffs, 2 * 8 * 3); // its copies are told apart
    EXPECT_GT(surveyed("bpipe", plan).copies, 0);
    Plan sliced = plan;
    sliced.pipeline.slices = 3;
    EXPECT_EQ(surveyed("seq1f1b", sliced).handOffs, 3 * 2 * 8 * 3);
    EXPECT_EQ(surveyed("1f1b", sliced).plan.pipeline.slices, 1);
}

// Boundaries of 10, 20 and 30 bytes, each crossed by a tensor and its gradient for every micro-batch; the last stage sends nothing.
TEST(Survey, AddsUpTheBytesWhereTheCostsTellThem)
{
    Plan plan = planOf(4, 8);
    plan.costs.source = CostSource::Measured;
    for (const Bytes bytes : {10, 20, 30, 40}) plan.costs.measured.push_back({.forward = 1, .backward = 2, .inputGrad = 1, .weightGrad = 1, .overlap = 3, .outputBytes = bytes});
    const SurveyEntry sent = surveyed("zb-h1", plan);
    EXPECT_EQ(sent.handOffs, 2 * 8 * 3);
    EXPECT_EQ(sent.sentBytes, 2 * 8 * (10 + 20 + 30));
    EXPECT_GT(surveyed("1f1b", presetPlan("gpt-small").value()).peakMemory, 0);
}

// Three boundaries of 1 MiB, crossed there and back by 8 micro-batches, in however many parts.
TEST(Survey, SendsTheSameBytesInMoreParts)
{
    Plan plan = planOf(4, 8);
    plan.costs.boundaryBytes = 1 << 20;
    EXPECT_EQ(surveyed("1f1b", plan).sentBytes, 48 << 20);
    plan.pipeline.slices = 2;
    EXPECT_EQ(surveyed("seq1f1b", plan).sentBytes, 48 << 20);
    EXPECT_EQ(surveyed("seq1f1b", plan).handOffs, 2 * 48);
    plan.pipeline.concatenation = Concatenation::Halving;
    EXPECT_EQ(surveyed("chimera", plan).sentBytes, 48 << 20);
}

TEST(Survey, KnowsCopiesOfTheWeights)
{
    const Plan plan = planOf(4, 8);
    EXPECT_EQ(surveyed("1f1b", plan).weightCopies, 1);
    EXPECT_EQ(surveyed("dualpipe", plan).weightCopies, 2);
    EXPECT_EQ(surveyed("dualpipe-v", plan).weightCopies, 1);
    EXPECT_EQ(surveyed("chimera", plan).weightCopies, 2);
    EXPECT_EQ(surveyed("pipedream", plan).weightCopies, 4);     // p versions on the first stage (arXiv 1806.03377)
    EXPECT_EQ(surveyed("pipedream-2bw", plan).weightCopies, 2); // arXiv 2006.09503
}

TEST(Survey, TakesTheChunksThatAFamilyNeedsAndGivesTheReasonWhereItCannot)
{
    const Plan plan = planOf(4, 6);
    EXPECT_EQ(surveyed("zb-v", plan).plan.pipeline.chunks, 2);
    EXPECT_EQ(surveyed("zb-v", plan).plan.pipeline.schedule, "zb-v");
    const SurveyEntry refused = surveyed("dualpipe", plan);
    EXPECT_THAT(refused.refusal, HasSubstr("use at least 2p = 8"));
    EXPECT_EQ(refused.nearest, (LegalChange{LegalChange::Number::MicroBatches, 8}));
    EXPECT_EQ(changeText(*refused.nearest), "8 micro-batches");
    EXPECT_FALSE(refused.trace);
}

TEST(SchedulePicture, HasABlockForEveryActionAtItsTime)
{
    const SurveyEntry entry = surveyed("1f1b", planOf(2, 2));
    const SchedulePicture picture = pictureOf(*entry.trace);
    EXPECT_EQ(picture.ranks, 2);
    EXPECT_EQ(picture.length, 9'000'000); // (m+p-1)(F+B) = 3·3 ms
    ASSERT_EQ(picture.blocks.size(), 8U);
    EXPECT_EQ(picture.blocks[0].label, "0");
    EXPECT_EQ(picture.blocks[0].paint, traces::PaintClass::Forward);
    EXPECT_EQ(picture.blocks[0].end, 1'000'000);
}

TEST(SchedulePicture, JoinsNeighboursWhereThereAreTooManyBlocks)
{
    const SurveyEntry entry = surveyed("gpipe", planOf(2, 8));
    EXPECT_EQ(pictureOf(*entry.trace, 10).blocks.size(), 4U); // forwards, backwards, on each of two ranks
    EXPECT_EQ(pictureOf(*entry.trace).blocks.size(), 32U);
}

TEST(SchedulePicture, IsASmallFileOfItsOwn)
{
    const SurveyEntry entry = surveyed("zb-h1", planOf(4, 8));
    const std::string svg = pictureSvg(pictureOf(*entry.trace), {.title = "ZB-H1 <4>"});
    EXPECT_THAT(svg, testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_THAT(svg, HasSubstr("<title>ZB-H1 &lt;4></title>"));
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
    EXPECT_LT(svg.size(), 20'000U);
}

TEST(Catalogue, TellsOfEverySchedule)
{
    const Catalogue catalogue = makeCatalogue();
    for (const ScheduleFamily& family : scheduleFamilies()) {
        EXPECT_THAT(catalogue.page, HasSubstr("## " + family.title + "\n"));
        EXPECT_THAT(catalogue.page, HasSubstr("- Source: " + family.source));
        EXPECT_THAT(catalogue.page, HasSubstr("(pictures/schedules/" + family.name + ".svg)"));
    }
    EXPECT_EQ(catalogue.pictures.size(), scheduleFamilies().size());
    EXPECT_THAT(catalogue.page, HasSubstr("| step | 33 | (m+p−1)·(F+B) |")); // GPipe and 1F1B with p=4, m=8
    EXPECT_THAT(catalogue.page, Not(HasSubstr("\n\n\n")));
}

} // namespace
} // namespace stagecraft::engine
