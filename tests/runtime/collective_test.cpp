// SPDX-License-Identifier: Apache-2.0
//
// Collectives among replicas: what is divided how, what is summed in which order, and the threads that do it.
#include "engine/runtime/collective.h"
#include "engine/runtime/emulated_replicas.h"
#include "engine/runtime/gradient_buckets.h"
#include "engine/runtime/replica_part.h"
#include "engine/runtime/replica_sums.h"
#include "engine/runtime/replica_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

namespace stagecraft::runtime {
namespace {

using testing::ElementsAre;
using traces::ActionKind;
using traces::Step;

TEST(ReplicaPart, DividesEveryValueAmongTheReplicasInWholeVectors)
{
    for (const std::int64_t values : {0, 1, 15, 16, 17, 1000, 4096, 100'003})
        for (const int replicas : {1, 2, 3, 8}) {
            std::int64_t next = 0;
            for (int j = 0; j < replicas; ++j) {
                const PartRange part = partOf(values, j, replicas);
                EXPECT_EQ(part.begin, next);
                EXPECT_EQ(part.begin % kPartUnit, 0);
                EXPECT_LE(part.size(), values / replicas + replicas * kPartUnit);
                next = part.end;
            }
            EXPECT_EQ(next, values);
        }
    EXPECT_EQ(partOf(1000, 1, 2), (PartRange{496, 1000}));
}

// Two layers of a matrix and a bias each, 4 bytes a value.
TEST(GradientBuckets, FillFromTheLastParameterToTheFirst)
{
    const std::vector<std::vector<std::int64_t>> layers{{100, 10}, {50, 5}};
    EXPECT_THAT(gradientBuckets(layers, 1 << 20), ElementsAre(GradientBucket{{3, 2, 1, 0}, 0, 660}));
    EXPECT_THAT(gradientBuckets(layers, 200),
                ElementsAre(GradientBucket{{3, 2}, 1, 220}, GradientBucket{{1, 0}, 0, 440}));
    EXPECT_THAT(gradientBuckets(layers, 240), // the second is full with a parameter of the other layer
                ElementsAre(GradientBucket{{3, 2, 1}, 0, 260}, GradientBucket{{0}, 0, 400}));
    EXPECT_EQ(gradientBuckets(layers, 1).size(), 4U);
    EXPECT_TRUE(gradientBuckets({{}, {}}, 1).empty());
}

using Values = std::vector<std::vector<float>>; // by tensor

Values randomValues(std::uint32_t seed, const std::vector<std::size_t>& sizes)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values values;
    for (const std::size_t size : sizes) {
        values.emplace_back(size);
        for (float& value : values.back()) value = normal(random);
    }
    return values;
}

template <class Value>
std::vector<Collective::Values> spansOf(std::vector<std::vector<Value>>& values)
{
    std::vector<Collective::Values> spans;
    for (auto& tensor : values) spans.push_back(std::as_writable_bytes(std::span(tensor)));
    return spans;
}

std::vector<Collective::Member> membersOf(int replicas, const std::vector<Flow>& flows)
{
    std::vector<Collective::Member> members;
    for (int j = 0; j < replicas; ++j)
        for (const Flow flow : flows) members.push_back({Rank{static_cast<int>(members.size())}, {flow, Stage{0}}, j});
    return members;
}

const std::vector<std::size_t> kSizes{1, 16, 33, 5000};

// From the left, as the reference adds: the same bits in all copies.
TEST(Collective, SumsInTheOrderOfItsMembers)
{
    for (const int count : {2, 3, 5}) {
        Collective collective({ActionKind::AllReduce, Stage{0}, 0}, membersOf(count, {Flow::Single}), count);
        std::vector<Values> copies;
        for (int m = 0; m < count; ++m) copies.push_back(randomValues(static_cast<std::uint32_t>(m), kSizes));
        Values expected = copies.front();
        for (int m = 1; m < count; ++m)
            for (std::size_t t = 0; t < kSizes.size(); ++t)
                for (std::size_t i = 0; i < kSizes[t]; ++i) expected[t][i] += copies[static_cast<std::size_t>(m)][t][i];
        for (int m = count - 1; m >= 0; --m) // whoever comes first
            EXPECT_EQ(collective.give(static_cast<std::size_t>(m), spansOf(copies[static_cast<std::size_t>(m)])), m == 0);
        for (int m = 0; m < count; ++m) collective.work(static_cast<std::size_t>(m));
        for (const Values& copy : copies) EXPECT_EQ(copy, expected);
    }
}

TEST(Collective, LeavesEveryReplicaItsPartOfTheSum)
{
    Collective collective({ActionKind::ReduceGrad, Stage{0}, 0, Collective::Result::OwnPart}, membersOf(2, {Flow::Down, Flow::Up}), 2);
    std::vector<Values> copies;
    for (std::uint32_t m = 0; m < 4; ++m) copies.push_back(randomValues(m, kSizes));
    const std::vector<Values> before = copies;
    for (std::size_t m = 0; m < 4; ++m) collective.give(m, spansOf(copies[m]));
    for (std::size_t m = 0; m < 4; ++m) collective.work(m);
    for (std::size_t m = 0; m < 4; ++m)
        for (std::size_t t = 0; t < kSizes.size(); ++t) {
            const PartRange part = partOf(static_cast<std::int64_t>(kSizes[t]), static_cast<int>(m / 2), 2);
            for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i)
                ASSERT_EQ(copies[m][t][i], ((before[0][t][i] + before[1][t][i]) + before[2][t][i]) + before[3][t][i]);
        }
}

TEST(Collective, GathersWhatEachReplicaHasOfTheWhole)
{
    Collective collective({ActionKind::Unshard, Stage{0}, 0}, membersOf(3, {Flow::Single}), 3);
    const Values whole = randomValues(7, kSizes);
    std::vector<Values> copies;
    for (int m = 0; m < 3; ++m) {
        copies.push_back(randomValues(static_cast<std::uint32_t>(m), kSizes));
        for (std::size_t t = 0; t < kSizes.size(); ++t) {
            const PartRange part = partOf(static_cast<std::int64_t>(kSizes[t]), m, 3);
            std::copy(whole[t].begin() + part.begin, whole[t].begin() + part.end, copies.back()[t].begin() + part.begin);
        }
    }
    for (std::size_t m = 0; m < 3; ++m) collective.give(m, spansOf(copies[m]));
    for (std::size_t m = 0; m < 3; ++m) collective.work(m);
    for (const Values& copy : copies) EXPECT_EQ(copy, whole);
}

// As bfloat16 is, which nothing here knows: parts are counted in values.
TEST(Collective, GathersValuesOfTwoBytes)
{
    using Small = std::vector<std::vector<std::uint16_t>>;
    Collective collective({ActionKind::Unshard, Stage{0}, 0, Collective::Result::All, 2}, membersOf(2, {Flow::Single}), 2);
    Small whole;
    for (const std::size_t size : kSizes) {
        whole.emplace_back(size);
        std::iota(whole.back().begin(), whole.back().end(), std::uint16_t{1});
    }
    std::vector<Small> copies;
    for (int m = 0; m < 2; ++m) {
        copies.push_back(whole);
        for (std::vector<std::uint16_t>& tensor : copies.back()) {
            const PartRange part = partOf(static_cast<std::int64_t>(tensor.size()), m, 2);
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(tensor.size()); ++i)
                if (i < part.begin || i >= part.end) tensor[static_cast<std::size_t>(i)] = 0;
        }
    }
    for (std::size_t m = 0; m < 2; ++m) collective.give(m, spansOf(copies[m]));
    for (std::size_t m = 0; m < 2; ++m) collective.work(m);
    for (const Small& copy : copies) EXPECT_EQ(copy, whole);
}

// Two buckets of stage 0, one of stage 1.
ReplicaSums someSums(const Schedule& schedule, int replicas, ReplicaSums::Update update)
{
    std::vector<std::vector<GradientBucket>> buckets(static_cast<std::size_t>(schedule.stages()), {{{0}, 0, 64}});
    buckets.front() = {{{2}, 1, 40}, {{1, 0}, 0, 80}};
    return ReplicaSums({.schedule = schedule, .replicas = replicas, .update = update, .buckets = buckets});
}

TEST(ReplicaSums, NameTheCopiesOfEachStageReplicaByReplica)
{
    const Schedule schedule = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = 2}).value();
    const ReplicaSums sums = someSums(schedule, 3, ReplicaSums::Update::Divided);
    const std::vector<Turn>& turns = sums.gradients(1, {Flow::Single, Stage{0}});
    ASSERT_EQ(turns.size(), 2U);
    EXPECT_EQ(turns[0].layer, 1);
    EXPECT_EQ(turns[1].collective->kind().bytes, 80);
    EXPECT_EQ(turns[0].member, 1U);
    std::vector<int> ranks;
    for (const Collective::Member& member : sums.gradients(0, {Flow::Single, Stage{1}})[0].collective->members()) ranks.push_back(member.rank.value);
    EXPECT_THAT(ranks, ElementsAre(1, 3, 5));
    EXPECT_EQ(sums.weights(2, {Flow::Single, Stage{0}})[0].parameters.size(), 3U);
    EXPECT_TRUE(someSums(schedule, 3, ReplicaSums::Update::Whole).weights(2, {Flow::Single, Stage{0}}).empty());
}

TEST(ReplicaSums, SumBothDirectionsOfAllReplicas)
{
    const Schedule schedule = engine::generate({.name = "chimera", .ranks = 2, .microbatches = 2}).value();
    const ReplicaSums sums = someSums(schedule, 2, ReplicaSums::Update::Divided);
    const Collective& one = *sums.gradients(1, {Flow::Up, Stage{0}})[0].collective;
    std::vector<int> ranks;
    for (const Collective::Member& member : one.members()) ranks.push_back(member.rank.value);
    EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3)); // down, up, down, up
    EXPECT_EQ(sums.weights(0, {Flow::Up, Stage{0}})[0].collective->members().size(), 2U); // weights are gathered within a direction
}

// Many ranks give in any order, again and again; each has the whole sum when its wait is over.
TEST(ReplicaThreads, SumWhileTheRanksGoOn)
{
    constexpr int kReplicas = 3;
    constexpr int kSteps = 50;
    const Schedule schedule = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = 2}).value();
    const ReplicaSums sums = someSums(schedule, kReplicas, ReplicaSums::Update::Whole);
    std::atomic<int> parts{0};
    std::atomic<int> left{0};
    CollectiveWork onCpu;
    ReplicaThreads threads(2 * kReplicas, monotonicClock(), onCpu,
                           {.enter = [](Rank) { return true; },
                            .rest = [](Rank) {},
                            .done =
                                [&](const Collective&, std::size_t, const CollectiveSpan& span) {
                                    EXPECT_LE(span.ready, span.begin);
                                    EXPECT_LE(span.begin, span.end);
                                    ++parts;
                                },
                            .leave = [&](Rank) { ++left; }});
    for (int r = 0; r < 2 * kReplicas; ++r) threads.start(Rank{r});
    {
        std::vector<std::jthread> ranks;
        for (int j = 0; j < kReplicas; ++j)
            for (int s = 0; s < 2; ++s)
                ranks.emplace_back([&, j, s] {
                    const std::vector<Turn>& turns = sums.gradients(j, {Flow::Single, Stage{s}});
                    for (int step = 0; step < kSteps; ++step) {
                        std::vector<Values> own;
                        for (std::size_t b = 0; b < turns.size(); ++b) own.push_back({std::vector<float>(100, static_cast<float>(step + j))});
                        for (std::size_t b = 0; b < turns.size(); ++b) threads.give(turns[b], Step{step}, spansOf(own[b]));
                        ASSERT_TRUE(threads.wait(turns));
                        for (const Values& values : own)
                            for (const float value : values[0]) ASSERT_EQ(value, static_cast<float>(3 * step + 3));
                    }
                });
    }
    EXPECT_EQ(parts, kSteps * 3 * kReplicas); // three buckets
    threads.cancel();
    EXPECT_FALSE(threads.wait(sums.gradients(0, {Flow::Single, Stage{0}})));
}

Schedule gathering() { return engine::parseSchedule("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n").value(); }

TEST(ReplicaSums, GatherWhereTheScheduleSaysSo)
{
    const Schedule schedule = gathering();
    const Place place{Flow::Single, Stage{0}};
    const ReplicaSums sums({.schedule = schedule, .replicas = 2, .update = ReplicaSums::Update::Divided, .result = ReplicaSums::Result::OwnPart,
                            .buckets = {{{{1, 0}, 0, 80}}}});
    EXPECT_TRUE(sums.byActions());
    EXPECT_TRUE(sums.weights(0, place).empty()); // not behind the update as well
    ASSERT_EQ(sums.gathers(1, place).size(), 1U);
    EXPECT_EQ(sums.gathers(1, place)[0].collective->kind().action, ActionKind::Unshard);
    EXPECT_FALSE(sums.isLastSum(*sums.gathers(1, place)[0].collective));
    EXPECT_TRUE(sums.isLastSum(*sums.gradients(1, place)[0].collective));
    EXPECT_EQ(sums.gradients(1, place)[0].collective->kind().action, ActionKind::ReduceGrad);
}

// Several times in a step: a member that gives again waits for the next one, and the other still has the last.
TEST(ReplicaThreads, GatherAgainWithinAStep)
{
    const Schedule schedule = gathering();
    const ReplicaSums sums({.schedule = schedule, .replicas = 2, .buckets = {{{{0}, 0, 80}}}});
    std::atomic<int> whole{0};
    CollectiveWork onCpu;
    ReplicaThreads threads(2, monotonicClock(), onCpu,
                           {.enter = [](Rank) { return true; }, .rest = [](Rank) {}, .done = [](const Collective&, std::size_t, const CollectiveSpan&) {},
                            .whole = [&](const Collective&) { ++whole; }, .leave = [](Rank) {}});
    threads.start(Rank{0});
    threads.start(Rank{1});
    const std::vector<Turn>& first = sums.gathers(0, {Flow::Single, Stage{0}});
    const std::vector<Turn>& second = sums.gathers(1, {Flow::Single, Stage{0}});
    EXPECT_FALSE(threads.done(first));
    Values one{std::vector<float>(32, 1.0F)};
    Values two{std::vector<float>(32, 2.0F)};
    threads.give(first[0], Step{0}, spansOf(one));
    EXPECT_FALSE(threads.done(second)); // has not given
    threads.give(second[0], Step{0}, spansOf(two));
    ASSERT_TRUE(threads.wait(first));
    ASSERT_TRUE(threads.wait(second));
    EXPECT_EQ(whole, 1);
    threads.give(first[0], Step{0}, spansOf(one));
    EXPECT_FALSE(threads.done(first));
    EXPECT_TRUE(threads.done(second));
    threads.give(second[0], Step{0}, spansOf(two));
    ASSERT_TRUE(threads.wait(first));
    EXPECT_EQ(whole, 2);
    EXPECT_EQ(one, two);
}

TEST(EmulatedReplicas, GatherAgainWithinAStep)
{
    const Schedule schedule = gathering();
    const ReplicaSums sums({.schedule = schedule, .replicas = 2, .buckets = {{{{0}, 0, 80}}}});
    engine::MachineModel machine;
    machine.replica = {.latency = 10, .bytesPerSecond = 0};
    CollectiveWork onCpu;
    EmulatedReplicas emulated(machine, 2, onCpu);
    const auto record = [](const Collective&, std::size_t, const CollectiveSpan&) {};
    const std::vector<Turn>& first = sums.gathers(0, {Flow::Single, Stage{0}});
    const std::vector<Turn>& second = sums.gathers(1, {Flow::Single, Stage{0}});
    Values one{std::vector<float>(32, 1.0F)};
    Values two{std::vector<float>(32, 2.0F)};
    const auto give = [&](const std::vector<Turn>& turns, traces::TimeNs at, Values& values) {
        emulated.give(turns[0], Step{0}, at, spansOf(values));
        emulated.settle(record);
    };
    give(first, 0, one);
    EXPECT_FALSE(emulated.doneAt(first));
    give(second, 5, two);
    EXPECT_EQ(emulated.doneAt(first), 15);
    give(first, 20, one);
    EXPECT_FALSE(emulated.doneAt(first));
    EXPECT_EQ(emulated.doneAt(second), 15); // goes on with what it has
    give(second, 40, two);
    EXPECT_EQ(emulated.doneAt(second), 50);
    EXPECT_EQ(one, two);
    int ended = 0;
    emulated.endUntil(1'000, [&](const Collective&, traces::TimeNs) { ++ended; });
    EXPECT_EQ(ended, 0); // no sums among them
}

TEST(ReplicaThreads, EndWhereARankNeverComes)
{
    const Schedule schedule = engine::generate({.name = "1f1b", .ranks = 1, .microbatches = 2}).value();
    const ReplicaSums sums = someSums(schedule, 2, ReplicaSums::Update::Whole);
    CollectiveWork onCpu;
    ReplicaThreads threads(2, monotonicClock(), onCpu,
                           {.enter = [](Rank) { return true; }, .rest = [](Rank) {}, .done = [](const Collective&, std::size_t, const CollectiveSpan&) {},
                            .leave = [](Rank) {}});
    threads.start(Rank{0});
    const std::vector<Turn>& turns = sums.gradients(0, {Flow::Single, Stage{0}});
    Values own{std::vector<float>(4, 1.0F)};
    threads.give(turns[0], Step{0}, spansOf(own));
    std::jthread ending([&] { threads.cancel(); });
    EXPECT_FALSE(threads.wait(turns));
}

// Two replicas, 80 bytes at a byte a nanosecond, 10 ns of latency: 2 (10 + 40). The second one gives at 30, and the first bucket is
// before on the same rank.
TEST(EmulatedReplicas, TakeTheTimeOfTheirRings)
{
    const Schedule schedule = engine::generate({.name = "1f1b", .ranks = 1, .microbatches = 2}).value();
    const ReplicaSums sums = someSums(schedule, 2, ReplicaSums::Update::Whole);
    engine::MachineModel machine;
    machine.replicas = 2;
    machine.replica = {.latency = 10, .bytesPerSecond = 1e9};
    CollectiveWork onCpu;
    EmulatedReplicas emulated(machine, 2, onCpu);
    std::vector<std::array<traces::TimeNs, 3>> spans;
    const auto record = [&](const Collective&, std::size_t member, const CollectiveSpan& span) {
        if (member == 0) spans.push_back({span.begin, span.end, span.last.value});
    };
    std::vector<Values> values(4, Values{std::vector<float>(8, 1.0F)});
    std::size_t next = 0;
    for (int j = 0; j < 2; ++j)
        for (const Turn& turn : sums.gradients(j, {Flow::Single, Stage{0}})) {
            EXPECT_FALSE(emulated.doneAt({turn}));
            emulated.give(turn, Step{0}, j == 0 ? 0 : 30, spansOf(values[next++]));
            emulated.settle(record);
        }
    EXPECT_THAT(spans, ElementsAre(ElementsAre(30, 30 + 60, 1), ElementsAre(90, 90 + 100, 1)));
    EXPECT_EQ(emulated.doneAt(sums.gradients(0, {Flow::Single, Stage{0}})), 190);
    for (const Values& each : values) EXPECT_THAT(each[0], testing::Each(2.0F));
}

} // namespace
} // namespace stagecraft::runtime
