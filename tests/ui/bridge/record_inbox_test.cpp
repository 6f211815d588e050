// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/record_inbox.h"

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using namespace traces;

Record sliceOn(std::uint32_t lane) { return SliceRecord{LaneId{lane}, Slice{}}; }
Record edgeInto(std::uint32_t lane) { return EdgeRecord{Edge{.to = SliceRef{LaneId{lane}, 0}}}; }

TEST(RecordInbox, GivesWhatCameInOrderAndIsEmptyAfterwards)
{
    RecordInbox inbox;
    inbox.push({InfoRecord{}, sliceOn(0)});
    inbox.push({sliceOn(1)});
    const RecordInbox::Contents contents = inbox.take();
    EXPECT_THAT(contents.records, testing::ElementsAre(Record{InfoRecord{}}, sliceOn(0), sliceOn(1)));
    EXPECT_EQ(contents.lost, 0);
    EXPECT_TRUE(inbox.take().records.empty());
}

TEST(RecordInbox, CountsEventsBeyondItsCapacityAndKeepsWhatTheSessionSays)
{
    RecordInbox inbox(2);
    inbox.push({sliceOn(0), sliceOn(0), sliceOn(0), MemoryRecord{}, SessionRecord{"{}"}, StepRecord{}});
    const RecordInbox::Contents contents = inbox.take();
    EXPECT_EQ(contents.lost, 2);
    EXPECT_THAT(contents.records, testing::ElementsAre(sliceOn(0), sliceOn(0), Record{SessionRecord{"{}"}}, Record{StepRecord{}}));
    EXPECT_EQ(inbox.take().lost, 0);
}

TEST(RecordInbox, GivesALaneThatLostASliceNoEdgesUntilTheNextRun)
{
    RecordInbox inbox(1);
    inbox.push({sliceOn(0), sliceOn(1)}); // lane 1 loses its slice
    EXPECT_EQ(inbox.take().lost, 1);
    inbox.push({edgeInto(1)});
    EXPECT_EQ(inbox.take().lost, 1);
    inbox.push({edgeInto(0)});
    EXPECT_EQ(inbox.take().records.size(), 1U);
    inbox.beginRun();
    inbox.push({edgeInto(1)});
    EXPECT_EQ(inbox.take().records.size(), 1U);
}

} // namespace
} // namespace stagecraft::ui
