// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::AllOf;
using testing::HasSubstr;

RankOffer offer(std::string gpu) { return {.place = {.host = "node1", .gpu = std::move(gpu)}, .nccl = "2.28.9", .whyNot = {}, .order = "f00"}; }

Expected<TransportChoice> choose(Transport wish, const std::vector<RankOffer>& ranks)
{
    RunSpec run;
    run.mode = RunMode::Processes;
    run.device = DeviceKind::Cuda;
    run.transport = wish;
    return chooseTransport(run, ranks);
}

TEST(TransportChoice, IsNcclWhereEachRankHasAGpuOfItsOwn)
{
    const std::vector<RankOffer> apart{offer("a"), offer("b")};
    for (const Transport wish : {Transport::Auto, Transport::Nccl}) {
        const TransportChoice choice = choose(wish, apart).value();
        EXPECT_TRUE(choice.nccl);
        EXPECT_EQ(choice.note, "tensors go from GPU to GPU by NCCL 2.28.9");
    }
    EXPECT_EQ(choose(Transport::Host, apart).value(), TransportChoice{});
    EXPECT_EQ(choose(Transport::Auto, {offer("a")}).value(), TransportChoice{}) << "one rank hands nothing over";
    EXPECT_EQ(chooseTransport({}, apart).value(), TransportChoice{}) << "on the CPU";
}

TEST(TransportChoice, IsTheHostWithTheReasonWhereNcclCannotBeAndARefusalWhereItWasAskedFor)
{
    const auto reason = [](const std::vector<RankOffer>& ranks) {
        const Expected<TransportChoice> refused = choose(Transport::Nccl, ranks);
        EXPECT_THAT(refused.error().message, AllOf(HasSubstr("run.transport: NCCL cannot hand over: "), HasSubstr("Take transport host")));
        const TransportChoice choice = choose(Transport::Auto, ranks).value();
        EXPECT_FALSE(choice.nccl);
        EXPECT_THAT(choice.note, HasSubstr("by way of the host: "));
        return choice.note;
    };
    EXPECT_THAT(reason({offer("a"), offer("a")}), HasSubstr("ranks 0 and 1 are both on GPU a of node1"));
    EXPECT_THAT(reason({offer("a"), offer("")}), HasSubstr("rank 1 is on the CPU"));
    RankOffer other = offer("b");
    other.nccl = "2.27.3";
    EXPECT_THAT(reason({offer("a"), other}), HasSubstr("rank 0 has NCCL 2.28.9, and rank 1 2.27.3"));
    other = offer("b");
    other.order = "ba2";
    EXPECT_THAT(reason({offer("a"), other}), HasSubstr("ranks 0 and 1 have made different orders"));
    other = {.place = {.host = "node1", .gpu = "b"}, .nccl = {}, .whyNot = "libnccl.so.2: not there", .order = {}};
    EXPECT_THAT(reason({offer("a"), other}), HasSubstr("rank 1 cannot take NCCL: libnccl.so.2: not there"));
}

TEST(RankOffer, ComesBackFromItsText)
{
    for (const RankOffer& each : {offer("0000:1b:00"), RankOffer{.place = {.host = "a \"b\"\n", .gpu = ""}, .nccl = {}, .whyNot = "no", .order = {}}})
        EXPECT_EQ(readOffer(written(each)), each);
}

} // namespace
} // namespace stagecraft::runtime
