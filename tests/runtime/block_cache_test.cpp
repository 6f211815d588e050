// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/block_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace stagecraft::runtime {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(BlockCache, ClassesHoldWhatIsAskedForAndWasteAtMostAnEighth)
{
    for (std::size_t bytes = 1; bytes < 64 * kMiB; bytes += 1 + bytes / 7) {
        const std::size_t size = BlockCache::classBytes(BlockCache::classOf(bytes));
        ASSERT_GE(size, bytes);
        if (bytes > 128) {
            ASSERT_LE(size, bytes + bytes / 8 + 16) << bytes;
        }
    }
    for (std::uint32_t c = 0; c < 200; ++c) ASSERT_EQ(BlockCache::classOf(BlockCache::classBytes(c)), c);
}

TEST(BlockCache, GivesTheSameBlockAgain)
{
    BlockCache::trim();
    for (const std::size_t bytes : {std::size_t{1000}, 3 * kMiB}) {
        const Block first = BlockCache::take(bytes);
        ASSERT_NE(first.memory, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.memory) % 64, 0U);
        std::memset(first.memory, 1, bytes);
        BlockCache::give(first);
        const Block second = BlockCache::take(bytes);
        EXPECT_EQ(second.memory, first.memory);
        BlockCache::give(second);
    }
    BlockCache::trim();
}

TEST(BlockCache, KeepsNoMoreThanItsLimitAndGivesAllBackOnDemand)
{
    BlockCache::trim();
    ASSERT_EQ(BlockCache::keptBytes(), 0U);
    BlockCache::setLimit(8 * kMiB);
    Block blocks[4];
    for (Block& block : blocks) block = BlockCache::take(3 * kMiB);
    for (Block& block : blocks) BlockCache::give(block);
    EXPECT_EQ(BlockCache::keptBytes(), 2 * 3 * kMiB);
    BlockCache::trim();
    EXPECT_EQ(BlockCache::keptBytes(), 0U);
    BlockCache::setLimit(512 * kMiB);
}

TEST(BlockCache, ASmallBlockFreedByAnotherThreadComesBackWhenThatThreadEnds)
{
    BlockCache::trim();
    const Block block = BlockCache::take(2000);
    std::jthread([&] { BlockCache::give(block); }).join();
    EXPECT_EQ(BlockCache::keptBytes(), BlockCache::classBytes(block.sizeClass));
    const Block again = BlockCache::take(2000);
    EXPECT_EQ(again.memory, block.memory);
    BlockCache::give(again);
    BlockCache::trim();
}

TEST(BlockCache, HasNoBlockForASizeThatNoMachineHas)
{
    EXPECT_EQ(BlockCache::take(std::size_t{1} << 62).memory, nullptr);
}

} // namespace
} // namespace stagecraft::runtime
