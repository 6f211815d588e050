// SPDX-License-Identifier: Apache-2.0
//
// Circles among ranks that wait: found when the last edge comes, and only then.
#include "engine/transport/wait_graph.h"

#include "engine/schedule/schedule.h"
#include "engine/transport/queue_handoff.h"
#include "tests/runtime/manual_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace stagecraft::runtime {
namespace {

using engine::HandoffKind;
using traces::backward;
using traces::forward;
using traces::MicroBatch;
using traces::Rank;
using traces::Stage;

bool yes() { return true; }
bool no() { return false; }

class WaitGraphTest : public testing::Test {
protected:
    std::vector<std::string> found;
    WaitGraph graph{4, [this](const std::string& circle) { found.push_back(circle); }};
};

TEST_F(WaitGraphTest, FindsACircleWhenItsLastEdgeComes)
{
    graph.enter(Rank{0}, backward(Stage{0}, MicroBatch{0}).work);
    graph.enter(Rank{1}, forward(Stage{1}, MicroBatch{1}).work);
    graph.enter(Rank{2}, forward(Stage{2}, MicroBatch{0}).work);
    const WaitGraph::Wait a(&graph, {Rank{0}, Rank{1}, "1B0 of rank 1"}, yes);
    const WaitGraph::Wait b(&graph, {Rank{1}, Rank{2}, "2B1 of rank 2"}, yes);
    EXPECT_TRUE(found.empty());
    const WaitGraph::Wait c(&graph, {Rank{2}, Rank{0}, "0F0 of rank 0"}, yes);
    EXPECT_EQ(found, (std::vector<std::string>{"rank 2 waits in 2F0 for 0F0 of rank 0, rank 0 waits in 0B0 for 1B0 of rank 1, rank 1 waits in 1F1 for "
                                               "2B1 of rank 2"}));
}

TEST_F(WaitGraphTest, FindsNothingWhereOneOfThemCanGoOn)
{
    const WaitGraph::Wait a(&graph, {Rank{0}, Rank{1}, "x"}, no); // it has come: rank 0 only has not woken yet
    const WaitGraph::Wait b(&graph, {Rank{1}, Rank{0}, "x"}, yes);
    EXPECT_TRUE(found.empty());
}

TEST_F(WaitGraphTest, FindsNothingInAChainThatEndsAtARankThatWorks)
{
    const WaitGraph::Wait a(&graph, {Rank{0}, Rank{1}, "x"}, yes);
    const WaitGraph::Wait b(&graph, {Rank{1}, Rank{2}, "x"}, yes);
    {
        const WaitGraph::Wait c(&graph, {Rank{3}, Rank{0}, "x"}, yes);
    }
    EXPECT_TRUE(found.empty());
    { // over again
        const WaitGraph::Wait c(&graph, {Rank{2}, Rank{3}, "x"}, yes);
    }
    const WaitGraph::Wait d(&graph, {Rank{3}, Rank{0}, "x"}, yes);
    EXPECT_TRUE(found.empty());
}

TEST_F(WaitGraphTest, TellsOnce)
{
    const WaitGraph::Wait a(&graph, {Rank{0}, Rank{1}, "x"}, yes);
    const WaitGraph::Wait b(&graph, {Rank{1}, Rank{0}, "x"}, yes);
    const WaitGraph::Wait c(&graph, {Rank{2}, Rank{3}, "x"}, yes);
    const WaitGraph::Wait d(&graph, {Rank{3}, Rank{2}, "x"}, yes);
    EXPECT_EQ(found.size(), 1U);
}

// Two threads that hand over to each other over and over, and wait nearly always: never a circle.
TEST_F(WaitGraphTest, CallsNoBusyHandOffADeadlock)
{
    const engine::Schedule schedule = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = 1}).value();
    constexpr int kRounds = 300;
    for (const HandoffKind kind : {HandoffKind::Mutex, HandoffKind::Ring, HandoffKind::Semaphore}) {
        QueueHandoff<int> handoff(schedule, {.kind = kind, .depth = 1, .graph = &graph});
        const BoxAddress ahead{Direction::Forward, Stage{1}, MicroBatch{0}};
        const BoxAddress back{Direction::Backward, Stage{0}, MicroBatch{0}};
        std::jthread one([&] {
            for (int i = 0; i < kRounds; ++i) {
                handoff.put(ahead, i, monotonicClock());
                EXPECT_EQ(handoff.take(back)->payload, i);
            }
        });
        for (int i = 0; i < kRounds; ++i) {
            EXPECT_EQ(handoff.take(ahead)->payload, i);
            handoff.put(back, i, monotonicClock());
        }
    }
    LocalHandoff<int> boxes(2, 1, {});
    boxes.watch(&graph, [&](const BoxAddress& box) { return inputEdge(schedule, box); });
    std::jthread one([&] {
        for (int i = 0; i < kRounds; ++i) {
            boxes.put({Direction::Forward, Stage{1}, MicroBatch{0}}, i, monotonicClock());
            EXPECT_EQ(boxes.take({Direction::Backward, Stage{0}, MicroBatch{0}})->payload, i);
        }
    });
    for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(boxes.take({Direction::Forward, Stage{1}, MicroBatch{0}})->payload, i);
        boxes.put({Direction::Backward, Stage{0}, MicroBatch{0}}, i, monotonicClock());
    }
    one.join();
    EXPECT_TRUE(found.empty());
}

// Two senders towards each other, both ways full.
TEST_F(WaitGraphTest, FindsTwoSendersThatWaitForRoomTowardsEachOther)
{
    const engine::Schedule schedule = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = 2}).value();
    std::atomic<int> told{0};
    QueueHandoff<int>* handedOver = nullptr;
    std::string words;
    WaitGraph two(2, [&](const std::string& circle) {
        words = circle;
        ++told;
        handedOver->cancel(); // as a failed run does
    });
    QueueHandoff<int> handoff(schedule, {.kind = HandoffKind::Ring, .depth = 1, .graph = &two});
    handedOver = &handoff;
    const auto send = [&](Direction direction, Stage to) {
        for (int i = 0; i < 2; ++i) handoff.put({direction, to, MicroBatch{i}}, i, monotonicClock());
    };
    std::jthread one([&] { send(Direction::Forward, Stage{1}); });
    send(Direction::Backward, Stage{0});
    one.join();
    EXPECT_EQ(told, 1);
    EXPECT_THAT(words, testing::HasSubstr("rank 0 waits for rank 1 to take from the way to stage 1, which is full (hand-off depth 1)"));
    EXPECT_THAT(words, testing::HasSubstr("rank 1 waits for rank 0 to take from the way to stage 0, which is full (hand-off depth 1)"));
}

TEST(QueueHandoff, GivesOutInAnyOrder)
{
    const engine::Schedule schedule = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = 4}).value();
    QueueHandoff<int> handoff(schedule, {.kind = HandoffKind::Ring});
    const auto box = [](int i) { return BoxAddress{Direction::Forward, Stage{1}, MicroBatch{i}}; };
    ManualClock clock;
    for (int i = 0; i < 4; ++i) handoff.put(box(i), 10 * i, clock);
    EXPECT_TRUE(handoff.full(box(2)));
    for (const int i : {2, 0, 3, 1}) EXPECT_EQ(handoff.take(box(i))->payload, 10 * i);
    EXPECT_FALSE(handoff.full(box(0)));
}

} // namespace
} // namespace stagecraft::runtime
