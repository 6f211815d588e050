// SPDX-License-Identifier: Apache-2.0
//
// Activations that leave their rank for a while: BPipe's, which go to a partner, and those of any schedule that go to the host.
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

std::string lineOf(const engine::Schedule& schedule, int rank)
{
    std::string text;
    for (const engine::Action& action : schedule.order[static_cast<std::size_t>(rank)]) text += (text.empty() ? "" : ",") + toText(action);
    return text;
}

engine::Schedule offloaded(const char* name, int p, int m, double share, int v = 1)
{
    return engine::generate({.name = name, .ranks = p, .chunks = v, .microbatches = m, .offload = share}).value();
}

double largestPeak(const traces::StepFigures& figures)
{
    double most = 0;
    for (const traces::RankFigures& rank : figures.ranks) most = std::max(most, rank.peakActivations);
    return most;
}

TEST(BPipe, HandsOverWhatIsNeededLast)
{
    const engine::Schedule schedule = made("bpipe", 4, 8);
    EXPECT_EQ(lineOf(schedule, 0), "0F0,0F1,0F2,0OFFLOAD2,0F3,0B0,0F4,0OFFLOAD4,0B1,0RELOAD2,0F5,0B2,0F6,0OFFLOAD6,0B3,0RELOAD4,0F7,0B4,"
                                   "0RELOAD6,0B5,0B6,0B7");
    for (int r = 1; r < 4; ++r) EXPECT_EQ(lineOf(schedule, r), lineOf(made("1f1b", 4, 8), r));
    EXPECT_THAT(engine::toText(schedule), ::testing::StartsWith("# offload to partner\n"));
    EXPECT_EQ(engine::parseSchedule(engine::toText(schedule), "bpipe").value(), schedule);
    const engine::Schedule lowered = engine::lowerCommunication(schedule).value();
    EXPECT_TRUE(engine::validate(lowered, {.send = engine::SendMode::Rendezvous}).legal());
}

// The bound of the paper, with what a partner keeps, and the makespan of 1F1B where copies hide.
TEST(BPipe, HoldsNoMoreThanItsBoundOnAnyRank)
{
    for (int p = 1; p <= 9; ++p)
        for (const int m : {1, 3, p, 2 * p + 1, 4 * p}) {
            SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches");
            const engine::Schedule schedule = made("bpipe", p, m);
            ASSERT_TRUE(engine::validate(schedule).legal());
            engine::CostTable costs = slotCosts(p, kSlot, 2 * kSlot);
            for (engine::StageCosts& stage : costs.stages) stage.activationBytes = 1000;
            const traces::StepFigures figures = figuresOf(schedule, costs);
            const int bound = (p + 3) / 2; // ceil((p + 2) / 2)
            EXPECT_LE(largestPeak(figures), bound);
            for (const traces::RankFigures& rank : figures.ranks) {
                EXPECT_LE(rank.peakMemory, bound * 1000);
                EXPECT_EQ(static_cast<double>(rank.peakMemory), rank.peakActivations * 1000);
            }
            EXPECT_EQ(figures.makespan, 3 * (m + p - 1) * kSlot);
        }
    EXPECT_DOUBLE_EQ(largestPeak(figuresOf(made("bpipe", 8, 32), slotCosts(8, kSlot, 2 * kSlot))), 5); // of 8
}

// What goes away is on both ranks while it is under way: one more than the bound, where a copy takes less than a forward.
TEST(BPipe, HoldsOneMoreWhileACopyIsUnderWay)
{
    for (const int p : {4, 8, 9}) {
        engine::CostTable costs = slotCosts(p, kSlot, 2 * kSlot, 1);
        costs.inside = {.latency = 1};
        for (engine::StageCosts& stage : costs.stages) stage.activationBytes = 1000;
        traces::Bytes most = 0;
        for (const traces::RankFigures& rank : figuresOf(made("bpipe", p, 4 * p), costs).ranks) most = std::max(most, rank.peakMemory);
        EXPECT_EQ(most, ((p + 3) / 2 + 1) * 1000) << p;
    }
}

// Rank 0 computes until 1, its copy is under way until 5, back until 9; on rank 1 it is kept from 1 to 9.
TEST(BPipe, WaitsForWhatComesBackFromItsPartner)
{
    engine::CostTable costs = slotCosts(2, kSlot, kSlot);
    costs.inside.bytesPerSecond = 1e9; // a byte takes a nanosecond
    for (engine::StageCosts& stage : costs.stages) stage.activationBytes = 4 * kSlot;
    const engine::Schedule schedule = engine::parseSchedule("# offload to partner\n0F0,0OFFLOAD0,0RELOAD0,0B0\n1F0,1B0\n").value();
    const traces::Trace trace = engine::simulate(schedule, costs).value();
    const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();
    EXPECT_EQ(figures.makespan, 10 * kSlot);
    EXPECT_EQ(figures.ranks[0].peakMemory, 4 * kSlot);
    EXPECT_EQ(figures.ranks[1].peakMemory, 8 * kSlot);
    EXPECT_DOUBLE_EQ(figures.ranks[1].peakActivations, 2);
    const traces::MemorySeries& kept = *trace.memorySeries(traces::Rank{1}, traces::MemoryClass::Activations);
    EXPECT_EQ(kept.valueAt(8 * kSlot), 4 * kSlot);
    EXPECT_EQ(kept.valueAt(9 * kSlot), 0);
}

// B 0 begins at 4, F 0 ended at 1; for each micro-batch more it is a slot more.
TEST(Offload, TakesThoseThatWaitLongest)
{
    EXPECT_EQ(lineOf(offloaded("gpipe", 1, 4, 0.5), 0), "0F0,0F1,0F2,0OFFLOAD2,0F3,0OFFLOAD3,0B0,0RELOAD2,0B1,0RELOAD3,0B2,0B3");
    EXPECT_EQ(lineOf(offloaded("gpipe-lifo", 1, 4, 0.25), 0), "0F0,0OFFLOAD0,0F1,0F2,0F3,0B3,0B2,0RELOAD0,0B1,0B0");
    EXPECT_EQ(offloaded("1f1b", 1, 4, 1).order, made("1f1b", 1, 4).order); // nothing waits
    EXPECT_EQ(offloaded("1f1b", 4, 8, 0), made("1f1b", 4, 8));
}

TEST(Offload, TakesTheChunksNearestToTheInput)
{
    const engine::Schedule schedule = offloaded("interleaved", 2, 4, 0.5, 2);
    int taken = 0;
    for (const engine::Action& action : schedule.order[0])
        if (action.kind() == engine::ActionKind::Offload) {
            EXPECT_EQ(action.stage(), traces::Stage{0});
            ++taken;
        }
    EXPECT_EQ(taken, 4);
}

TEST(Offload, KeepsEveryFamilyLegalAndSavesMemory)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        if (!family.takesOffload) continue;
        for (const double share : {0.3, 0.5, 1.0}) {
            SCOPED_TRACE(family.name);
            const engine::Schedule plain = made(family.name, 4, 16, family.minChunks);
            const engine::Schedule moved = offloaded(family.name.c_str(), 4, 16, share, family.minChunks);
            EXPECT_TRUE(engine::validate(moved).legal());
            EXPECT_EQ(engine::parseSchedule(engine::toText(moved), family.name).value(), moved);
            for (std::size_t r = 0; r < 4; ++r) {
                const auto all = std::count_if(plain.order[r].begin(), plain.order[r].end(), [](const auto& a) {
                    return a.kind() == engine::ActionKind::Forward || a.kind() == engine::ActionKind::Overlap;
                });
                const auto away = std::count_if(moved.order[r].begin(), moved.order[r].end(), [](const auto& a) { return a.kind() == engine::ActionKind::Offload; });
                EXPECT_LE(static_cast<double>(away), share * static_cast<double>(all));
            }
            const engine::CostTable costs = slotCosts(plain.stages(), kSlot, 2 * kSlot);
            EXPECT_EQ(figuresOf(moved, costs).makespan, figuresOf(plain, costs).makespan); // copies take no time here
            EXPECT_LE(largestPeak(figuresOf(moved, costs)), largestPeak(figuresOf(plain, costs)));
        }
    }
    const engine::CostTable costs = slotCosts(8, kSlot, 2 * kSlot);
    EXPECT_LT(largestPeak(figuresOf(offloaded("1f1b", 8, 32, 0.5), costs)), 8);
    EXPECT_LE(largestPeak(figuresOf(offloaded("1f1b", 8, 32, 1), costs)), 4);
}

std::vector<double> peaksOf(const engine::Schedule& schedule)
{
    std::vector<double> peaks;
    for (const traces::RankFigures& rank : figuresOf(schedule, slotCosts(schedule.stages(), kSlot, 2 * kSlot)).ranks) peaks.push_back(rank.peakActivations);
    return peaks;
}

// With copies that take no time. Of P in flight the newest and the one that comes next are always here, so that of a rank with few
// little can go: rank 0 of four holds 4, each of which is away during 5 of the 8 actions that it lives through, so at most 2.5 at a time.
TEST(Offload, BringsThePeakDownWithTheShare)
{
    EXPECT_EQ(peaksOf(offloaded("1f1b", 4, 32, 0.5)), (std::vector<double>{3, 3, 2, 1}));
    EXPECT_EQ(peaksOf(offloaded("1f1b", 4, 32, 1)), (std::vector<double>{2, 2, 2, 1}));
    for (const int p : {8, 16, 32})
        for (const double share : {0.25, 0.5, 0.75}) {
            const std::vector<double> peaks = peaksOf(offloaded("1f1b", p, 4 * p, share));
            for (int r = 0; r < p; ++r) EXPECT_LE(peaks[static_cast<std::size_t>(r)], std::ceil((1 - share) * (p - r)) + 2) << p << " " << share << " " << r;
        }
    for (const double share : {0.25, 0.5, 0.75}) { // all 32 are there at once
        EXPECT_LE(peaksOf(offloaded("gpipe", 4, 32, share))[0], (1 - share) * 32 + 2);
    }
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        if (!family.takesOffload) continue;
        SCOPED_TRACE(family.name);
        std::vector<double> before = peaksOf(made(family.name, 8, 32, family.minChunks));
        for (int tenths = 1; tenths <= 10; ++tenths) {
            const std::vector<double> peaks = peaksOf(offloaded(family.name.c_str(), 8, 32, tenths / 10.0, family.minChunks));
            for (std::size_t r = 0; r < peaks.size(); ++r) EXPECT_LE(peaks[r], before[r] + 1e-9) << tenths << " rank " << r;
            before = peaks;
        }
    }
}

TEST(Offload, IsRefusedWhereNothingCouldGo)
{
    for (const auto& [name, why] : {std::pair{"bpipe", "it moves activations itself"}, {"forward-only", "it keeps none for a backward"}}) {
        const traces::Expected<void> verdict = engine::checkRequest({.name = name, .offload = 0.5});
        ASSERT_FALSE(verdict.ok());
        EXPECT_THAT(verdict.error().message, HasSubstr(why));
        EXPECT_FALSE(engine::withOffload(made(name, 4, 8), 0.5).ok());
    }
    EXPECT_THAT(engine::checkRequest({.offload = 1.5}).error().message, HasSubstr("a share of 1.5 to offload is not allowed; 0 to 1"));
}

std::string firstFault(std::string_view text)
{
    const engine::ValidationReport report = engine::validate(engine::parseSchedule(text).value());
    return report.errors.empty() ? "legal" : report.errors.front().message;
}

TEST(ValidateOffload, WantsTheWayThereAndBackAroundTheWait)
{
    EXPECT_EQ(firstFault("0F0,0OFFLOAD0,0RELOAD0,0B0\n"), "legal");
    EXPECT_EQ(firstFault("0F0,0OFFLOAD0,0B0\n"), "rank 0: 0RELOAD0 is missing; what was offloaded has to be there for its backward");
    EXPECT_EQ(firstFault("0F0,0RELOAD0,0B0\n"), "rank 0: 0OFFLOAD0 is missing; there is nothing to reload");
    EXPECT_EQ(firstFault("0OFFLOAD0,0F0,0RELOAD0,0B0\n"), "rank 0, position 0: 0OFFLOAD0 comes before 0F0 (position 1), which it needs; move it behind");
    EXPECT_THAT(firstFault("0F0,0RELOAD0,0OFFLOAD0,0B0\n"), HasSubstr("0RELOAD0 comes before 0OFFLOAD0 (position 2)"));
    EXPECT_THAT(firstFault("0F0,0OFFLOAD0,0B0,0RELOAD0\n"), HasSubstr("0B0 comes before 0RELOAD0 (position 3)"));
    EXPECT_THAT(firstFault("0F0,0OFFLOAD0,0I0,0RELOAD0,0W0\n"), HasSubstr("0I0 comes before 0RELOAD0"));
    EXPECT_THAT(firstFault("0F0,0OFFLOAD0,0OFFLOAD0,0RELOAD0,0B0\n"), HasSubstr("is there twice, first at position 1"));
    EXPECT_THAT(firstFault("0F0,0OFFLOAD0\n"), HasSubstr("0OFFLOAD0 moves what nothing will need, there is no backward"));
    EXPECT_THAT(firstFault("# offload to partner\n0F0,0OFFLOAD0,0RELOAD0,0B0\n"), HasSubstr("the middle one is its own partner"));
    const traces::Expected<engine::Schedule> nowhere = engine::parseSchedule("# offload to moon\n0F0,0B0\n");
    ASSERT_FALSE(nowhere.ok());
    EXPECT_THAT(nowhere.error().message, HasSubstr("line 1: \"moon\" is no place for activations"));
}

} // namespace
