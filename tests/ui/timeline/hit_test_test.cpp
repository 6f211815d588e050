// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/support/traces.h"
#include "ui/timeline/hit_test.h"
#include "ui/timeline/item_details.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::streamWithGap;
using support::twoRanks;
using traces::LaneId;

// 1 ms is 100 pixels; the lanes begin at (100, 50).
class HitTest : public ::testing::Test {
protected:
    void show(std::vector<TraceSource> sources)
    {
        scene_.setSources(std::move(sources));
        layout_ = LaneLayout(scene_, {});
        areas_.lanes = QRectF(100, 50, 1000, 400);
        areas_.map = TimeMapping({0, 0, 10.0 * kMs}, 100, 1000);
    }
    TimelineItem at(double ms, int source, LaneId lane) const
    {
        const Row* row = layout_.rowOf(source, lane);
        return itemAt(scene_, layout_, areas_, {100 + ms * 100, 50 + row->y - areas_.scroll + row->height / 2});
    }
    TimelineScene scene_;
    LaneLayout layout_;
    ArrowAreas areas_;
};

TEST_F(HitTest, FindsEverySlice)
{
    show({{twoRanks()}});
    for (const unsigned lane : {0U, 1U, 2U})
        for (std::uint32_t i = 0; i < scene_.trace(0).lane(LaneId{lane}).size(); ++i) {
            const traces::Slice slice = scene_.trace(0).lane(LaneId{lane}).slice(i);
            const TimelineItem item = at(static_cast<double>(slice.begin + slice.end) / 2 / kMs, 0, LaneId{lane});
            EXPECT_EQ(item.kind, TimelineItem::Kind::Slice);
            EXPECT_EQ(item.slice, (traces::SliceRef{LaneId{lane}, i}));
        }
}

TEST_F(HitTest, FindsWhyAStreamStandsStill)
{
    const auto [trace, stream, gaps] = streamWithGap("host had not launched");
    show({{trace}});
    EXPECT_EQ(at(0.5, 0, stream).slice, (traces::SliceRef{stream, 0}));
    const TimelineItem item = at(1.5, 0, stream);
    EXPECT_EQ(item.slice, (traces::SliceRef{gaps, 0}));
    const QString text = detailsHtml(detailsOf(scene_, item));
    EXPECT_TRUE(text.contains("Gap: host had not launched")) << text.toStdString();
    EXPECT_TRUE(text.contains("GPU 0 stream 7"));
    EXPECT_TRUE(at(4, 0, stream).none());
}

TEST_F(HitTest, FindsGapsWithTheirCause)
{
    show({{twoRanks()}});
    const TimelineItem item = at(3, 0, LaneId{0});
    ASSERT_EQ(item.kind, TimelineItem::Kind::Gap);
    EXPECT_EQ(item.gap.span, (traces::Interval{2 * kMs, 4 * kMs}));
    EXPECT_EQ(item.gap.cause, traces::GapCause::WaitForStage);
    EXPECT_EQ(at(0.5, 0, LaneId{1}).gap.cause, traces::GapCause::Filling);
    EXPECT_EQ(at(8, 0, LaneId{1}).gap.cause, traces::GapCause::Draining);
    const QString text = detailsHtml(detailsOf(scene_, item));
    EXPECT_TRUE(text.contains("waiting for stage 1"));
    EXPECT_TRUE(text.contains("2 ms"));
}

TEST_F(HitTest, ForgivesTwoPixels)
{
    show({{twoRanks()}});
    EXPECT_EQ(at(2.015, 0, LaneId{0}).slice.index, 1U); // F1 ends at 2
    EXPECT_EQ(at(2.015, 0, LaneId{0}).kind, TimelineItem::Kind::Slice);
    EXPECT_EQ(at(2.03, 0, LaneId{0}).kind, TimelineItem::Kind::Gap);
}

TEST_F(HitTest, FindsNothingOutsideTheLanes)
{
    show({{twoRanks()}});
    EXPECT_TRUE(itemAt(scene_, layout_, areas_, {50, 80}).none());
    EXPECT_TRUE(itemAt(scene_, layout_, areas_, {300, 20}).none());
    EXPECT_TRUE(itemAt(scene_, layout_, areas_, {300, 440}).none());
    EXPECT_TRUE(at(9.5, 0, LaneId{0}).none()); // after the step
    EXPECT_TRUE(at(5, 0, LaneId{2}).none());   // a transfer lane has no bubbles
}

TEST_F(HitTest, FollowsTheScrollPosition)
{
    show({{twoRanks()}});
    areas_.scroll = 13;
    EXPECT_EQ(at(3, 0, LaneId{1}).slice, (traces::SliceRef{LaneId{1}, 1}));
}

TEST_F(HitTest, FindsRepeatedStepsWhereTheyAreShown)
{
    show({{twoRanks({.unit = {kMs / 2}})}, {twoRanks({.label = traces::TraceLabel::Measured, .unit = {kMs / 2, kMs / 2}})}});
    // The second showing of the simulated F0 lies at 4.5 .. 5.
    const TimelineItem item = at(4.75, 0, LaneId{0});
    EXPECT_EQ(item.slice, (traces::SliceRef{LaneId{0}, 0}));
    EXPECT_EQ(item.segment, 1);
    EXPECT_EQ(scene_.shownSpan(item), (traces::Interval{4'500'000, 5 * kMs}));
}

TEST_F(HitTest, TellsAboutASlice)
{
    show({{twoRanks()}});
    const QString text = detailsHtml(detailsOf(scene_, at(5, 0, LaneId{0})));
    for (const char* part : {"0B0", "2 ms", "Stage", "Micro-batch", "4 ms"}) EXPECT_TRUE(text.contains(part)) << part;
    EXPECT_TRUE(detailsHtml(detailsOf(scene_, {})).isEmpty());
}

} // namespace
} // namespace stagecraft::ui
