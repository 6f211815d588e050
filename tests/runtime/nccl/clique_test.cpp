// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/clique.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl/fake_nccl.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <thread>

namespace stagecraft::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Side = NcclPart::Side;

constexpr NcclResult kRemoteError = 6;
constexpr TimeNs kSecond = 1'000'000'000;

// Two ranks of one process, each with its device.
class NcclCliqueTest : public testing::Test {
protected:
    NcclGround ground()
    {
        return {.api = FakeNccl::api(), .clock = clock, .patience = {}, .pause = [this](int) {
                    ++pauses;
                    clock.advance(pauseTime);
                    std::this_thread::yield();
                }};
    }
    static NcclCliqueSpec twoRanks() { return {.size = 2, .members = {{0, 0}, {1, 1}}, .useDevice = FakeNccl::useDevice}; }

    void connected()
    {
        const Expected<void> met = clique.connect(newNcclId(FakeNccl::api()).value());
        ASSERT_TRUE(met.ok()) << met.error().message;
    }
    // Each on a thread of its own, as runs have it.
    void together(const std::function<void(NcclCommunicator&)>& work)
    {
        std::jthread other([&] { work(clique.of(1)); });
        work(clique.of(0));
    }
    void TearDown() override { EXPECT_THAT(nccl.misuse(), IsEmpty()); }

    FakeNccl nccl;
    ManualClock clock;
    std::atomic<int> pauses{0};
    std::atomic<TimeNs> pauseTime{0}; // a second, where somebody waits in vain
    NcclClique clique{ground(), twoRanks()};
    int a = 5, b = 7, stream = 0;
};

TEST_F(NcclCliqueTest, ConnectsItsRanksInOneGroupAndWaitsWhileThatIsUnderWay)
{
    nccl.answerInProgress(5);
    connected();
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2"));
    EXPECT_EQ(clique.generation(), 1);
    EXPECT_FALSE(clique.fault());
}

TEST_F(NcclCliqueTest, ExchangesBothWaysAsOneGroup)
{
    connected();
    together([&](NcclCommunicator& own) {
        const int peer = 1 - own.rank();
        int* buffer = own.rank() == 0 ? &a : &b;
        static thread_local int received = 0;
        ASSERT_TRUE(own.exchange("x", {{Side::Send, peer, buffer, sizeof(int)}, {Side::Receive, peer, &received, sizeof(int)}}, &stream).ok());
    });
    EXPECT_THAT(nccl.log(), Contains("group 0: >1 4 <1 4"));
    EXPECT_THAT(nccl.log(), Contains("group 1: >0 4 <0 4"));
    EXPECT_EQ(nccl.carriedOut(0), 1U);
    EXPECT_EQ(nccl.carriedOut(1), 1U);
}

TEST_F(NcclCliqueTest, ReturnsWhenTheOperationIsOnItsStreamAndNoSooner)
{
    connected();
    int scratch[2] = {};
    together([&](NcclCommunicator& own) {
        const std::array peers{1 - own.rank()};
        ASSERT_TRUE(own.warmUp(peers, &scratch[own.rank()], &stream).ok());
    });
    // connected now: a send does not wait for its receipt, only for NCCL
    nccl.answerInProgress(40);
    const int before = pauses;
    together([&](NcclCommunicator& own) {
        if (own.rank() == 0) {
            EXPECT_TRUE(own.exchange("x", {{Side::Send, 1, &a, sizeof a}}, &stream).ok());
        }
    });
    EXPECT_GE(pauses - before, 40);
    EXPECT_EQ(nccl.carriedOut(0), 1U); // the first exchange; this one waits on its stream
    together([&](NcclCommunicator& own) {
        if (own.rank() == 1) {
            EXPECT_TRUE(own.exchange("x", {{Side::Receive, 0, &b, sizeof b}}, &stream).ok());
        }
    });
    EXPECT_EQ(b, 5);
}

TEST_F(NcclCliqueTest, MeetsItsPeersInAnOrderThatAllShare)
{
    NcclClique four(ground(), {.size = 4, .members = {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, .useDevice = FakeNccl::useDevice});
    ASSERT_TRUE(four.connect(newNcclId(FakeNccl::api()).value()).ok());
    int scratch[4] = {};
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 4; ++r)
        ranks.emplace_back([&, r] {
            std::vector<int> peers; // in an order of its own, and one of them twice
            for (int step = 1; step < 4; ++step) peers.push_back((r + step) % 4);
            peers.push_back(peers.front());
            EXPECT_TRUE(four.of(r).warmUp(peers, &scratch[r], &stream).ok());
        });
    ranks.clear();
    for (int r = 0; r < 4; ++r) EXPECT_EQ(nccl.carriedOut(r), 3U);
    EXPECT_TRUE(four.finish().ok());
}

TEST_F(NcclCliqueTest, SendsToItselfOnlyInAGroupWithTheReceipt)
{
    connected();
    NcclCommunicator& own = clique.of(0);
    EXPECT_THAT(own.exchange("alone", {{Side::Send, 0, &a, sizeof a}}, &stream).error().message,
                HasSubstr("rank 0, alone: a transfer of a rank to itself needs both of its sides in one group"));
    EXPECT_THAT(own.exchange("short", {{Side::Send, 0, &a, sizeof a}, {Side::Receive, 0, &b, 1}}, &stream).error().message, HasSubstr("of one size"));
    EXPECT_FALSE(clique.fault()); // NCCL was not asked
    EXPECT_TRUE(own.exchange("both", {{Side::Send, 0, &a, sizeof a}, {Side::Receive, 0, &b, sizeof b}}, &stream).ok());
    EXPECT_EQ(b, 5);
}

TEST_F(NcclCliqueTest, RefusesGroupsAndRanksThatCannotBe)
{
    connected();
    const std::vector<NcclPart> many(NcclCommunicator::kMostParts + 1, NcclPart{Side::Send, 1, &a, 1});
    EXPECT_THAT(clique.of(0).exchange("x", many, &stream).error().message, HasSubstr("17 transfers in one group are not allowed; 1 to 16"));
    EXPECT_THAT(clique.of(0).exchange("x", std::span<const NcclPart>{}, &stream).error().message, HasSubstr("0 transfers"));
    EXPECT_THAT(clique.of(0).exchange("x", {{Side::Send, 2, &a, 1}}, &stream).error().message, HasSubstr("rank 2 is none of this clique; there are 0 to 1"));
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2"));
}

TEST_F(NcclCliqueTest, LetsOneThreadIssueForARank)
{
    connected();
    ASSERT_TRUE(clique.of(0).exchange("x", {{Side::Send, 0, &a, 4}, {Side::Receive, 0, &b, 4}}, &stream).ok());
    std::thread([&] {
        EXPECT_THAT(clique.of(0).exchange("x", {{Side::Send, 0, &a, 4}, {Side::Receive, 0, &b, 4}}, &stream).error().message,
                    HasSubstr("NCCL takes one thread for each device"));
    }).join();
    EXPECT_FALSE(clique.fault());
}

TEST_F(NcclCliqueTest, SumsAndAveragesGradientsOfAllRanks)
{
    connected();
    const std::array<std::array<float, 3>, 2> gradients{{{1, 2, 3}, {10, 20, 30}}};
    std::array<std::array<float, 3>, 2> sums{};
    std::array<std::array<float, 3>, 2> means{};
    together([&](NcclCommunicator& own) {
        const auto r = static_cast<std::size_t>(own.rank());
        EXPECT_TRUE(own.allReduce("gradients", {{.from = gradients[r].data(), .to = sums[r].data(), .count = 3}}, &stream).ok());
        EXPECT_TRUE(own.allReduce("gradients", {{.from = gradients[r].data(), .to = means[r].data(), .count = 3, .reduction = NcclReduction::Mean}}, &stream).ok());
    });
    EXPECT_THAT(sums[0], ElementsAre(11, 22, 33));
    EXPECT_EQ(sums[0], sums[1]);
    EXPECT_THAT(means[1], ElementsAre(5.5F, 11, 16.5F));
}

TEST_F(NcclCliqueTest, SumsSeveralTensorsInPlaceAsOne)
{
    connected();
    std::array<std::array<float, 2>, 2> weights{{{1, 2}, {10, 20}}};
    std::array<float, 2> biases{3, 30};
    together([&](NcclCommunicator& own) {
        const auto r = static_cast<std::size_t>(own.rank());
        EXPECT_TRUE(own.allReduce("gradients", {{.from = weights[r].data(), .to = weights[r].data(), .count = 2}, {.from = &biases[r], .to = &biases[r], .count = 1}}, &stream).ok());
    });
    EXPECT_THAT(weights[0], ElementsAre(11, 22));
    EXPECT_EQ(weights[0], weights[1]);
    EXPECT_THAT(biases, ElementsAre(33, 33));
    EXPECT_THAT(nccl.log(), Contains("sum 1: 2 1"));
    const std::vector<NcclAllReduce> many(NcclCommunicator::kMostParts + 1);
    EXPECT_THAT(clique.of(0).allReduce("gradients", many, &stream).error().message, HasSubstr("17 transfers in one group are not allowed"));
}

// Of several cliques in one run each has ranks of its own numbers.
TEST_F(NcclCliqueTest, NamesItsRanksAsTheyAreKnown)
{
    NcclClique other(ground(), {.size = 2, .members = {{.rank = 0, .device = 0, .known = 3}, {.rank = 1, .device = 1, .known = 7}}, .useDevice = FakeNccl::useDevice});
    ASSERT_TRUE(other.connect(newNcclId(FakeNccl::api()).value()).ok());
    nccl.fail(1, kRemoteError);
    EXPECT_FALSE(other.look());
    ASSERT_TRUE(other.fault());
    EXPECT_EQ(other.fault()->rank, 7);
    EXPECT_THAT(other.fault()->text, HasSubstr("rank 7: "));
}

TEST_F(NcclCliqueTest, FinishesAllBeforeItFreesAny)
{
    connected();
    nccl.answerInProgress(3);
    ASSERT_TRUE(clique.finish().ok());
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2", "finalize 0", "finalize 1", "destroy 0", "destroy 1"));
    EXPECT_THAT(clique.of(0).exchange("x", {{Side::Send, 1, &a, 4}}, &stream).error().message, HasSubstr("rank 0 is not connected"));
    connected(); // and again
    EXPECT_EQ(clique.generation(), 2);
}

// --- faults ------------------------------------------------------------------------------------------------------------

TEST_F(NcclCliqueTest, SaysThatARankHasNotCome)
{
    pauseTime = kSecond;
    NcclClique alone(ground(), {.size = 2, .members = {{0, 0}}, .useDevice = FakeNccl::useDevice});
    const Expected<void> met = alone.connect(newNcclId(FakeNccl::api()).value());
    ASSERT_FALSE(met.ok());
    EXPECT_THAT(met.error().message, HasSubstr("rank 0: NCCL could not connect it with the other ranks within 120 s: another rank has not come"));
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "abort 0"));
}

TEST_F(NcclCliqueTest, PassesOnThatThereIsNoGpu)
{
    nccl.takeGpusAway();
    const Expected<void> met = clique.connect(newNcclId(FakeNccl::api()).value());
    ASSERT_FALSE(met.ok());
    EXPECT_THAT(met.error().message, AllOf(HasSubstr("rank 0: NCCL cannot connect it: a call of CUDA failed in it (unhandled cuda error; last: Cuda failure 'no "
                                                     "CUDA-capable device is detected')"),
                                           HasSubstr("stagecraft-cli doctor")));
}

TEST_F(NcclCliqueTest, PassesOnWhatIsWrongWithADevice)
{
    NcclCliqueSpec spec = twoRanks();
    spec.useDevice = [](int device) -> Expected<void> { return device == 1 ? Expected<void>(Error{"there is no device 1"}) : Expected<void>(); };
    NcclClique broken(ground(), spec);
    EXPECT_EQ(broken.connect(newNcclId(FakeNccl::api()).value()).error().message, "rank 1: there is no device 1");
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "abort 0")); // what had begun is ended, its group closed
}

TEST_F(NcclCliqueTest, TellsOfTwoRanksOnOneGpu)
{
    NcclClique shared(ground(), {.size = 2, .members = {{0, 3}, {1, 3}}, .useDevice = FakeNccl::useDevice});
    const Expected<void> met = shared.connect(newNcclId(FakeNccl::api()).value());
    ASSERT_FALSE(met.ok());
    EXPECT_THAT(met.error().message, AllOf(HasSubstr("Duplicate GPU detected"), HasSubstr("Two ranks on one GPU")));
}

TEST_F(NcclCliqueTest, EndsAllRanksAfterTheFirstAsynchronousError)
{
    connected();
    EXPECT_TRUE(clique.look());
    nccl.fail(1, kRemoteError);
    EXPECT_FALSE(clique.look());
    ASSERT_TRUE(clique.fault());
    EXPECT_EQ(clique.fault()->rank, 1);
    EXPECT_THAT(clique.fault()->text, HasSubstr("rank 1: NCCL cannot go on: another rank has ended, or the connection to it broke"));
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2", "abort 0", "abort 1"));
    // whoever calls is told the cause, also on the other rank
    EXPECT_EQ(clique.of(0).exchange("x", {{Side::Send, 1, &a, 4}}, &stream).error().message, clique.fault()->text);
    EXPECT_EQ(clique.finish().error().message, clique.fault()->text);
    EXPECT_FALSE(clique.look()); // nothing is ended twice
    EXPECT_EQ(nccl.log().size(), 4U);
}

TEST_F(NcclCliqueTest, KeepsTheFirstFaultAlone)
{
    connected();
    clique.giveUp("rank 2 died: its process on node2 ended without a word");
    nccl.fail(1, kRemoteError);
    EXPECT_FALSE(clique.look());
    EXPECT_EQ(clique.fault()->rank, -1);
    EXPECT_THAT(clique.fault()->text, HasSubstr("rank 2 died"));
}

TEST_F(NcclCliqueTest, ClosesAGroupInWhichACallFailed)
{
    connected();
    nccl.failCall("recv", 5);
    EXPECT_THAT(clique.of(0).exchange("0SEND_F1", {{Side::Send, 1, &a, 4}, {Side::Receive, 1, &b, 4}}, &stream).error().message,
                HasSubstr("rank 0: NCCL cannot put 0SEND_F1 on its stream: it was used in a way that it does not allow"));
    EXPECT_FALSE(clique.look());
    connected();
}

TEST_F(NcclCliqueTest, GivesUpWaitingForARankThatDoesNotComeToTheFirstExchange)
{
    connected();
    pauseTime = kSecond;
    EXPECT_THAT(clique.of(0).exchange("0SEND_F0", {{Side::Send, 1, &a, 4}}, &stream).error().message,
                HasSubstr("rank 0: NCCL could not put 0SEND_F0 on its stream within 60 s"));
    EXPECT_FALSE(clique.look());
    EXPECT_THAT(nccl.log(), Contains("abort 1"));
}

TEST_F(NcclCliqueTest, FindsAStreamThatDoesNotMove)
{
    connected();
    std::atomic<std::size_t> done{0};
    NcclCommunicator& own = clique.of(1);
    for (std::size_t k = 0; k < 3; ++k) own.track("number " + std::to_string(k), [&done, k] { return done > k; });
    EXPECT_TRUE(clique.look());
    for (std::size_t k = 1; k <= 2; ++k) { // slow, but it moves: five minutes are for each
        clock.advance(250 * kSecond);
        EXPECT_TRUE(clique.look());
        done = k;
        EXPECT_TRUE(clique.look());
    }
    clock.advance(250 * kSecond);
    EXPECT_TRUE(clique.look());
    clock.advance(60 * kSecond);
    EXPECT_FALSE(clique.look());
    EXPECT_EQ(clique.fault()->text,
              "rank 1: nothing has moved on its communication stream for 300 s, it stands at number 2: another rank has not come to its side of it, or hangs");
    // what was tracked before is of no interest to the next
    connected();
    clock.advance(400 * kSecond);
    EXPECT_TRUE(clique.look());
}

TEST_F(NcclCliqueTest, IsConnectedAnewAfterAFault)
{
    connected();
    nccl.fail(0, kRemoteError);
    EXPECT_FALSE(clique.look());
    connected();
    EXPECT_FALSE(clique.fault());
    EXPECT_TRUE(clique.look());
    together([&](NcclCommunicator& own) {
        if (own.rank() == 0) {
            EXPECT_TRUE(own.exchange("x", {{Side::Send, 1, &a, sizeof a}}, &stream).ok());
        } else {
            EXPECT_TRUE(own.exchange("x", {{Side::Receive, 0, &b, sizeof b}}, &stream).ok());
        }
    });
    EXPECT_EQ(b, 5);
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2", "abort 0", "abort 1", "init 0/2", "init 1/2", HasSubstr("group"), HasSubstr("group")));
}

TEST_F(NcclCliqueTest, EndsWhatAConnectionThatFailedHadBegun)
{
    nccl.failCall("groupEnd", 2);
    EXPECT_THAT(clique.connect(newNcclId(FakeNccl::api()).value()).error().message, HasSubstr("NCCL cannot connect the ranks: a call of the system failed"));
    EXPECT_THAT(nccl.log(), ElementsAre("init 0/2", "init 1/2", "abort 0", "abort 1"));
}

// The call that hangs is in NCCL, and ends when the watchdog ends its communicator.
TEST_F(NcclCliqueTest, EndsACallThatHangs)
{
    connected();
    nccl.hang(1);
    Expected<void> hung;
    std::jthread rank([&] { hung = clique.of(1).exchange("x", {{Side::Send, 0, &a, 4}}, &stream); });
    while (!nccl.hangs()) std::this_thread::yield();
    EXPECT_TRUE(clique.look()); // nothing is known against it
    pauseTime = kSecond;
    clique.giveUp("asked to end");
    EXPECT_FALSE(clique.look());
    rank.join();
    EXPECT_EQ(hung.error().message, "asked to end");
    pauseTime = 0;
    connected();
}

TEST_F(NcclCliqueTest, IsLookedAtByAThreadWhileItRuns)
{
    connected();
    {
        const NcclWatchdog watchdog(clique, std::chrono::milliseconds(1));
        int scratch[2] = {};
        together([&](NcclCommunicator& own) {
            const std::array peers{1 - own.rank()};
            EXPECT_TRUE(own.warmUp(peers, &scratch[own.rank()], &stream).ok());
            for (int k = 0; k < 200; ++k) {
                static thread_local int number = 0;
                EXPECT_TRUE(own.exchange("x", {{own.rank() == 0 ? Side::Send : Side::Receive, 1 - own.rank(), &number, 4}}, &stream).ok());
                own.track("x", [this, rank = own.rank(), k] { return nccl.carriedOut(rank) > static_cast<std::size_t>(k + 1); });
            }
        });
        nccl.fail(0, kRemoteError);
        while (!clique.fault()) std::this_thread::yield();
    }
    EXPECT_THAT(nccl.log(), Contains("abort 1"));
    connected();
}

} // namespace
} // namespace stagecraft::runtime
