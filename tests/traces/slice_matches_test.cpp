// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/sample_trace.h"
#include "traces/analysis/slice_matches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stagecraft::traces {
namespace {

using testing::ElementsAre;

SliceMatches matchesOf(const Trace& trace, std::string_view text)
{
    SliceMatches matches(SliceQuery::parse(text).value());
    EXPECT_TRUE(matches.extend(trace));
    return matches;
}

std::vector<std::string> inOrder(const Trace& trace, const SliceMatches& matches)
{
    std::vector<std::string> names;
    for (auto at = matches.from(trace, 0); at; at = matches.after(trace, *at)) names.push_back(trace.sliceName(*at));
    return names;
}

// Lanes with slices of all lengths, none included, so that many begin at one time.
void addRandomSlices(Trace& trace, std::mt19937& random, int count)
{
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        TimeNs t = trace.lane(LaneId{l}).lastEnd();
        for (int i = 0; i < count; ++i) {
            t += random() % 3;
            const TimeNs end = t + random() % 4;
            trace.append(
                LaneId{l},
                {.begin = t, .end = end, .action = forward(Stage{l}, MicroBatch{random() % 7}), .step = {}, .text = {}});
            t = end;
        }
    }
}

Trace randomTrace(std::mt19937& random, int lanes, int slices)
{
    Trace trace;
    for (int r = 0; r < lanes; ++r) trace.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    addRandomSlices(trace, random, slices);
    return trace;
}

TEST(SliceMatches, StandInTheOrderOfTimeAcrossLanes)
{
    const Trace trace = test::sample();
    EXPECT_THAT(inOrder(trace, matchesOf(trace, "F")), ElementsAre("0F0", "0F1", "1F0", "1F1"));
    EXPECT_THAT(inOrder(trace, matchesOf(trace, "copy")), ElementsAre("copy"));
    EXPECT_THAT(inOrder(trace, matchesOf(trace, "loader")), ElementsAre("load", "copy")); // the row's name
    EXPECT_EQ(matchesOf(trace, "nothing-like-it").count(), 0U);
}

TEST(SliceMatches, KnowPlaceAndNeighboursOfEverySlice)
{
    std::mt19937 random(1);
    const Trace trace = randomTrace(random, 5, 700);
    const SliceMatches matches = matchesOf(trace, "mb 3");
    std::vector<SliceRef> all;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (std::size_t i = 0; i < trace.lane(LaneId{l}).size(); ++i)
            all.push_back({LaneId{l}, static_cast<std::uint32_t>(i)});
    std::stable_sort(all.begin(), all.end(),
                     [&](SliceRef a, SliceRef b) { return trace.slice(a).begin < trace.slice(b).begin; });
    std::vector<SliceRef> expected;
    for (const SliceRef ref : all)
        if (trace.slice(ref).action.microbatch() == MicroBatch{3}) expected.push_back(ref);
    ASSERT_EQ(matches.count(), expected.size());
    std::size_t passed = 0;
    for (const SliceRef ref : all) {
        const bool match = trace.slice(ref).action.microbatch() == MicroBatch{3};
        ASSERT_EQ(matches.contains(ref), match);
        ASSERT_EQ(matches.countBefore(trace, ref), passed);
        ASSERT_EQ(matches.before(trace, ref), passed > 0 ? std::optional(expected[passed - 1]) : std::nullopt);
        passed += match ? 1 : 0;
        ASSERT_EQ(matches.after(trace, ref), passed < expected.size() ? std::optional(expected[passed]) : std::nullopt);
    }
    for (TimeNs t = -1; t < trace.extent().end + 2; t += 7) {
        const auto next =
            std::find_if(expected.begin(), expected.end(), [&](SliceRef ref) { return trace.slice(ref).begin >= t; });
        ASSERT_EQ(matches.from(trace, t), next != expected.end() ? std::optional(*next) : std::nullopt);
        ASSERT_EQ(matches.until(trace, t), next != expected.begin() ? std::optional(*(next - 1)) : std::nullopt);
    }
}

TEST(SliceMatches, GoOnWhereATraceHasGrown)
{
    std::mt19937 random(2);
    Trace trace = randomTrace(random, 3, 100);
    SliceMatches matches = matchesOf(trace, "mb 3");
    addRandomSlices(trace, random, 5000);
    trace.addLane({.rank = Rank{3}, .kind = LaneKind::Compute, .depth = 0, .name = {}});
    addRandomSlices(trace, random, 10);
    EXPECT_LT(matches.seen(), trace.sliceCount());
    EXPECT_LT(matches.countBefore(trace, {LaneId{3}, 9}), trace.sliceCount()); // of a lane that was not looked at yet
    EXPECT_TRUE(matches.extend(trace));
    EXPECT_EQ(matches.seen(), trace.sliceCount());
    EXPECT_EQ(inOrder(trace, matches), inOrder(trace, matchesOf(trace, "mb 3")));
}

TEST(SliceMatches, StopWhenAskedAndGoOnLater)
{
    std::mt19937 random(3);
    const Trace trace = randomTrace(random, 2, 100);
    SliceMatches matches(SliceQuery::parse("mb 3").value());
    std::stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(matches.extend(trace, stop.get_token()));
    EXPECT_EQ(matches.seen(), 0U);
    EXPECT_TRUE(matches.extend(trace));
    EXPECT_EQ(matches.count(), matchesOf(trace, "mb 3").count());
}

} // namespace
} // namespace stagecraft::traces
