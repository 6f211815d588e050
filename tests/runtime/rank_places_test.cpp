// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/rank_places.h"

#include <gmock/gmock.h>

#include <array>

namespace stagecraft::runtime {
namespace {

using testing::HasSubstr;

TEST(RankPlaces, HaveAGpuForEachRankOrAReasonWhyNot)
{
    EXPECT_TRUE(checkOneRankPerGpu({}).ok());
    EXPECT_TRUE(checkOneRankPerGpu(std::array{RankPlace{"node1", "a"}, RankPlace{"node2", "a"}, RankPlace{"node1", "b"}}).ok());
    const auto refusal = [](const auto& ranks) { return checkOneRankPerGpu(ranks).error().message; };
    EXPECT_THAT(refusal(std::array{RankPlace{"node1", "a"}, RankPlace{"node1", "b"}, RankPlace{"node1", "b"}}),
                HasSubstr("ranks 1 and 2 are both on GPU b of node1, and NCCL takes one rank per GPU"));
    EXPECT_THAT(refusal(std::array{RankPlace{"node1", "a"}, RankPlace{"node1", ""}}), HasSubstr("rank 1 is on the CPU"));
}

TEST(RankPlaces, TellWhoIsTheFirstOnAGpu)
{
    const std::array ranks{RankPlace{"node1", "a"}, RankPlace{"node1", "a"}, RankPlace{"node2", "a"}, RankPlace{"node1", ""}, RankPlace{"node1", ""}};
    EXPECT_TRUE(firstOfItsGpu(ranks, 0));
    EXPECT_FALSE(firstOfItsGpu(ranks, 1));
    EXPECT_TRUE(firstOfItsGpu(ranks, 2));
    EXPECT_TRUE(firstOfItsGpu(ranks, 3)); // of processors nobody knows who shares what
    EXPECT_TRUE(firstOfItsGpu(ranks, 4));
}

} // namespace
} // namespace stagecraft::runtime
