// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/event_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stagecraft::runtime {
namespace {

std::vector<int> drained(EventRing<int>& ring)
{
    std::vector<int> result;
    ring.drain([&](int event) { result.push_back(event); });
    return result;
}

TEST(EventRing, GivesEventsInTheirOrder)
{
    EventRing<int> ring(4);
    for (int i = 0; i < 3; ++i) ring.push(i);
    EXPECT_EQ(drained(ring), (std::vector{0, 1, 2}));
    for (int i = 3; i < 7; ++i) ring.push(i); // around the end of the buffer
    EXPECT_EQ(drained(ring), (std::vector{3, 4, 5, 6}));
    EXPECT_EQ(ring.lost(), 0);
}

TEST(EventRing, CountsWhatDoesNotFitAndKeepsWhatCameFirst)
{
    EventRing<int> ring(4);
    for (int i = 0; i < 10; ++i) ring.push(i);
    EXPECT_EQ(drained(ring), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(ring.lost(), 6);
    ring.push(10);
    EXPECT_EQ(drained(ring), (std::vector{10}));
}

TEST(EventRing, LosesNothingUnseenBetweenTwoThreads)
{
    constexpr int kEvents = 200'000;
    EventRing<int> ring(64);
    std::vector<int> seen;
    std::jthread writer([&] {
        for (int i = 0; i < kEvents; ++i) ring.push(i);
    });
    const auto take = [&] { ring.drain([&](int event) { seen.push_back(event); }); };
    while (static_cast<std::int64_t>(seen.size()) + ring.lost() < kEvents) take();
    writer.join();
    take();
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()) + ring.lost(), kEvents);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

} // namespace
} // namespace stagecraft::runtime
