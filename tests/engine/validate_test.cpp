// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::SendMode;
using ::testing::HasSubstr;

namespace {

engine::ValidationReport reportOf(std::string_view text, SendMode send = SendMode::Buffered)
{
    return engine::validate(engine::parseSchedule(text).value(), {.send = send});
}

std::string firstError(std::string_view text)
{
    const engine::ValidationReport report = reportOf(text);
    return report.errors.empty() ? "legal" : report.errors.front().message;
}

TEST(Validate, FindsNothingWrongWithTheFamilies)
{
    for (int p = 1; p <= 5; ++p)
        for (int m = 1; m <= 7; ++m)
            for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
                for (int v = family.minChunks; v <= std::min(family.maxChunks, family.minChunks + 2); ++v) {
                    const traces::Expected<engine::Schedule> schedule = engine::generate({family.name, p, v, m});
                    if (!schedule.ok()) continue; // a number that the family refuses
                    EXPECT_TRUE(engine::validate(schedule.value()).legal()) << family.name << " p=" << p << " m=" << m << " v=" << v;
                }
}

TEST(Validate, NamesAMissingForward)
{
    EXPECT_THAT(firstError("0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"), HasSubstr("rank 0: 0F1 is missing"));
}

TEST(Validate, NamesAMissingBackward)
{
    EXPECT_THAT(firstError("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n"), HasSubstr("rank 0: 0B1 is missing; every forward needs a B"));
}

TEST(Validate, NamesAnActionOnARankThatDoesNotHoldItsStage)
{
    EXPECT_THAT(firstError("0F0,0B0\n0F1,0B1\n"),
                HasSubstr("rank 1, position 0: 0F1 does not belong here, stage 0 is on rank 0"));
}

TEST(Validate, WantsAtLeastOneMicroBatch)
{
    EXPECT_THAT(firstError("0OPTIMIZER\n"), HasSubstr("0F0 is missing; a step takes at least one micro-batch"));
}

TEST(Validate, WantsWhatIsComputedAgainBetweenItsForwardAndItsBackward)
{
    EXPECT_EQ(firstError("0F0,0F1,0RECOMPUTE0,0B0,0B1\n"), "legal");
    EXPECT_EQ(firstError("0F0,0RECOMPUTE0,0I0,0W0\n"), "legal");
    EXPECT_THAT(firstError("0RECOMPUTE0,0F0,0B0\n"), HasSubstr("position 0: 0RECOMPUTE0 comes before 0F0 (position 1)"));
    EXPECT_THAT(firstError("0F0,0B0,0RECOMPUTE0\n"), HasSubstr("position 1: 0B0 comes before 0RECOMPUTE0 (position 2)"));
    EXPECT_THAT(firstError("0F0,0RECOMPUTE0,0RECOMPUTE0,0B0\n"), HasSubstr("is there twice"));
    EXPECT_THAT(firstError("0F0,0RECOMPUTE0\n"), HasSubstr("there is no backward"));
    EXPECT_THAT(firstError("0F0,0OFFLOAD0,0RELOAD0,0RECOMPUTE0,0B0\n"), HasSubstr("0OFFLOAD0 moves away to be kept"));
}

TEST(Validate, NamesAnActionThatIsThereTwice)
{
    EXPECT_THAT(firstError("0F0,0F0,0B0\n"), HasSubstr("rank 0, position 1: 0F0 is there twice, first at position 0"));
}

TEST(Validate, WantsAWeightGradientForEveryInputGradient)
{
    EXPECT_THAT(firstError("0F0,0I0\n"), HasSubstr("0W0 is missing; an I needs a W"));
    EXPECT_THAT(firstError("0F0,0W0\n"), HasSubstr("0I0 is missing; a W needs an I"));
    EXPECT_THAT(firstError("0F0,0I0,0W0,0B0\n"), HasSubstr("take one or the other"));
    EXPECT_EQ(firstError("0F0,0I0,0W0\n"), "legal");
}

TEST(Validate, KeepsTheOrderOfOneMicroBatchOnItsRank)
{
    EXPECT_THAT(firstError("0B0,0F0\n"), HasSubstr("rank 0, position 0: 0B0 comes before 0F0 (position 1)"));
    EXPECT_THAT(firstError("0F0,0W0,0I0\n"), HasSubstr("0W0 comes before 0I0"));
}

TEST(Validate, TakesAForwardOnlySchedule)
{
    EXPECT_EQ(firstError("0F0,0F1\n1F0,1F1\n"), "legal");
}

TEST(Validate, PairsEverySendWithAReceipt)
{
    EXPECT_THAT(firstError("0F0,0SEND_F0,0B0\n1F0,1B0,1SEND_B0\n"), HasSubstr("rank 1: 1RECV_F0 is missing"));
    EXPECT_THAT(firstError("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
                HasSubstr("0SEND_F0 comes before 0F0"));
    EXPECT_THAT(firstError("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n"), HasSubstr("1F0 comes before 1RECV_F0"));
}

TEST(Validate, RefusesASendWithinARank)
{
    EXPECT_THAT(firstError("0F0,0SEND_F0,1F0,1B0,0B0\n"), HasSubstr("0SEND_F0 is not needed"));
}

// Two pipelines in opposite directions on two ranks; each direction is checked as a pipeline of its own.
TEST(Validate, ChecksBothDirectionsOfASchedule)
{
    const std::string rank1 = "u0F0,d1F0,d1B0,u0B0\n";
    EXPECT_TRUE(reportOf("d0F0,u1F0,u1B0,d0B0\n" + rank1).legal());
    EXPECT_EQ(firstError("d0F0,u1F0,u1B0\n" + rank1), "rank 0: d0B0 is missing; every forward needs a B, or an I and a W");
    EXPECT_EQ(firstError("d0F0,u1B0,u1F0,d0B0\n" + rank1), "rank 0, position 1: u1B0 comes before u1F0 (position 2), which it needs; move it behind");
    EXPECT_THAT(firstError("d0F0,u1F0,u1B0,d0B0,d1B0\n" + rank1), HasSubstr("d1F0 does not belong here, stage 1 of direction d is on rank 0"));
    // the same shape, and each waits for what the other does last
    const engine::ValidationReport stuck = reportOf("d0F0,d0B0,u1F0,u1B0\nu0F0,u0B0,d1F0,d1B0\n");
    ASSERT_EQ(stuck.deadlock.size(), 2U);
    EXPECT_EQ(stuck.deadlock[0].action, "d0B0");
    EXPECT_EQ(stuck.deadlock[0].waitsFor, "d1B0");
}

TEST(Validate, RefusesActionsThatNameNoDirectionWhereThereAreTwo)
{
    const traces::Expected<engine::Schedule> mixed = engine::parseSchedule("d0F0,d0B0,0F1,0B1\n");
    ASSERT_FALSE(mixed.ok());
    EXPECT_THAT(mixed.error().message, HasSubstr("some actions name a direction"));
    const traces::Expected<engine::Schedule> uneven = engine::parseSchedule("d0F0,d0B0,u0F0,u0B0\nd1F0,d1B0\n");
    ASSERT_FALSE(uneven.ok());
    EXPECT_THAT(uneven.error().message, HasSubstr("direction d has 2 stages and direction u has 1 stage"));
}

// An overlapped pair runs as one: a backward cannot run together with the forward that it needs.
TEST(Validate, RefusesAPairOfWhichOneNeedsTheOther)
{
    EXPECT_THAT(firstError("(0F0;0B0)OVERLAP_F_B\n"), HasSubstr("0B0 comes together with 0F0"));
}

// Slice 1 of micro-batch 0 is number 1: it reads the keys and values of slice 0.
TEST(Validate, KeepsSlicesOfASequenceInOrder)
{
    EXPECT_TRUE(reportOf("# slices 2\n0F0,0F1,0B1,0B0\n").legal());
    EXPECT_THAT(firstError("# slices 2\n0F1,0F0,0B1,0B0\n"), HasSubstr("0F1 comes before 0F0 (position 1), which it needs"));
    EXPECT_THAT(firstError("# slices 2\n0F0,0F1,0B0,0B1\n"), HasSubstr("0B0 comes before 0B1 (position 3), which it needs"));
    EXPECT_TRUE(reportOf("0F0,0F1,0B0,0B1\n").legal()); // two micro-batches
    EXPECT_TRUE(reportOf("# slices 2\n0F2,0F3,0F0,0F1,0B1,0B0,0B3,0B2\n").legal()); // any order of micro-batches
}

TEST(Validate, SaysHowManySlicesThereCanBe)
{
    for (const auto& [text, expected] : {std::pair{"# slices 3\n0F0,0F1,0B1,0B0\n", "3 slices each, but 2 slices"},
                                         {"# slices none\n0F0,0B0\n", "line 1: \"none\" is no number of slices"}}) {
        const traces::Expected<engine::Schedule> schedule = engine::parseSchedule(text);
        ASSERT_FALSE(schedule.ok());
        EXPECT_THAT(schedule.error().message, HasSubstr(expected));
    }
}

TEST(Validate, FindsTheCircleOfADeadlock)
{
    // rank 0 wants the gradient of micro-batch 1 before it gives its activation
    const engine::ValidationReport report = reportOf("0F0,0B1,0F1,0B0\n1F0,1F1,1B0,1B1\n");
    // 0B1 before 0F1 is also an order fault on one rank: reported as such
    ASSERT_FALSE(report.errors.empty());

    const engine::ValidationReport circle = reportOf("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    EXPECT_TRUE(circle.errors.empty());
    ASSERT_EQ(circle.deadlock.size(), 2U);
    EXPECT_EQ(circle.deadlock[0], (engine::WaitingRank{traces::Rank{0}, 1, "0B0", "1B0", traces::Rank{1}}));
    EXPECT_EQ(circle.deadlock[1], (engine::WaitingRank{traces::Rank{1}, 1, "1F1", "0F1", traces::Rank{0}}));
}

TEST(Validate, LeavesTheWayIntoTheCircleOut)
{
    // rank 2 only waits for rank 1; the circle is between 0 and 1
    const engine::ValidationReport report = reportOf("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1\n");
    ASSERT_EQ(report.deadlock.size(), 2U);
    for (const engine::WaitingRank& w : report.deadlock) EXPECT_NE(w.rank, traces::Rank{2});
}

// Both ranks send first: nobody receives when a send waits for its receipt; buffered it is fine.
TEST(Validate, TellsARendezvousDeadlockFromABufferedRun)
{
    const char* crossed = "0F0,0SEND_F0,2RECV_F0,2F0,2B0,2SEND_B0,0RECV_B0,0B0,0F1,0SEND_F1,2RECV_F1,2F1,2B1,2SEND_B1,0RECV_B1,0B1\n"
                          "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0,1RECV_F1,1F1,1SEND_F1,1RECV_B1,1B1,1SEND_B1\n";
    EXPECT_TRUE(reportOf(crossed, SendMode::Buffered).legal());
    EXPECT_TRUE(reportOf(crossed, SendMode::Rendezvous).legal());

    const char* bothSend = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                           "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
    EXPECT_TRUE(reportOf(bothSend, SendMode::Buffered).legal());
    const engine::ValidationReport stuck = reportOf(bothSend, SendMode::Rendezvous);
    EXPECT_TRUE(stuck.errors.empty());
    ASSERT_EQ(stuck.deadlock.size(), 2U);
    EXPECT_EQ(stuck.deadlock[0].action, "0SEND_F1");
    EXPECT_EQ(stuck.deadlock[0].waitsFor, "1RECV_F1");
    EXPECT_EQ(stuck.deadlock[1].action, "1SEND_B0");
    EXPECT_EQ(stuck.deadlock[1].waitsFor, "0RECV_B0");
}

// Rank 1 takes micro-batch 1 first, but rank 0 sends 0 first: with one queue per pair of ranks the message it wants is behind
// another, which it would take later.
TEST(Validate, FindsAReceiptOfAMessageThatIsNotFirstOnItsChannel)
{
    const char* swapped = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B1,0RECV_B0,0B0\n"
                          "1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F0,1F0,1B0,1SEND_B0\n";
    EXPECT_TRUE(reportOf(swapped, SendMode::Buffered).legal());
    const engine::ValidationReport stuck = reportOf(swapped, SendMode::Channel);
    EXPECT_TRUE(stuck.errors.empty());
    ASSERT_EQ(stuck.deadlock.size(), 1U);
    EXPECT_EQ(stuck.deadlock[0], (engine::WaitingRank{traces::Rank{1}, 0, "1RECV_F1", "1RECV_F0", traces::Rank{1},
                                                      "0SEND_F0 is first on the channel from rank 0"}));
}

// Activations and gradients between the same two ranks share the queue, as where p = 2 with several chunks.
TEST(Validate, PutsActivationsAndGradientsOnOneChannel)
{
    // rank 0 to rank 1: 0SEND_F0, 0SEND_F1 and 2SEND_B0
    const char* inOrder = "0F0,0SEND_F0,2RECV_F0,2F0,2B0,2SEND_B0,0F1,0SEND_F1,2RECV_F1,2F1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                          "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1RECV_F1,1F1,1SEND_F1,1RECV_B1,1B0,1SEND_B0,1B1,1SEND_B1\n";
    EXPECT_TRUE(reportOf(inOrder, SendMode::Channel).legal());
    const char* early = "0F0,0SEND_F0,2RECV_F0,2F0,2B0,2SEND_B0,0F1,0SEND_F1,2RECV_F1,2F1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1RECV_B1,1B0,1SEND_B0,1B1,1SEND_B1\n";
    EXPECT_TRUE(reportOf(early, SendMode::Buffered).legal());
    const engine::ValidationReport stuck = reportOf(early, SendMode::Channel);
    ASSERT_EQ(stuck.deadlock.size(), 1U);
    EXPECT_EQ(stuck.deadlock[0].action, "1RECV_F1");
    EXPECT_EQ(stuck.deadlock[0].waitsFor, "1RECV_B0");
}

// PyTorch's lowering appends a receipt when the other side sends: sane with buffers, and for these families with rendezvous.
TEST(Validate, LowersAComputeOnlyScheduleForRendezvous)
{
    EXPECT_TRUE(engine::validate(made("gpipe", 4, 4), {.send = SendMode::Rendezvous}).legal());
}

TEST(Validate, CountsTheErrorsItLeavesOut)
{
    const engine::Schedule empty = engine::parseSchedule("0F0,0F1,0F2,0F3,0B9\n").value();
    const engine::ValidationReport report = engine::validate(empty, {.maxErrors = 2});
    ASSERT_EQ(report.errors.size(), 2U);
    EXPECT_THAT(report.errors.back().message, HasSubstr("more)"));
}

} // namespace
