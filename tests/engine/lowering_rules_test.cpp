// SPDX-License-Identifier: Apache-2.0
#include "unit_costs.h"

#include "engine/schedule/batch.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

#include <set>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::LoweringRule;
using engine::SendMode;
using ::testing::HasSubstr;

namespace {

engine::Schedule lowered(const engine::Schedule& plain, LoweringRule rule)
{
    traces::Expected<engine::Schedule> result = engine::lowerCommunication(plain, rule);
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return result.value();
}

std::vector<engine::WaitingRank> deadlockOf(const engine::Schedule& schedule, SendMode send)
{
    const engine::ValidationReport report = engine::validate(schedule, {.send = send});
    EXPECT_TRUE(report.errors.empty());
    return report.deadlock;
}

engine::WaitingRank waiting(int rank, int position, const char* action, const char* waitsFor, int other, const char* why = "")
{
    return {traces::Rank{rank}, position, action, waitsFor, traces::Rank{other}, why};
}

// By hand from forward_backward_pipelining_without_interleaving.
TEST(MegatronLowering, FusesTheExchangesOfOneFOneB)
{
    EXPECT_EQ(engine::toText(lowered(made("1f1b", 2, 3), LoweringRule::Megatron)),
              "0F0,0SEND_F0,0F1,(0SEND_F1;0RECV_B0)P2P,0B0,0F2,(0SEND_F2;0RECV_B1)P2P,0B1,0RECV_B2,0B2\n"
              "1RECV_F0,1F0,1B0,(1SEND_B0;1RECV_F1)P2P,1F1,1B1,(1SEND_B1;1RECV_F2)P2P,1F2,1B2,1SEND_B2\n");
    // fewer micro-batches than warm-up takes: nothing is left to be fused on the first ranks
    EXPECT_EQ(engine::toText(lowered(made("1f1b", 4, 2), LoweringRule::Megatron)),
              "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
              "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n"
              "2RECV_F0,2F0,2SEND_F0,2RECV_F1,2F1,(2SEND_F1;2RECV_B0)P2P,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1\n"
              "3RECV_F0,3F0,3B0,(3SEND_B0;3RECV_F1)P2P,3F1,3B1,3SEND_B1\n");
}

// By hand from forward_backward_pipelining_with_interleaving without overlap_p2p_comm.
TEST(MegatronLowering, PostsOneBatchBehindEachStepOfInterleaved)
{
    EXPECT_EQ(engine::toText(lowered(made("interleaved", 2, 4, 2), LoweringRule::Megatron)),
              "0F0,0SEND_F0,0F1,(0SEND_F1;2RECV_F0)P2P,2F0,(2SEND_F0;2RECV_F1)P2P,2F1,(2SEND_F1;2RECV_B0)P2P,"
              "0F2,2B0,(2SEND_B0;0SEND_F2;2RECV_B1)P2P,0F3,2B1,(2SEND_B1;0SEND_F3;2RECV_F2;0RECV_B0)P2P,"
              "2F2,0B0,(2SEND_F2;2RECV_F3;0RECV_B1)P2P,2F3,0B1,(2SEND_F3;2RECV_B2)P2P,"
              "2B2,(2SEND_B2;2RECV_B3)P2P,2B3,(2SEND_B3;0RECV_B2)P2P,0B2,0RECV_B3,0B3\n"
              "1RECV_F0,1F0,(1SEND_F0;1RECV_F1)P2P,1F1,(1SEND_F1;3RECV_F0)P2P,3F0,3B0,(3SEND_B0;3RECV_F1)P2P,"
              "3F1,3B1,(3SEND_B1;1RECV_F2;1RECV_B0)P2P,1F2,1B0,(1SEND_B0;1SEND_F2;1RECV_F3;1RECV_B1)P2P,"
              "1F3,1B1,(1SEND_B1;1SEND_F3;3RECV_F2)P2P,3F2,3B2,(3SEND_B2;3RECV_F3)P2P,3F3,3B3,(3SEND_B3;1RECV_B2)P2P,"
              "1B2,(1SEND_B2;1RECV_B3)P2P,1B3,1SEND_B3\n");
}

TEST(MegatronLowering, RefusesWhatMegatronDoesNotRun)
{
    const auto refusal = [](const engine::Schedule& schedule) {
        return engine::lowerCommunication(schedule, LoweringRule::Megatron).error().message;
    };
    EXPECT_THAT(refusal(made("zb-h1", 4, 8)), HasSubstr("knows F and B only"));
    EXPECT_THAT(refusal(made("zb-v", 4, 8, 2)), HasSubstr("not laid around the ranks in a loop"));
    EXPECT_THAT(refusal(made("gpipe", 4, 8)), HasSubstr("rank 0 does not take turns like 1F1B after 3 forwards"));
    EXPECT_THAT(refusal(made("looped-bfs", 4, 8, 2)), HasSubstr("does not take turns like 1F1B"));
    EXPECT_THAT(refusal(made("interleaved", 4, 3, 2)), HasSubstr("groups of 3 micro-batches on 4 ranks; it takes p or more"));
}

TEST(DeferredLowering, ReceivesRightBeforeTheActionThatNeedsIt)
{
    EXPECT_EQ(engine::toText(lowered(made("1f1b", 2, 2), LoweringRule::Deferred)),
              "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
              "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

TEST(LoweringRules, AddTheSameTransfersToTheSameOrder)
{
    for (const LoweringRule rule : engine::kLoweringRules)
        for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
            if (rule == LoweringRule::Megatron && family.name != "1f1b" && family.name != "interleaved") continue;
            const engine::Schedule plain = made(family.name, 4, 8, family.minChunks);
            const engine::Schedule result = lowered(plain, rule);
            EXPECT_EQ(engine::withoutCommunication(result), plain) << family.name;
            EXPECT_EQ(result.actionCount(), lowered(plain, LoweringRule::PyTorch).actionCount()) << family.name;
            EXPECT_TRUE(engine::validate(result).legal()) << family.name << " " << engine::loweringRuleName(rule);
            EXPECT_EQ(engine::parseSchedule(engine::toText(result), family.name).value().order, result.order) << family.name;
        }
}

// A fused pair posts both sides at once, so ranks that send towards each other meet; taken apart they wait for each other.
TEST(SendSemantics, FusedPairsKeepMegatronsOrderFromDeadlock)
{
    for (int p = 2; p <= 6; ++p)
        for (const auto& [family, chunks] : {std::pair{"1f1b", 1}, std::pair{"interleaved", 2}, std::pair{"interleaved", 3}})
            for (const int m : {p, 2 * p, 5 * p}) {
                const engine::Schedule fused = lowered(made(family, p, m, chunks), LoweringRule::Megatron);
                EXPECT_TRUE(deadlockOf(fused, SendMode::Rendezvous).empty()) << family << " p=" << p << " v=" << chunks << " m=" << m;
                EXPECT_FALSE(deadlockOf(engine::withoutBatches(fused), SendMode::Rendezvous).empty()) << family << " p=" << p << " m=" << m;
            }
    const engine::Schedule apart = engine::withoutBatches(lowered(made("1f1b", 2, 3), LoweringRule::Megatron));
    EXPECT_THAT(deadlockOf(apart, SendMode::Rendezvous), ::testing::ElementsAre(waiting(0, 3, "0SEND_F1", "1RECV_F1", 1),
                                                                                waiting(1, 3, "1SEND_B0", "0RECV_B0", 0)));
}

// Both sides of a transfer are put into their lists at one moment, so there is an order of time in which all of them meet.
TEST(SendSemantics, PyTorchsOrderNeverDeadlocks)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (const int p : {2, 4})
            for (const SendMode send : engine::kSendModes)
                EXPECT_TRUE(deadlockOf(lowered(made(family.name, p, 8, family.minChunks), LoweringRule::PyTorch), send).empty())
                    << family.name << " p=" << p << " " << engine::sendModeName(send);
}

// In a V a rank sends its neighbour activations of one chunk and gradients of the other; taken when they are needed, not when they were
// sent, they cross on one channel.
TEST(SendSemantics, DeferredReceiptsOfAVCrossOnOneChannel)
{
    const engine::Schedule schedule = lowered(made("zb-v", 4, 8, 2), LoweringRule::Deferred);
    EXPECT_TRUE(deadlockOf(schedule, SendMode::Buffered).empty());
    EXPECT_FALSE(deadlockOf(schedule, SendMode::Channel).empty());
    EXPECT_TRUE(deadlockOf(lowered(made("1f1b", 4, 8), LoweringRule::Deferred), SendMode::Channel).empty());
}

// Groups larger than p: the first rank takes activations earlier than it needs them.
TEST(SendSemantics, LargerGroupsMeetAsWell)
{
    for (const auto& [p, m, group] : {std::array{3, 8, 4}, std::array{4, 12, 6}, std::array{4, 14, 5}, std::array{3, 9, 9}}) {
        const engine::Schedule plain =
            engine::generate({.name = "interleaved", .ranks = p, .chunks = 2, .microbatches = m, .group = group}).value();
        const engine::Schedule fused = lowered(plain, LoweringRule::Megatron);
        EXPECT_TRUE(engine::validate(fused, {.send = SendMode::Rendezvous}).legal()) << p << " " << m << " " << group;
        EXPECT_TRUE(engine::validate(fused, {.send = SendMode::Channel}).legal()) << p << " " << m << " " << group;
    }
}

// The families that hang under a rule and a kind of send for some numbers of ranks, chunks and micro-batches.
std::set<std::string> hanging(LoweringRule rule, SendMode send)
{
    std::set<std::string> names;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (int p = 2; p <= 6; ++p)
            for (int v = family.minChunks; v <= std::min(family.maxChunks, 4); ++v)
                for (int m = 1; m <= 14 && !names.contains(family.name); ++m) {
                    const engine::ScheduleRequest request{.name = family.name, .ranks = p, .chunks = v, .microbatches = m, .slices = family.cutsSequences ? 2 : 1};
                    if (!engine::checkRequest(request).ok()) continue;
                    const traces::Expected<engine::Schedule> schedule = engine::lowerCommunication(engine::generate(request).value(), rule);
                    if (schedule.ok() && !deadlockOf(schedule.value(), send).empty()) names.insert(family.name);
                }
    return names;
}

// The table of docs/plan.md, over all families: whoever changes a schedule or adds one finds here what the table must say.
TEST(SendSemantics, HangWhereTheTableSaysSo)
{
    for (const LoweringRule rule : engine::kLoweringRules) EXPECT_THAT(hanging(rule, SendMode::Buffered), ::testing::IsEmpty());
    for (const SendMode send : engine::kSendModes) EXPECT_THAT(hanging(LoweringRule::PyTorch, send), ::testing::IsEmpty());
    EXPECT_THAT(hanging(LoweringRule::Megatron, SendMode::Rendezvous), ::testing::IsEmpty());
    EXPECT_THAT(hanging(LoweringRule::Megatron, SendMode::Channel), ::testing::ElementsAre("interleaved"));
    std::set<std::string> others;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) others.insert(family.name);
    for (const char* name : {"naive", "gpipe", "gpipe-lifo", "forward-only"}) others.erase(name);
    EXPECT_EQ(hanging(LoweringRule::Deferred, SendMode::Rendezvous), others);
    EXPECT_THAT(hanging(LoweringRule::Deferred, SendMode::Channel),
                ::testing::ElementsAre("1f1b-v", "dualpipe", "dualpipe-v", "hanayo", "interleaved-zb", "v-half", "v-min", "zb-v", "zb-v-auto"));
}

// What the table tells of numbers.
TEST(SendSemantics, HangFromTheNumbersOnThatTheTableNames)
{
    const auto hangs = [](const char* name, int p, int m, int chunks, SendMode send) {
        return !deadlockOf(lowered(made(name, p, m, chunks), LoweringRule::Deferred), send).empty();
    };
    for (int p = 2; p <= 6; ++p)
        for (int m = 1; m <= 14; ++m) {
            EXPECT_EQ(hangs("looped-bfs", p, m, 2, SendMode::Rendezvous), m >= p) << p << " " << m;
            EXPECT_FALSE(hangs("looped-bfs", p, m, 1, SendMode::Rendezvous)) << p << " " << m;
            EXPECT_EQ(hangs("1f1b", p, m, 1, SendMode::Rendezvous), m >= 2) << p << " " << m;
            if (m >= 2 * p) {
                EXPECT_EQ(hangs("dualpipe-v", p, m, 2, SendMode::Channel), p >= 3) << p << " " << m;
            }
            if (m >= 2 * p && p % 2 == 0 && m % 2 == 0) {
                EXPECT_EQ(hangs("dualpipe", p, m, 1, SendMode::Channel), p >= 6) << p << " " << m;
            }
        }
}

// PyTorch's pull request 127332: forward and backward sends of neighbours cross, each waits for the other to receive.
TEST(SendSemantics, DeferredReceiptsOfOneFOneBCross)
{
    for (int p = 2; p <= 5; ++p)
        for (const int chunks : {1, 2}) {
            const engine::Schedule schedule =
                lowered(made(chunks == 1 ? "1f1b" : "interleaved", p, 2 * p, chunks), LoweringRule::Deferred);
            EXPECT_TRUE(deadlockOf(schedule, SendMode::Buffered).empty());
            const std::vector<engine::WaitingRank> circle = deadlockOf(schedule, SendMode::Rendezvous);
            ASSERT_GE(circle.size(), 2U) << p;
            for (const engine::WaitingRank& rank : circle) {
                EXPECT_THAT(rank.action, HasSubstr("SEND_"));
                EXPECT_THAT(rank.waitsFor, HasSubstr("RECV_"));
            }
        }
    EXPECT_THAT(deadlockOf(lowered(made("1f1b", 2, 4), LoweringRule::Deferred), SendMode::Rendezvous),
                ::testing::ElementsAre(waiting(0, 3, "0SEND_F1", "1RECV_F1", 1), waiting(1, 3, "1SEND_B0", "0RECV_B0", 0)));
}

// PyTorch's issue 172668: rank 0 sends micro-batch 2 before it takes the gradient of micro-batch 0, and rank 1 sits in that send.
TEST(SendSemantics, AnEarlySendBeforeAReceiptDeadlocksAcrossNodes)
{
    const std::string rank1 = "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3RECV_F1,3F0,3B0,3SEND_B0,1RECV_F2,1F2,1SEND_F2,"
                              "1RECV_B0,1B0,1SEND_B0,3F1,3B1,3SEND_B1,1RECV_B1,1B1,1SEND_B1,3RECV_F2,3F2,3B2,3SEND_B2,1RECV_B2,1B2,1SEND_B2\n";
    const auto with = [&](const std::string& exchange) {
        return engine::parseSchedule("0F0,0SEND_F0,0F1,2RECV_F0,0SEND_F1,2F0,2RECV_F1,2SEND_F0,2F1,2SEND_F1,0F2," + exchange +
                                     ",2B0,2RECV_F2,2SEND_B0,0RECV_B0,0B0,2RECV_B1,2B1,2SEND_B1,0RECV_B1,0B1,2F2,2SEND_F2,2RECV_B2,2B2,"
                                     "2SEND_B2,0RECV_B2,0B2\n" +
                                     rank1)
            .value();
    };
    const engine::Schedule early = with("0SEND_F2,2RECV_B0");
    EXPECT_TRUE(deadlockOf(early, SendMode::Buffered).empty());
    EXPECT_THAT(deadlockOf(early, SendMode::Rendezvous),
                ::testing::ElementsAre(waiting(0, 11, "0SEND_F2", "1RECV_F2", 1), waiting(1, 10, "3SEND_B0", "2RECV_B0", 0)));
    // receiving first, or both at once, mends it
    EXPECT_TRUE(deadlockOf(with("2RECV_B0,0SEND_F2"), SendMode::Rendezvous).empty());
    EXPECT_TRUE(deadlockOf(with("(0SEND_F2;2RECV_B0)P2P"), SendMode::Rendezvous).empty());
}

// Megatron-LM's issue 5100, of which pull request 5271 tells the cause: with two ranks the previous and the next rank are one, both
// ranks post [to previous, to next] and [from previous, from next], and messages that are told apart by their order alone cross. It is
// also why interleaving took more than two ranks (issue 750).
TEST(SendSemantics, InterleavedOnTwoRanksCrossesOnOneChannel)
{
    const engine::Schedule two = lowered(made("interleaved", 2, 4, 2), LoweringRule::Megatron);
    EXPECT_TRUE(deadlockOf(two, SendMode::Rendezvous).empty());
    const std::vector<engine::WaitingRank> crossed = deadlockOf(two, SendMode::Channel);
    ASSERT_EQ(crossed.size(), 1U);
    EXPECT_EQ(crossed[0].action, "1RECV_F2");
    EXPECT_EQ(crossed[0].waitsFor, "1RECV_B0");
    EXPECT_EQ(crossed[0].why, "2SEND_B0 is first on the channel from rank 0");
    for (int p = 3; p <= 6; ++p)
        EXPECT_TRUE(deadlockOf(lowered(made("interleaved", p, 2 * p, 2), LoweringRule::Megatron), SendMode::Channel).empty()) << p;
}

// In the order of the list, receipts that are posted together take the messages that are sent; the other order crosses.
TEST(SendSemantics, ABatchTakesMessagesInItsOwnOrder)
{
    const auto with = [](const char* receipts) {
        return engine::parseSchedule(std::string("0F0,(0SEND_F0)P2P,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n") + receipts +
                                     ",1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n")
            .value();
    };
    EXPECT_TRUE(deadlockOf(with("(1RECV_F0;1RECV_F1)P2P"), SendMode::Channel).empty());
    EXPECT_TRUE(deadlockOf(with("(1RECV_F1;1RECV_F0)P2P"), SendMode::Rendezvous).empty());
    const std::vector<engine::WaitingRank> crossed = deadlockOf(with("(1RECV_F1;1RECV_F0)P2P"), SendMode::Channel);
    ASSERT_EQ(crossed.size(), 1U);
    EXPECT_EQ(crossed[0], waiting(1, 0, "1RECV_F1", "1RECV_F0", 1, "0SEND_F0 is first on the channel from rank 0"));
}

TEST(ScheduleText, ReadsABatchOfTransfersAndRefusesOthers)
{
    const auto refusal = [](std::string_view cell) {
        const traces::Expected<engine::Schedule> read = engine::parseSchedule(std::string("0F0,") + std::string(cell) + ",0B0\n");
        return read.ok() ? "" : read.error().message;
    };
    EXPECT_THAT(refusal("(0SEND_F0;0F1)P2P"), HasSubstr("only SEND and RECV are posted together"));
    EXPECT_THAT(refusal("(0SEND_F0;0RECV_B0P2P"), HasSubstr("line 1, cell 2: action \"(0SEND_F0;0RECV_B0P2P\": a batch ends in )P2P"));
    EXPECT_THAT(refusal("(0SEND_F0;)P2P"), HasSubstr("only SEND and RECV"));
    EXPECT_EQ(refusal("(0SEND_F0;0RECV_B0)P2P"), "");
    const engine::Schedule read = engine::parseSchedule("0F0, ( 0SEND_F0 ; 0RECV_B0 )P2P ,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").value();
    EXPECT_EQ(engine::toText(read), "0F0,(0SEND_F0;0RECV_B0)P2P,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
    EXPECT_TRUE(engine::joinsNext(read.order[0], 1));
    EXPECT_FALSE(engine::joinsNext(engine::withoutBatches(read).order[0], 1));
}

} // namespace
