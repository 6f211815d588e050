// SPDX-License-Identifier: Apache-2.0
//
// The queues between two threads: nothing is lost, nothing overtakes, never more than there are places, and a cancelled one keeps nobody.
#include "engine/transport/mutex_queue.h"
#include "engine/transport/semaphore_ring.h"
#include "engine/transport/spsc_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <tuple>

namespace stagecraft::runtime {
namespace {

using Item = std::unique_ptr<int>; // moved, never copied
using Queue = BoundedQueue<Item>;

struct Kind {
    const char* name;
    std::unique_ptr<Queue> (*make)(std::size_t depth);
};
const Kind kKinds[] = {
    {"mutex", [](std::size_t depth) -> std::unique_ptr<Queue> { return std::make_unique<MutexQueue<Item>>(depth); }},
    {"ring", [](std::size_t depth) -> std::unique_ptr<Queue> { return std::make_unique<SpscRing<Item>>(depth, Patience{}); }},
    {"spinning_ring",
     [](std::size_t depth) -> std::unique_ptr<Queue> {
         return std::make_unique<SpscRing<Item>>(depth, Patience{.spins = 100, .yielding = std::chrono::microseconds(20)});
     }},
    {"semaphore", [](std::size_t depth) -> std::unique_ptr<Queue> { return std::make_unique<SemaphoreRing<Item>>(depth); }},
};

class EveryQueue : public testing::TestWithParam<std::tuple<Kind, std::size_t>> {
protected:
    [[nodiscard]] std::size_t depth() const { return std::get<1>(GetParam()); }
    std::unique_ptr<Queue> queue = std::get<0>(GetParam()).make(std::get<1>(GetParam()));

    // Waits where it has to. False: cancelled.
    bool push(int value)
    {
        Item item = std::make_unique<int>(value);
        while (!queue->tryPush(item)) {
            if (queue->cancelled()) return false;
            queue->waitForRoom();
        }
        return true;
    }
    std::optional<int> pop()
    {
        for (;;) {
            if (std::optional<Item> item = queue->tryPop()) return **item;
            if (queue->cancelled()) return std::nullopt;
            queue->waitForItem();
        }
    }
};

TEST_P(EveryQueue, HoldsAsManyAsItHasPlaces)
{
    for (int round = 0; round < 3; ++round) { // the places are used again
        for (std::size_t i = 0; i < depth(); ++i) EXPECT_TRUE(push(static_cast<int>(i)));
        Item more = std::make_unique<int>(-1);
        EXPECT_FALSE(queue->tryPush(more));
        EXPECT_NE(more, nullptr); // not moved from
        EXPECT_EQ(queue->size(), depth());
        for (std::size_t i = 0; i < depth(); ++i) EXPECT_EQ(pop(), static_cast<int>(i));
        EXPECT_FALSE(queue->tryPop());
        EXPECT_EQ(queue->size(), 0U);
    }
}

TEST_P(EveryQueue, KeepsEveryItemInItsOrderBetweenTwoThreads)
{
    constexpr int kItems = 1000;
    std::jthread sender([&] {
        for (int i = 0; i < kItems; ++i) push(i);
    });
    std::size_t most = 0;
    for (int i = 0; i < kItems; ++i) {
        ASSERT_EQ(pop(), i);
        most = std::max(most, queue->size());
    }
    sender.join();
    EXPECT_EQ(queue->size(), 0U);
    EXPECT_LE(most, depth());
}

TEST_P(EveryQueue, LetsASenderGoThatWaitsForRoom)
{
    for (std::size_t i = 0; i < depth(); ++i) push(0);
    std::jthread sender([&] { EXPECT_FALSE(push(1)); });
    queue->cancel();
    sender.join();
    EXPECT_FALSE(push(2));
}

TEST_P(EveryQueue, LetsAReceiverGoThatWaitsForAnItem)
{
    std::jthread receiver([&] { EXPECT_EQ(pop(), std::nullopt); });
    queue->cancel();
    receiver.join();
    EXPECT_EQ(pop(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Transport, EveryQueue, testing::Combine(testing::ValuesIn(kKinds), testing::Values(1, 2, 7)), [](const auto& each) {
    return std::string(std::get<0>(each.param).name) + "_" + std::to_string(std::get<1>(each.param));
});

} // namespace
} // namespace stagecraft::runtime
