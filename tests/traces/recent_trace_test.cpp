// SPDX-License-Identifier: Apache-2.0
#include "traces/store/recent_trace.h"

#include <gtest/gtest.h>

#include <string>

namespace stagecraft::traces {
namespace {

constexpr int kSlices = 4; // of a step

// Steps of a run as a stream: per step forward and backward on rank 0, the same on rank 1, with an edge between the forwards and one
// from the step before.
std::vector<Record> stream(int steps)
{
    TraceInfo info;
    info.title = "long";
    std::vector<Record> records{InfoRecord{info}};
    for (int r = 0; r < 2; ++r) records.push_back(LaneRecord{{.rank = Rank{r}, .kind = LaneKind::Compute, .name = "rank " + std::to_string(r)}});
    records.push_back(TextRecord{"word"});
    records.push_back(MemoryRecord{Rank{0}, MemoryClass::Weights, 0, 4096}); // that never changes again
    const auto add = [&](int rank, ActionKind kind, TimeNs begin, int step) {
        records.push_back(SliceRecord{LaneId{static_cast<std::uint32_t>(rank)},
                                      {.begin = begin, .end = begin + 10, .action = makeAction(kind, Stage{rank}, MicroBatch{0}), .step = Step{step}}});
    };
    for (int s = 0; s < steps; ++s) {
        const TimeNs begin = s * 100;
        const auto at = [&](int rank, int i) { return SliceRef{LaneId{static_cast<std::uint32_t>(rank)}, static_cast<std::uint32_t>(2 * s + i)}; };
        add(0, ActionKind::Forward, begin, s);
        if (s > 0) records.push_back(EdgeRecord{{.kind = EdgeKind::Flush, .from = {LaneId{0}, static_cast<std::uint32_t>(2 * s - 1)}, .to = at(0, 0)}});
        add(1, ActionKind::Forward, begin + 10, s);
        records.push_back(EdgeRecord{{.from = at(0, 0), .to = at(1, 0), .ready = begin + 10}});
        add(1, ActionKind::Backward, begin + 20, s);
        add(0, ActionKind::Backward, begin + 30, s);
        records.push_back(MemoryRecord{Rank{0}, MemoryClass::Activations, begin + 40, s});
        records.push_back(StepRecord{{.step = Step{s}, .span = {begin, begin + 40}, .loss = 1.0}});
    }
    return records;
}

TEST(RecentTrace, KeepsTheLastStepsWholeAndNoMoreThanTwiceTheLimit)
{
    for (const int limit : {1, 7, 40, 1000}) {
        RecentTrace recent(static_cast<std::size_t>(limit));
        int steps = 0;
        for (const Record& record : stream(100)) {
            ASSERT_TRUE(recent.take(record).ok());
            if (!std::holds_alternative<StepRecord>(record)) continue;
            ++steps;
            const std::vector<StepSpan>& kept = recent.trace().steps();
            ASSERT_FALSE(kept.empty());
            EXPECT_EQ(recent.trace().sliceCount(), kSlices * kept.size()) << "whole steps alone";
            EXPECT_LE(recent.trace().sliceCount(), static_cast<std::size_t>(limit + kSlices));
            EXPECT_EQ(recent.droppedSteps() + kept.size(), static_cast<std::size_t>(steps)) << "limit " << limit;
        }
        EXPECT_EQ(recent.takenSlices(), 400U);
    }
}

TEST(RecentTrace, MovesEdgesWithTheirSlicesAndLetsThoseGoThatLeadIntoThePast)
{
    RecentTrace recent(8); // two steps
    for (const Record& record : stream(5)) ASSERT_TRUE(recent.take(record).ok());
    const Trace& trace = recent.trace(); // steps 2 and 3, or the fifth
    ASSERT_EQ(trace.steps().size(), 2U);
    EXPECT_EQ(trace.steps().front().step, Step{2});
    const SliceRef forward{LaneId{1}, 0};
    ASSERT_EQ(trace.edgesInto(forward).size(), 1U);
    EXPECT_EQ(trace.edgesInto(forward).front().from, (SliceRef{LaneId{0}, 0}));
    EXPECT_TRUE(trace.edgesInto({LaneId{0}, 0}).empty()) << "from the step before";
    EXPECT_EQ(trace.edgesInto({LaneId{0}, 2}).size(), 1U);
}

TEST(RecentTrace, CarriesOverWhatHoldsForTheWholeRun)
{
    RecentTrace recent(4);
    ASSERT_TRUE(recent.take(NoteRecord{"early"}).ok());
    ASSERT_TRUE(recent.take(NoteRecord{"by NCCL", NoteKind::Information}).ok());
    ASSERT_TRUE(recent.take(GpuRecord{{.number = 2}}).ok());
    ASSERT_TRUE(recent.take(GpuMemoryRecord{GpuId{0}, 5, {.used = 77}}).ok());
    for (const Record& record : stream(9)) ASSERT_TRUE(recent.take(record).ok());
    ASSERT_TRUE(recent.take(LostRecord{3}).ok());
    ASSERT_TRUE(recent.take(NoteRecord{"late"}).ok());
    EXPECT_EQ(recent.notes(), (std::vector<std::string>{"early", "late"}));
    EXPECT_EQ(recent.information(), std::vector<std::string>{"by NCCL"});
    const Trace trace = recent.release();
    EXPECT_EQ(trace.gpus(), (std::vector<GpuSeries>{{{.number = 2}, {5}, {{.used = 77}}}}));
    EXPECT_EQ(trace.info.title, "long");
    EXPECT_EQ(trace.textCount(), 2U);
    ASSERT_NE(trace.memorySeries(Rank{0}, MemoryClass::Weights), nullptr);
    EXPECT_EQ(trace.memorySeries(Rank{0}, MemoryClass::Weights)->valueAt(1'000'000), 4096);
}

TEST(RecentTrace, IsTheWholeTraceWithoutALimit)
{
    RecentTrace recent;
    Trace whole;
    for (const Record& record : stream(50)) {
        ASSERT_TRUE(recent.take(record).ok());
        ASSERT_TRUE(apply(whole, record).ok());
    }
    EXPECT_EQ(recent.droppedSteps(), 0U);
    ASSERT_EQ(recent.trace().laneCount(), whole.laneCount());
    for (std::size_t l = 0; l < whole.laneCount(); ++l)
        for (std::size_t i = 0; i < whole.lane(LaneId{l}).size(); ++i)
            EXPECT_EQ(recent.trace().lane(LaneId{l}).slice(i), whole.lane(LaneId{l}).slice(i));
    EXPECT_EQ(recent.trace().steps(), whole.steps());
    EXPECT_EQ(recent.trace().edgeCount(), whole.edgeCount());
}

} // namespace
} // namespace stagecraft::traces
