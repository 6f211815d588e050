// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/slice_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stagecraft::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kActions{"0F0",
                                        "1F3",
                                        "3F3",
                                        "1B3",
                                        "2I3",
                                        "1W4",
                                        "u3B1",
                                        "3SEND_F1",
                                        "2RECV_B3",
                                        "1OPTIMIZER",
                                        "0ALL_REDUCE",
                                        "2RECOMPUTE3",
                                        "(0F1;3B0)OVERLAP_F_B"};

Action actionOf(const std::string& text) { return parseAction(text).value(); }

// The actions of the list that a query finds on rank 1.
std::vector<std::string> found(const std::string& text, const std::vector<std::string>& actions = kActions)
{
    const Expected<SliceQuery> query = SliceQuery::parse(text);
    if (!query.ok()) return {query.error().message};
    const LaneQuery onLane = query.value().on({.rank = Rank{1}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 1"});
    std::vector<std::string> all;
    for (const std::string& action : actions)
        if (onLane.any() && onLane.matches(actionOf(action), Step{5}, {})) all.push_back(action);
    return all;
}

bool finds(const std::string& text, const LaneInfo& lane, std::string_view name)
{
    const Expected<SliceQuery> query = SliceQuery::parse(text);
    const LaneQuery onLane = query.value().on(lane);
    return onLane.any() && onLane.matches(Action{}, Step{5}, name);
}

TEST(SliceQuery, FindsAnActionByItsText)
{
    for (const std::string& action : kActions) EXPECT_THAT(found(action), ElementsAre(action));
}

TEST(SliceQuery, TakesANumberThatIsLeftOutForAny)
{
    EXPECT_THAT(found("F3"), ElementsAre("1F3", "3F3"));
    EXPECT_THAT(found("1F"), ElementsAre("1F3"));
    EXPECT_THAT(found("B"), ElementsAre("1B3", "u3B1", "(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("SEND_F"), ElementsAre("3SEND_F1"));
    EXPECT_THAT(found("3b"), ElementsAre("u3B1", "(0F1;3B0)OVERLAP_F_B"));
}

TEST(SliceQuery, CaresNotForCapitals)
{
    EXPECT_THAT(found("f3"), ElementsAre("1F3", "3F3"));
    EXPECT_THAT(found("U3b1"), ElementsAre("u3B1"));
    EXPECT_THAT(found("(0f1;3b0)overlap_f_b"), ElementsAre("(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("Stage 2 RECV"), ElementsAre("2RECV_B3"));
}

TEST(SliceQuery, FindsKindsByTheirWords)
{
    EXPECT_THAT(found("forward"), ElementsAre("0F0", "1F3", "3F3", "(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("backward"), ElementsAre("1B3", "2I3", "1W4", "u3B1", "(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("optim"), ElementsAre("1OPTIMIZER"));
    EXPECT_THAT(found("send"), ElementsAre("3SEND_F1"));
    EXPECT_THAT(found("transfer"), ElementsAre("3SEND_F1", "2RECV_B3"));
    EXPECT_THAT(found("wgrad"), ElementsAre("1W4"));
    EXPECT_THAT(found("overlap"), ElementsAre("(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("all-reduce"), ElementsAre("0ALL_REDUCE"));
    EXPECT_THAT(found("gemm"), IsEmpty());
}

TEST(SliceQuery, WantsEveryTerm)
{
    EXPECT_THAT(found("forward mb 3"), ElementsAre("1F3", "3F3"));
    EXPECT_THAT(found("  stage 3   forward "), ElementsAre("3F3"));
    EXPECT_THAT(found("stage 2 stage 3"), IsEmpty());
    EXPECT_THAT(found("F3 B3"), IsEmpty());
}

TEST(SliceQuery, JudgesEachPartOfAPairByItself)
{
    EXPECT_THAT(found("forward stage 0 mb 1"), ElementsAre("(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("overlap stage 3"), ElementsAre("(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("forward stage 3 mb 0"), IsEmpty());
    EXPECT_THAT(found("F0"), ElementsAre("0F0"));
    EXPECT_THAT(found("(0F1;3B0)OVERLAP_F_B stage 5"), IsEmpty());
}

TEST(SliceQuery, KnowsManyWaysToWriteANumber)
{
    for (const char* text : {"mb 4", "MB4", "mb:4", "mb=4", "micro-batch 4", "microbatch 4", "micro-batches 4-4"})
        EXPECT_THAT(found(text), ElementsAre("1W4")) << text;
    EXPECT_THAT(found("mb 3-4 stage 1"), ElementsAre("1F3", "1B3", "1W4"));
    EXPECT_THAT(found("stage 7-3"), ElementsAre("3F3", "u3B1", "3SEND_F1", "(0F1;3B0)OVERLAP_F_B"));
    EXPECT_THAT(found("4"), ElementsAre("1W4"));
    EXPECT_THAT(found("2 recompute"), ElementsAre("2RECOMPUTE3"));
}

TEST(SliceQuery, AsksForRankAndStep)
{
    EXPECT_THAT(found("rank 0"), IsEmpty());
    EXPECT_THAT(found("rank 1").size(), kActions.size());
    EXPECT_THAT(found("step 4"), IsEmpty());
    EXPECT_THAT(found("step 5 F0"), ElementsAre("0F0"));
}

TEST(SliceQuery, FindsNothingByNothing)
{
    EXPECT_TRUE(SliceQuery::parse("  ").value().empty());
    EXPECT_THAT(found(""), IsEmpty());
}

TEST(SliceQuery, SaysWhereANumberIsMissing)
{
    EXPECT_THAT(found("stage"), ElementsAre(HasSubstr("after \"stage\" comes a number")));
    EXPECT_THAT(found("send rank forward"), ElementsAre(HasSubstr("\"rank 2\"")));
    EXPECT_THAT(found("mb:x"), ElementsAre(HasSubstr("after \"mb\"")));
}

TEST(SliceQuery, FindsSlicesThatAreNoActionByTheirName)
{
    const LaneInfo compute{.rank = Rank{1}, .kind = LaneKind::Compute, .depth = 0, .name = "python"};
    EXPECT_TRUE(finds("GEMM", compute, "sm80_gemm_f32"));
    EXPECT_TRUE(finds("gemm f32", compute, "sm80_gemm_f32")); // f32 is an action's form, too
    EXPECT_FALSE(finds("gemm f16", compute, "sm80_gemm_f32"));
    EXPECT_TRUE(finds("rank 1 80", compute, "sm80_gemm_f32"));
    EXPECT_FALSE(finds("stage 1 gemm", compute, "sm80_gemm_f32")); // nothing tells its stage
    EXPECT_FALSE(finds("python", compute, "sm80_gemm_f32"));
    const LaneInfo stream{.rank = Rank{1}, .kind = LaneKind::Stream, .depth = 0, .name = "Stream 7"};
    EXPECT_TRUE(finds("stream 7", stream, "sm80_gemm_f32"));
    EXPECT_TRUE(finds("stream gemm", stream, "sm80_gemm_f32"));
    EXPECT_FALSE(finds("stream 9", stream, "sm80_gemm_f32"));
}

} // namespace
} // namespace stagecraft::traces
