// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_join.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using traces::Interval;
using traces::TimeNs;

constexpr TimeNs kSecond = 1'000'000'000;

KernelActivity kernel(std::uint32_t correlation, Interval span = {100, 200}, bool ofGraph = false)
{
    return {.span = span, .place = {}, .correlation = correlation, .ofGraph = ofGraph};
}
ApiActivity call(std::uint32_t correlation, Interval span = {10, 20}) { return {.span = span, .correlation = correlation}; }
CorrelationActivity mark(std::uint32_t correlation, WorkId id) { return {.correlation = correlation, .id = id}; }

std::vector<JoinedActivity> kernelsOf(const std::vector<JoinedActivity>& joined)
{
    std::vector<JoinedActivity> out;
    std::copy_if(joined.begin(), joined.end(), std::back_inserter(out),
                 [](const JoinedActivity& each) { return std::holds_alternative<KernelActivity>(each.activity); });
    return out;
}

TEST(Join, FindsIdAndCallInAnyOrder)
{
    std::vector<DeviceActivity> records{mark(5, 77), call(5), kernel(5)};
    std::vector<int> order{0, 1, 2};
    do {
        ActivityJoin join;
        std::vector<JoinedActivity> out;
        for (const int each : order) join.add(records[static_cast<std::size_t>(each)], out);
        EXPECT_THAT(kernelsOf(out), ElementsAre(JoinedActivity{kernel(5), 77, Interval{10, 20}}));
        EXPECT_EQ(join.unattributed(), 0);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Join, WaitsForNoCallWhereNoneAreRecorded)
{
    ActivityJoin join({.calls = false});
    std::vector<JoinedActivity> out;
    join.add(kernel(5), out);
    EXPECT_THAT(out, IsEmpty());
    join.add(mark(5, 77), out);
    EXPECT_THAT(out, ElementsAre(JoinedActivity{kernel(5), 77, std::nullopt}));
}

TEST(Join, HandsOnAtOnceWhatHasNoLaunch)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(SyncActivity{.span = {1, 2}, .correlation = 5}, out);
    join.add(OverheadActivity{.span = {1, 2}, .correlation = 5}, out);
    EXPECT_THAT(out, SizeIs(2));
    EXPECT_EQ(join.waiting(), 0U);
    EXPECT_EQ(join.unattributed(), 0);
}

// In any order: the id, the call that allocates, and what it allocated.
TEST(Join, PutsAnAllocationTogetherWithItsMarkAndCall)
{
    const MemoryActivity memory{.at = 15, .place = {}, .correlation = 5, .bytes = 64};
    const ApiActivity call{.span = {10, 20}, .correlation = 5};
    std::vector<DeviceActivity> records{memory, call, mark(5, 77)};
    std::vector<std::size_t> order{0, 1, 2};
    do {
        ActivityJoin join({.calls = true});
        std::vector<JoinedActivity> out;
        for (const std::size_t i : order) join.add(records[i], out);
        EXPECT_THAT(out, testing::UnorderedElementsAre(JoinedActivity{memory, 77, traces::Interval{10, 20}}, JoinedActivity{call, 77, traces::Interval{10, 20}}));
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Join, GivesUpAnAllocationThatNobodyMarkedAndCountsItAsNoKernel)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(MemoryActivity{.at = 1, .place = {}, .correlation = 5}, out);
    EXPECT_THAT(out, IsEmpty());
    join.finish(out);
    EXPECT_THAT(out, SizeIs(1));
    EXPECT_EQ(join.unattributed(), 0);
}

TEST(Join, GivesUpAKernelAfterTimeAndFlushes)
{
    ActivityJoin join({.patience = kSecond, .patienceFlushes = 3});
    std::vector<JoinedActivity> out;
    TimeNs now = 50 * kSecond; // the first flush tells the time
    join.add(kernel(5), out);
    join.flushed(now, out);
    join.flushed(now + kSecond / 2, out);
    join.flushed(now + kSecond / 2, out); // enough flushes, not enough time
    join.flushed(now + kSecond / 2, out);
    EXPECT_THAT(out, IsEmpty());
    join.add(kernel(6), out);
    join.flushed(now + 2 * kSecond, out); // 5: both; 6: enough time, not enough flushes
    EXPECT_THAT(out, ElementsAre(JoinedActivity{kernel(5), kNoWork, std::nullopt}));
    EXPECT_EQ(join.unattributed(), 1);
    join.flushed(now + 3 * kSecond, out);
    EXPECT_THAT(out, SizeIs(1));
    join.flushed(now + 3 * kSecond, out);
    EXPECT_THAT(out, SizeIs(2));
    EXPECT_EQ(join.unattributed(), 2);
    EXPECT_EQ(join.waiting(), 0U);
}

TEST(Join, AttributesAKernelWhoseCallNeverCame)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(kernel(5), out);
    join.add(mark(5, 77), out);
    EXPECT_THAT(out, IsEmpty());
    join.finish(out);
    EXPECT_THAT(out, ElementsAre(JoinedActivity{kernel(5), 77, std::nullopt}));
    EXPECT_EQ(join.unattributed(), 0);
}

// The host runs ahead of the device: an id waits for its kernel longer than a kernel for its id.
TEST(Join, KeepsTheIdOfWhatIsStillQueued)
{
    ActivityJoin join({.patience = kSecond, .patienceFlushes = 3, .queued = 60 * kSecond});
    std::vector<JoinedActivity> out;
    join.add(mark(5, 77), out);
    join.add(call(5), out);
    for (int flush = 0; flush < 30; ++flush) join.flushed(flush * kSecond, out);
    join.add(kernel(5), out);
    EXPECT_THAT(kernelsOf(out), ElementsAre(JoinedActivity{kernel(5), 77, Interval{10, 20}}));
    for (int flush = 30; flush < 34; ++flush) join.flushed(flush * kSecond, out);
    EXPECT_EQ(join.waiting(), 0U); // had its kernel

    join.add(mark(6, 78), out);
    for (int flush = 34; flush < 96; ++flush) join.flushed(flush * kSecond, out);
    EXPECT_EQ(join.waiting(), 0U); // had none for a minute
}

TEST(Join, GivesAllKernelsOfAGraphTheIdOfItsLaunch)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(kernel(5, {100, 110}, true), out);
    join.add(mark(5, 77), out);
    join.add(call(5), out);
    for (int flush = 0; flush < 20; ++flush) join.flushed(flush * kSecond, out);
    join.add(kernel(5, {20 * kSecond, 21 * kSecond}, true), out);
    EXPECT_THAT(kernelsOf(out), SizeIs(2));
    for (const JoinedActivity& each : kernelsOf(out)) EXPECT_EQ(each.work, 77U);
}

TEST(Join, TakesADriversCallIntoTheOneThatMadeIt)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(call(5, {12, 18}), out);
    join.add(call(5, {10, 20}), out);
    join.add(mark(5, 77), out);
    join.add(kernel(5), out);
    EXPECT_THAT(kernelsOf(out), ElementsAre(JoinedActivity{kernel(5), 77, Interval{10, 20}}));
}

// 2^32 launches later the numbers come again.
TEST(Join, GivesANumberThatComesRoundToTheLaterLaunch)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    join.add(mark(5, 77), out);
    join.add(call(5, {10, 20}), out);
    join.add(mark(5, 88), out);
    join.add(call(5, {1'000, 1'010}), out);
    join.add(kernel(5, {2'000, 2'100}), out);
    EXPECT_THAT(kernelsOf(out), ElementsAre(JoinedActivity{kernel(5, {2'000, 2'100}), 88, Interval{1'000, 1'010}}));
}

TEST(Join, KeepsNoMoreThanItMay)
{
    ActivityJoin join({.most = 10});
    std::vector<JoinedActivity> out;
    for (std::uint32_t c = 0; c < 100; ++c) join.add(mark(c, c + 1), out);
    EXPECT_EQ(join.waiting(), 10U);
    join.add(kernel(99), out);
    for (std::uint32_t c = 100; c < 200; ++c) join.add(kernel(c), out);
    EXPECT_EQ(join.waiting(), 10U);
    join.finish(out);
    // 100..199 had no id; 99 had one and missed its call
    EXPECT_THAT(out, SizeIs(101));
    EXPECT_EQ(join.unattributed(), 100);
}

// --- any order, cut into any buffers, over the wrap ---------------------------------------------------------------------

struct Launches {
    std::vector<DeviceActivity> records;
    std::vector<JoinedActivity> expected; // of kernels and copies
};

Launches launchesFrom(std::mt19937& random, std::uint32_t first, std::uint32_t count)
{
    Launches out;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t correlation = first + i; // wraps
        const TimeNs at = TimeNs{i} * 1'000;
        const bool marked = random() % 8 != 0;
        const bool called = random() % 8 != 0;
        const WorkId id = marked ? 1'000 + i : kNoWork;
        if (marked) out.records.push_back(mark(correlation, id));
        if (called) out.records.push_back(call(correlation, {at, at + 5}));
        const bool graph = random() % 10 == 0;
        const auto kernels = graph ? random() % 5 : random() % 6 == 0 ? 0 : 1;
        for (TimeNs k = 0; k < static_cast<TimeNs>(kernels); ++k) {
            const Interval span{at + 100 + k, at + 101 + k};
            const DeviceActivity work = random() % 3 == 0
                                            ? DeviceActivity(CopyActivity{.span = span, .place = {}, .correlation = correlation, .ofGraph = graph})
                                            : DeviceActivity(kernel(correlation, span, graph));
            out.records.push_back(work);
            out.expected.push_back({work, id, called ? std::optional(Interval{at, at + 5}) : std::nullopt});
        }
    }
    return out;
}

TimeNs beginOf(const JoinedActivity& joined)
{
    return std::visit(
        [](const auto& each) -> TimeNs {
            if constexpr (requires { each.span; }) return each.span.begin;
            else return 0;
        },
        joined.activity);
}

TEST(Join, IsTheSameForEveryOrderAndEveryCut)
{
    std::mt19937 random(99);
    for (int round = 0; round < 60; ++round) {
        Launches launches = launchesFrom(random, static_cast<std::uint32_t>(0xffff'ff80U + random() % 64), 300);
        std::shuffle(launches.records.begin(), launches.records.end(), random);
        ActivityJoin join({.patience = kSecond, .patienceFlushes = 4});
        std::vector<JoinedActivity> out;
        TimeNs now = kSecond * 1'000;
        for (const DeviceActivity& each : launches.records) {
            join.add(each, out);
            if (random() % 40 == 0) join.flushed(now += 1'000'000, out); // all come well within a kernel's patience
        }
        join.finish(out);
        std::erase_if(out, [](const JoinedActivity& each) { return std::holds_alternative<ApiActivity>(each.activity); });
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return beginOf(a) < beginOf(b); });
        ASSERT_EQ(out, launches.expected);
        ASSERT_EQ(join.unattributed(), std::count_if(out.begin(), out.end(), [](const auto& each) { return each.work == kNoWork; }));
    }
}

// A run as long as one likes takes no more memory.
TEST(Join, ForgetsWhatIsDone)
{
    ActivityJoin join;
    std::vector<JoinedActivity> out;
    std::size_t most = 0;
    for (std::uint32_t c = 0; c < 100'000; ++c) {
        join.add(mark(c, 1), out);
        join.add(call(c), out);
        if (c % 1'000 != 0) join.add(kernel(c), out); // some never come
        if (c % 100 == 0) {
            join.flushed(TimeNs{c} * 10'000'000, out);
            out.clear();
        }
        most = std::max(most, join.waiting());
    }
    EXPECT_LT(most, 1'000U);
}

} // namespace

} // namespace stagecraft::runtime
