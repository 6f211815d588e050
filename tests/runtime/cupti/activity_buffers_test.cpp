// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_buffers.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace stagecraft::runtime {

namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::SizeIs;

std::span<std::uint8_t> whole(std::uint8_t* buffer, const ActivityBuffers& buffers) { return {buffer, buffers.bufferBytes()}; }

TEST(ActivityBuffers, GoFromHandToHand)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 2});
    std::uint8_t* first = buffers.handOut();
    std::uint8_t* second = buffers.handOut();
    ASSERT_THAT(first, NotNull());
    ASSERT_THAT(second, NotNull());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
    EXPECT_EQ(buffers.outside(), 2U);
    EXPECT_FALSE(buffers.takeReady().has_value());

    second[0] = 2;
    ActivityBuffers::giveBack(second, 16);
    first[0] = 1;
    ActivityBuffers::giveBack(first, 8);
    EXPECT_EQ(buffers.outside(), 0U);
    const auto readFirst = buffers.takeReady();
    const auto readSecond = buffers.takeReady();
    EXPECT_THAT(readFirst->records(), SizeIs(16)); // in the order in which they came
    EXPECT_EQ(readFirst->records()[0], 2);
    EXPECT_THAT(readSecond->records(), SizeIs(8));
    EXPECT_FALSE(buffers.takeReady().has_value());
}

TEST(ActivityBuffers, AreRefusedWhereAllAreInUse)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 2});
    std::uint8_t* first = buffers.handOut();
    std::uint8_t* second = buffers.handOut();
    EXPECT_THAT(buffers.handOut(), IsNull());
    EXPECT_EQ(buffers.refused(), 1);
    ActivityBuffers::giveBack(first, 0);
    EXPECT_THAT(buffers.handOut(), IsNull()); // not read yet
    { const auto ready = buffers.takeReady(); }
    EXPECT_EQ(buffers.handOut(), first); // read, and free again
    EXPECT_EQ(buffers.refused(), 2);
    EXPECT_EQ(buffers.allocated(), 2U);
    ActivityBuffers::giveBack(first, 0);
    ActivityBuffers::giveBack(second, 0);
}

TEST(ActivityBuffers, AreZeroWhenHandedOut)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 1});
    for (int round = 0; round < 3; ++round) {
        std::uint8_t* buffer = buffers.handOut();
        ASSERT_THAT(buffer, NotNull());
        ASSERT_THAT(whole(buffer, buffers), Each(0));
        std::fill_n(buffer, buffers.bufferBytes(), std::uint8_t{0xab}); // behind what it calls valid as well
        ActivityBuffers::giveBack(buffer, 64);
        const auto ready = buffers.takeReady();
    }
}

TEST(ActivityBuffers, TakeBackNoMoreThanTheyAreLongAndEachOnce)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 1});
    std::uint8_t* buffer = buffers.handOut();
    ActivityBuffers::giveBack(nullptr, 100);
    ActivityBuffers::giveBack(buffer, 1'000'000);
    ActivityBuffers::giveBack(buffer, 8);
    EXPECT_THAT(buffers.takeReady()->records(), SizeIs(4096));
    EXPECT_FALSE(buffers.takeReady().has_value());
    EXPECT_EQ(buffers.outside(), 0U);
}

TEST(ActivityBuffers, KnowTheirOwnerAlsoWhenClosed)
{
    ActivityBuffers old({.bufferBytes = 4096, .most = 4});
    ActivityBuffers now({.bufferBytes = 4096, .most = 4});
    std::uint8_t* late = old.handOut();
    std::uint8_t* unread = old.handOut();
    ActivityBuffers::giveBack(unread, 8);
    old.close();
    EXPECT_EQ(old.allocated(), 1U); // what CUPTI still has
    EXPECT_THAT(old.handOut(), IsNull());
    std::uint8_t* current = now.handOut();
    ActivityBuffers::giveBack(late, 8);
    EXPECT_FALSE(old.takeReady().has_value());
    EXPECT_EQ(old.allocated(), 0U);
    EXPECT_EQ(now.outside(), 1U);
    ActivityBuffers::giveBack(current, 8);
}

TEST(ActivityBuffers, MayBeClosedWhileOneIsRead)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 4});
    ActivityBuffers::giveBack(buffers.handOut(), 8);
    {
        const auto ready = buffers.takeReady();
        buffers.close();
        EXPECT_THAT(ready->records(), SizeIs(8));
    }
    EXPECT_EQ(buffers.allocated(), 0U);
}

TEST(ActivityBuffers, WaitForTheLastOne)
{
    ActivityBuffers buffers({.bufferBytes = 4096, .most = 4});
    EXPECT_TRUE(buffers.waitUntilAllAreBack(0ns));
    std::uint8_t* buffer = buffers.handOut();
    EXPECT_FALSE(buffers.waitUntilAllAreBack(0ns));
    std::jthread later([&] { ActivityBuffers::giveBack(buffer, 8); });
    EXPECT_TRUE(buffers.waitUntilAllAreBack(10min));
}

// Writers as CUPTI's threads are, a reader, and one that closes: every buffer is read once, or dropped by the close.
TEST(ActivityBuffers, StayWholeBetweenThreads)
{
    for (int round = 0; round < 20; ++round) {
        ActivityBuffers buffers({.bufferBytes = 1024, .most = 8});
        std::atomic<std::int64_t> written = 0;
        std::atomic<bool> enough = false;
        std::int64_t read = 0;
        {
            std::vector<std::jthread> writers;
            for (int w = 0; w < 3; ++w) {
                writers.emplace_back([&] {
                    for (int i = 0; i < 300; ++i) {
                        std::uint8_t* buffer = buffers.handOut();
                        if (buffer == nullptr) {
                            std::this_thread::yield();
                            continue;
                        }
                        EXPECT_EQ(buffer[0], 0);
                        buffer[0] = 1;
                        written.fetch_add(1);
                        ActivityBuffers::giveBack(buffer, 1);
                    }
                });
            }
            std::jthread reader([&] {
                while (!enough.load()) {
                    while (const auto ready = buffers.takeReady()) {
                        EXPECT_EQ(ready->records()[0], 1);
                        ++read;
                    }
                    std::this_thread::yield();
                }
            });
            for (std::jthread& each : writers) each.join();
            if (round % 2 == 0) buffers.close();
            enough = true;
        }
        while (const auto ready = buffers.takeReady()) ++read;
        if (round % 2 == 0) EXPECT_LE(read, written.load());
        else EXPECT_EQ(read, written.load());
        EXPECT_EQ(buffers.outside(), 0U);
    }
}

} // namespace

} // namespace stagecraft::runtime
