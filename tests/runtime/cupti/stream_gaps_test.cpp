// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/stream_gaps.h"

#include <gmock/gmock.h>

#include <random>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using traces::Interval;
using traces::TimeNs;

StreamWork work(Interval span, TimeNs called) { return {.span = span, .call = Interval{called, called + 5}}; }

TEST(StreamGaps, AreTheHostsWhereItCalledTooLate)
{
    EXPECT_THAT(gapsOf({work({100, 200}, 10), work({260, 300}, 250)}),
                ElementsAre(StreamGap{.gap = {200, 260}, .byHost = 50, .byLaunch = 10}));
}

TEST(StreamGaps, AreTheDevicesWhereTheWorkWasThere)
{
    EXPECT_THAT(gapsOf({work({100, 200}, 10), work({203, 300}, 20)}), ElementsAre(StreamGap{.gap = {200, 203}, .byDevice = 3}));
}

TEST(StreamGaps, AreAWaitWhereTheStreamWasToldTo)
{
    EXPECT_THAT(gapsOf({work({100, 200}, 10), work({900, 950}, 20)}, {15}), ElementsAre(StreamGap{.gap = {200, 900}, .byWait = 700}));
    // told after the host was late already
    EXPECT_THAT(gapsOf({work({100, 200}, 10), work({900, 950}, 300)}, {290}),
                ElementsAre(StreamGap{.gap = {200, 900}, .byHost = 100, .byWait = 600}));
    // a wait for the work before, or after
    EXPECT_THAT(gapsOf({work({100, 200}, 10), work({900, 950}, 20)}, {5, 25}), ElementsAre(StreamGap{.gap = {200, 900}, .byDevice = 700}));
}

TEST(StreamGaps, HaveNoCauseWhereTheCallIsNotKnown)
{
    const std::vector<StreamGap> gaps = gapsOf({{.span = {100, 200}, .call = {}}, {.span = {250, 300}, .call = {}}});
    EXPECT_THAT(gaps, ElementsAre(StreamGap{.gap = {200, 250}, .notKnown = 50}));
    EXPECT_THAT(partsOf(gaps.front()), IsEmpty());
}

TEST(StreamGaps, HavePartsInTheOrderOfTime)
{
    using traces::StreamGapCause;
    const auto parts = [](TimeNs called, std::vector<TimeNs> waits = {}) { return partsOf(gapsOf({work({100, 200}, 10), work({260, 300}, called)}, std::move(waits)).front()); };
    EXPECT_THAT(parts(250), ElementsAre(GapPart{{200, 250}, StreamGapCause::Host}, GapPart{{250, 260}, StreamGapCause::Launch}));
    EXPECT_THAT(parts(230, {220}), ElementsAre(GapPart{{200, 230}, StreamGapCause::Host}, GapPart{{230, 260}, StreamGapCause::Event}));
    EXPECT_THAT(parts(150), ElementsAre(GapPart{{200, 260}, StreamGapCause::Device}));
    EXPECT_THAT(parts(260), ElementsAre(GapPart{{200, 260}, StreamGapCause::Host})) << "no time was left for the launch";
}

TEST(StreamGaps, AreNoneWithinWorkThatOverlaps)
{
    EXPECT_THAT(gapsOf({}), IsEmpty());
    EXPECT_THAT(gapsOf({work({150, 160}, 20), work({100, 200}, 10), work({200, 210}, 30)}), IsEmpty());
}

TEST(StreamGaps, HavePartsThatAddUp)
{
    std::mt19937 random(8);
    const auto any = [&](unsigned most) { return static_cast<TimeNs>(random() % most); };
    for (int round = 0; round < 500; ++round) {
        std::vector<StreamWork> works;
        std::vector<TimeNs> waits;
        for (int i = 0; i < 30; ++i) {
            const TimeNs begin = 1'000 + any(1'000);
            StreamWork each{.span = {begin, begin + any(40)}, .call = {}};
            if (any(4) != 0) each.call = Interval{begin - any(300), begin};
            works.push_back(each);
            if (any(3) == 0) waits.push_back(800 + any(1'300));
        }
        TimeNs idle = 0;
        TimeNs busyUntil = 0;
        for (const StreamGap& gap : gapsOf(works, waits)) {
            EXPECT_EQ(gap.byHost + gap.byWait + gap.byLaunch + gap.byDevice + gap.notKnown, gap.gap.length());
            EXPECT_GE(std::min({gap.byHost, gap.byWait, gap.byLaunch, gap.byDevice, gap.notKnown}), 0);
            TimeNs parts = 0;
            for (const GapPart& part : partsOf(gap)) {
                EXPECT_EQ(part.span.begin, gap.gap.begin + parts);
                parts += part.span.length();
            }
            EXPECT_EQ(parts, gap.gap.length() - gap.notKnown);
            EXPECT_GE(gap.gap.begin, busyUntil); // equal: only work that took no time lies between two gaps
            busyUntil = gap.gap.end;
            idle += gap.gap.length();
        }
        std::vector<bool> busy(2'100, false);
        TimeNs first = 3'000;
        TimeNs last = 0;
        for (const StreamWork& each : works) {
            for (TimeNs t = each.span.begin; t < each.span.end; ++t) busy[static_cast<std::size_t>(t)] = true;
            first = std::min(first, each.span.begin);
            last = std::max(last, each.span.end);
        }
        EXPECT_EQ(idle, std::count(busy.begin() + first, busy.begin() + last, false));
    }
}

TEST(CopyOverlap, IsTheTimeThatBothAreAtWork)
{
    std::mt19937 random(21);
    const auto intervals = [&] {
        std::vector<Interval> out;
        for (unsigned i = 0; i < random() % 20; ++i) {
            const auto begin = static_cast<TimeNs>(random() % 500);
            out.push_back({begin, begin + static_cast<TimeNs>(random() % 60)});
        }
        return out;
    };
    for (int round = 0; round < 500; ++round) {
        const std::vector<Interval> kernels = intervals();
        const std::vector<Interval> copies = intervals();
        CopyOverlap expected;
        for (TimeNs t = 0; t < 600; ++t) {
            const auto at = [t](const Interval& each) { return each.begin <= t && t < each.end; };
            const bool computes = std::any_of(kernels.begin(), kernels.end(), at);
            const bool copying = std::any_of(copies.begin(), copies.end(), at);
            expected.compute += computes;
            expected.copy += copying;
            expected.hidden += computes && copying;
        }
        EXPECT_EQ(overlapOf(kernels, copies), expected);
    }
}

TEST(CopyOverlap, IsOfOneDevice)
{
    const auto at = [](std::uint32_t device, std::uint32_t stream) { return DevicePlace{.device = device, .context = 1, .stream = stream}; };
    const std::vector<JoinedActivity> joined{
        {KernelActivity{.span = {0, 100}, .place = at(0, 7)}, kNoWork, std::nullopt},
        {KernelActivity{.span = {0, 100}, .place = at(1, 7)}, kNoWork, std::nullopt},
        {CopyActivity{.span = {50, 150}, .place = at(0, 8)}, kNoWork, std::nullopt},
        {PeerCopyActivity{.span = {10, 20}, .place = at(0, 9), .from = 0, .to = 1}, kNoWork, std::nullopt},
        {MemsetActivity{.span = {0, 500}, .place = at(0, 7)}, kNoWork, std::nullopt}, // neither
    };
    EXPECT_EQ(overlapOn(joined, 0), (CopyOverlap{.compute = 100, .copy = 110, .hidden = 60}));
    EXPECT_EQ(overlapOn(joined, 1), (CopyOverlap{.compute = 100, .copy = 10, .hidden = 10}));
}

TEST(StreamWorks, AreThoseOfTheStream)
{
    const DevicePlace place{.device = 0, .context = 1, .stream = 7};
    const std::vector<JoinedActivity> joined{
        {KernelActivity{.span = {0, 100}, .place = place}, kNoWork, Interval{1, 2}},
        {CopyActivity{.span = {100, 150}, .place = {.device = 0, .context = 1, .stream = 8}}, kNoWork, std::nullopt},
        {SyncActivity{.span = {30, 31}, .context = 1, .stream = 7, .sync = SyncKind::StreamWait}, kNoWork, std::nullopt},
        {SyncActivity{.span = {40, 41}, .context = 1, .stream = 7, .sync = SyncKind::Stream}, kNoWork, std::nullopt},
        {SyncActivity{.span = {50, 51}, .context = 2, .stream = 7, .sync = SyncKind::StreamWait}, kNoWork, std::nullopt},
    };
    EXPECT_THAT(worksOf(joined, place), SizeIs(1));
    EXPECT_THAT(waitsOf(joined, place), ElementsAre(30));
}

} // namespace

} // namespace stagecraft::runtime
