// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/header_painter.h"
#include "ui/timeline/lane_layout.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::twoRanks;
using traces::LaneId;
using traces::Rank;

class Layout : public ::testing::Test {
protected:
    void showOne() { scene_.setSources({{twoRanks()}}); }
    void showTwo() { scene_.setSources({{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured})}}); }
    TimelineScene scene_;
};

TEST_F(Layout, PutsEveryLaneInARowOfItsOwn)
{
    showTwo();
    const LaneLayout layout(scene_, {});
    ASSERT_EQ(layout.rows().size(), 2U * (1 + 3));
    for (std::size_t i = 1; i < layout.rows().size(); ++i) EXPECT_GE(layout.rows()[i].y, layout.rows()[i - 1].bottom());
    EXPECT_GE(layout.height(), layout.rows().back().bottom());
    for (const Row& row : layout.rows()) {
        EXPECT_EQ(layout.rowAt(row.y), &row);
        EXPECT_EQ(layout.rowAt(row.bottom() - 0.01), &row);
    }
    EXPECT_EQ(layout.rowAt(-1), nullptr);
    EXPECT_EQ(layout.rowAt(layout.height() + 1), nullptr);
}

TEST_F(Layout, PutsARanksTransfersUnderItsWork)
{
    showOne();
    const LaneLayout layout(scene_, {});
    ASSERT_EQ(layout.rows().size(), 4U);
    EXPECT_EQ(layout.rows()[0].kind, Row::Kind::SourceHeader); // names a single source too
    EXPECT_EQ(layout.rows()[1].lane, LaneId{0});
    EXPECT_EQ(layout.rows()[2].lane, LaneId{2});
    EXPECT_EQ(layout.rows()[2].laneKind, traces::LaneKind::Transfer);
    EXPECT_EQ(layout.rows()[3].lane, LaneId{1});
    EXPECT_LT(layout.rows()[2].height, layout.rows()[1].height);
    EXPECT_EQ(LaneLayout(scene_, {.headerHeight = 0}).rows().size(), 3U);
}

// They lie between its kernels.
TEST_F(Layout, PutsTheGapsOfAStreamOnItsRow)
{
    const std::shared_ptr<traces::Trace> trace = twoRanks();
    const auto add = [&](const char* name, int depth) { return trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Stream, .depth = depth, .name = name}); };
    const LaneId gaps = add("GPU 0 stream 7, gaps", 0);
    const LaneId stream = add("GPU 0 stream 7", 1);
    const LaneId other = add("GPU 0 stream 17", 2);
    const LaneId nccl = add("GPU 0 stream 9, NCCL", 3);
    const LaneId ofNccl = add("GPU 0 stream 9, gaps", 4);
    const LaneId beside = add("GPU 0 stream 7, beside", 5);
    scene_.setSources({{trace}});
    const LaneLayout layout(scene_, {});
    ASSERT_EQ(layout.rows().size(), 4U + 4);
    EXPECT_EQ(layout.rowOf(0, nccl)->gaps, ofNccl);
    EXPECT_EQ(layout.rowOf(0, beside)->gaps, std::nullopt);
    EXPECT_EQ(layout.rowOf(0, gaps), layout.rowOf(0, stream));
    EXPECT_EQ(layout.rowOf(0, stream)->gaps, gaps);
    EXPECT_EQ(layout.rowOf(0, other)->gaps, std::nullopt);
}

TEST_F(Layout, FoldsThinLanesAway)
{
    showOne();
    const LaneLayout layout(scene_, {}, {{SourceRole::Simulation, Rank{0}}});
    EXPECT_EQ(layout.rows().size(), 3U);
    EXPECT_EQ(layout.rowOf(0, LaneId{2}), nullptr);
    EXPECT_NE(layout.rowOf(0, LaneId{0}), nullptr);
    EXPECT_TRUE(layout.groups()[0].foldable);
    EXPECT_TRUE(layout.groups()[0].folded);
    EXPECT_FALSE(layout.groups()[1].foldable); // rank 1 has no thin lanes
}

TEST_F(Layout, LeavesRoomForTheNamesOfCopiesAndCollectives)
{
    auto trace = twoRanks();
    const LaneId copies = trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Copy, .depth = 0, .name = "rank 0 offloads"});
    const LaneId sums = trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Collective, .depth = 0, .name = "rank 0 collectives"});
    scene_.setSources({{trace}});
    const LayoutOptions options;
    const LaneLayout layout(scene_, options);
    for (const LaneId lane : {copies, sums}) EXPECT_EQ(layout.rowOf(0, lane)->height, options.asideHeight);
    EXPECT_GT(options.asideHeight, options.transferHeight);
    EXPECT_EQ(rowName(trace->lane(copies).info()), "offloads");
    EXPECT_EQ(rowName(trace->lane(sums).info()), "collectives");
    EXPECT_EQ(rowName({.rank = Rank{1}, .kind = traces::LaneKind::Compute, .depth = 1, .name = "rank 1 (2)"}), "Rank 1 (2)");
    EXPECT_EQ(rowName({.rank = Rank{1}, .kind = traces::LaneKind::Stream, .depth = 0, .name = "rank 12"}), "rank 12");
    EXPECT_EQ(rowName({.rank = Rank{5}, .kind = traces::LaneKind::Collective, .depth = 0, .name = "replica 1 · rank 1 collectives"}), "collectives");
    EXPECT_EQ(rowName({.rank = Rank{5}, .kind = traces::LaneKind::Compute, .depth = 1, .name = "replica 1 · rank 1 (2)"}), "Replica 1 · rank 1 (2)");
    traces::TraceInfo replicas;
    replicas.ranks = 4;
    replicas.stageToRank = {Rank{0}, Rank{1}};
    EXPECT_EQ(stagesText(replicas, Rank{3}), "replica 1, stage 1");
    EXPECT_EQ(rowName({.rank = Rank{5}, .kind = traces::LaneKind::Stream, .depth = 4, .name = "GPU 12 stream 7, of no action"}), "stream 7, of no action");
    EXPECT_EQ(rowName({.rank = Rank{5}, .kind = traces::LaneKind::Stream, .depth = 4, .name = "GPU 0 memory operations"}), "memory operations");
    EXPECT_EQ(placeText(*trace, Rank{0}), stagesText(trace->info, Rank{0})) << "no GPU is told";
    trace->addLane({.rank = Rank{0}, .kind = traces::LaneKind::Stream, .depth = 5, .name = "GPU 3 stream 7"});
    EXPECT_EQ(placeText(*trace, Rank{0}), stagesText(trace->info, Rank{0}) + " · GPU 3");
    EXPECT_EQ(placeText(*trace, Rank{1}), stagesText(trace->info, Rank{1}));
}

TEST_F(Layout, FillsTheHeightWithinBounds)
{
    showOne();
    const LaneLayout fitted(scene_, {.fitHeight = 120});
    EXPECT_LE(fitted.height(), 120);
    EXPECT_GT(fitted.height(), 115);
    const LayoutOptions bounds;
    const LaneLayout tall(scene_, {.fitHeight = 5000});
    EXPECT_EQ(tall.rows()[1].height, bounds.mostCompute);
    const LaneLayout low(scene_, {.fitHeight = 10});
    EXPECT_EQ(low.rows()[1].height, bounds.leastCompute);
}

TEST_F(Layout, KeepsTheHeaderOfTheSourceInSight)
{
    showTwo();
    const LaneLayout layout(scene_, {});
    const Row& first = layout.rows()[0];
    const Row& second = layout.rows()[4];
    ASSERT_EQ(second.kind, Row::Kind::SourceHeader);
    EXPECT_EQ(layout.stickyHeader(0).header, &first);
    EXPECT_EQ(layout.stickyHeader(20).header, &first);
    EXPECT_EQ(layout.stickyHeader(20).y, 0);
    // The next header pushes it up by as much as they would overlap.
    const LaneLayout::Sticky pushed = layout.stickyHeader(second.y - 10);
    EXPECT_EQ(pushed.header, &first);
    EXPECT_EQ(pushed.y, 10 - first.height);
    EXPECT_EQ(layout.stickyHeader(second.y).header, &second);
}

TEST_F(Layout, LaysTheSimulationOverTheMeasuredLanes)
{
    showTwo();
    scene_.setArrangement(Arrangement::Overlaid);
    const LaneLayout layout(scene_, {});
    ASSERT_EQ(layout.rows().size(), 4U);
    for (std::size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(layout.rows()[i].source, 1);
        ASSERT_TRUE(layout.rows()[i].ghost);
        EXPECT_EQ(layout.rows()[i].ghostSource, 0);
    }
}

TEST_F(Layout, IsEmptyWithoutSources)
{
    const LaneLayout layout(scene_, {.fitHeight = 300});
    EXPECT_TRUE(layout.rows().empty());
    EXPECT_EQ(layout.height(), 0);
    EXPECT_EQ(layout.stickyHeader(0).header, nullptr);
}

} // namespace
} // namespace stagecraft::ui
