// SPDX-License-Identifier: Apache-2.0
//
// What a trace tells of the kernels of NCCL (nccl_on_gpus.h), of runs in several processes and of replicas in one: which hand-off or sum each
// is, and how long it waited.
#include "tests/runtime/cupti_on_gpus.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/nccl_processes.h"
#include "tests/runtime/replica_plans.h"

#include "traces/analysis/exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using test::FakeGpus;
using testing::Contains;
using testing::HasSubstr;

constexpr traces::TimeNs kOfExchange = 3'000'000;

struct NcclKernel {
    int rank = 0;
    traces::Interval span;
    bool dropped = false;
};

// Two ranks whose kernels of NCCL are told: those of rank 0 by CUPTI, without a mark, for NCCL launches from threads of its own; those of
// rank 1, as a process has but one CUPTI, are put into the trace of both as they were.
struct TracedExchanges {
    // `drops`: whether the record of the n-th exchange of a rank is lost.
    explicit TracedExchanges(const std::string& schedule, const std::function<bool(int rank, int number)>& drops = {})
    {
        CuptiOnGpus cupti;
        Plan plan = littleTransformer(schedule, 2, 1, RunMode::Processes);
        plan.run.check = CheckMode::Off;
        plan.run.tracing = traces::TraceLevel::Kernels;
        std::mutex mutex;
        std::array<int, 2> numbers{};
        const auto exchanged = [&](int rank, int stream, traces::Interval when) {
            const std::lock_guard lock(mutex);
            const bool dropped = drops && drops(rank, numbers[static_cast<std::size_t>(rank)]++);
            kernels.push_back({rank, when, dropped});
            if (dropped) cupti.fake.drop(1);
            else if (rank == 0) cupti.launch(kName, 0, stream, when);
        };
        NcclProcesses processes({.count = 2, .ofOperation = 100'000, .ofExchange = kOfExchange, .onExchange = exchanged});
        const TeamOutcome team = processes.run(plan, {.cupti = {{0, cupti.session.get()}}, .clock = &FakeGpus::get().clock()});
        EXPECT_TRUE(team.ranks[0].result) << whyNot(team);
        processes.expectNothingLeft();
        trace = team.ranks[0].trace;
        const traces::LaneId lane = trace.addLane({.rank = traces::Rank{1}, .kind = traces::LaneKind::Stream, .depth = 90, .name = "GPU 1 stream 9, NCCL"});
        const traces::TextId name = trace.intern(kName);
        for (const NcclKernel& each : kernels)
            if (each.rank == 1 && !each.dropped) trace.append(lane, {.begin = each.span.begin, .end = each.span.end, .action = {}, .text = name});
    }

    static constexpr const char* kName = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    std::vector<NcclKernel> kernels; // as they were
    traces::Trace trace;
};

// When a hand-off was there, by the trace's own account of it.
std::map<std::pair<std::string, int>, traces::TimeNs> arrivals(const traces::Trace& trace)
{
    std::map<std::pair<std::string, int>, traces::TimeNs> all;
    for (const traces::Lane& lane : trace.lanes())
        for (std::size_t i = 0; lane.info().kind == traces::LaneKind::Transfer && i < lane.size(); ++i)
            all[{traces::toText(lane.action(i)), lane.step(i).value}] = lane.end(i);
    return all;
}

TEST(NcclRun, TellsOfEachKernelWhichHandOffItIsAndHowLongItWaited)
{
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
        SCOPED_TRACE(schedule);
        const TracedExchanges run(schedule);
        const auto arrived = arrivals(run.trace);
        std::size_t known = 0;
        traces::TimeNs waiting = 0;
        for (int step = 0; step < 3; ++step)
            for (const traces::ExchangeKernel& each : traces::exchangesOf(run.trace, traces::Step{step})) {
                const traces::Slice kernel = run.trace.slice(each.kernel);
                ASSERT_TRUE(each.met);
                EXPECT_EQ(kernel.end - *each.met, kOfExchange) << "it moves as long as it is set to";
                EXPECT_EQ(each.peer, traces::Rank{1 - run.trace.lane(each.kernel.lane).info().rank.value});
                const std::optional<traces::Action> exchange = traces::exchangeOfText(run.trace.sliceName(each.exchange));
                ASSERT_TRUE(exchange);
                for (const traces::Work& work : {exchange->work, exchange->partner})
                    if (work.kind == traces::ActionKind::SendForward || work.kind == traces::ActionKind::SendBackward) {
                        EXPECT_EQ(kernel.end, arrived.at({traces::toText(traces::Action{work, {}}), step}));
                    }
                waiting += *each.met - kernel.begin;
                ++known;
            }
        EXPECT_EQ(known, run.kernels.size() - 2) << "all but those of the byte before the first step";
        EXPECT_GT(waiting, 0);
        traces::TimeNs told = 0;
        for (const auto& [rank, time] : traces::ncclTimes(run.trace)) told += time.waiting;
        EXPECT_EQ(told, waiting);
        EXPECT_THAT(run.trace.information(), testing::Not(Contains(HasSubstr("belong to no action"))));
    }
}

// The n-th kernel of a step is of its n-th exchange where none is missing. Where one is, its step is not known on either rank.
TEST(NcclRun, DoesNotGuessWhereTheRecordOfAKernelWasDropped)
{
    const auto ofAStep = (static_cast<int>(TracedExchanges("1f1b").kernels.size()) / 2 - 1) / 3;
    for (const int loser : {0, 1}) {
        const TracedExchanges run("1f1b", [&](int rank, int number) { return rank == loser && number == 1 + ofAStep + 2; });
        const auto of = [&](int step) { return traces::exchangesOf(run.trace, traces::Step{step}); };
        for (const int whole : {0, 2}) EXPECT_THAT(of(whole), testing::Each(testing::Field(&traces::ExchangeKernel::met, testing::Ne(std::nullopt))));
        EXPECT_FALSE(of(1).empty()) << "the other rank's kernels are known";
        for (const traces::ExchangeKernel& each : of(1)) {
            EXPECT_EQ(run.trace.lane(each.kernel.lane).info().rank, traces::Rank{1 - loser});
            EXPECT_EQ(each.met, std::nullopt) << "but not since when anything moves";
        }
        EXPECT_EQ(run.trace.lostEvents(), 1);
    }
}

// Each begins once all have made their part, so none waits.
TEST(NcclSums, TellOfEachKernelWhichSumItIs)
{
    CuptiOnGpus cupti;
    Plan plan = linear("1f1b", 2, 2);
    plan.run.check = CheckMode::Off;
    plan.run.tracing = traces::TraceLevel::Kernels;
    plan.run.device = DeviceKind::Cuda;
    plan.run.transport = Transport::Nccl;
    std::mutex mutex;
    std::array<std::vector<traces::Interval>, 4> asTheyWere;
    const auto summed = [&](int gpu, int stream, traces::Interval when) {
        const std::lock_guard lock(mutex);
        asTheyWere[static_cast<std::size_t>(gpu)].push_back(when);
        std::jthread([&] { // of NCCL's own, and so without a mark
            cupti.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", gpu, stream, when);
        });
    };
    NcclOnGpus gpus({.count = 4, .ofOperation = 100'000, .ofExchange = kOfExchange, .onExchange = summed});
    const Outcome outcome = runPlan(plan, {.clock = &FakeGpus::get().clock(), .cupti = cupti.session.get(), .devices = &FakeGpus::get().source(), .nccl = &gpus.source});
    ASSERT_TRUE(outcome.result) << saidBy(outcome);
    gpus.expectNothingLeft();
    std::array<std::size_t, 4> known{};
    for (int step = 0; step < plan.run.steps; ++step)
        for (const traces::ExchangeKernel& each : traces::exchangesOf(outcome.trace, traces::Step{step})) {
            const traces::Slice kernel = outcome.trace.slice(each.kernel);
            const traces::Slice sum = outcome.trace.slice(each.exchange);
            const int rank = outcome.trace.lane(each.kernel.lane).info().rank.value;
            EXPECT_EQ(sum.action.kind(), traces::ActionKind::AllReduce);
            EXPECT_EQ(sum.action.stage(), traces::Stage{rank % 2});
            EXPECT_EQ(outcome.trace.lane(each.exchange.lane).info().rank.value, rank);
            EXPECT_EQ(each.peer, traces::Rank{(rank + 2) % 4});
            ASSERT_TRUE(each.met);
            EXPECT_EQ(*each.met, kernel.begin);
            EXPECT_EQ(kernel.end - *each.met, kOfExchange);
            ++known[static_cast<std::size_t>(rank)];
        }
    for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(known[r], asTheyWere[r].size() - 1) << "all but the one that connects them";
}

} // namespace
} // namespace stagecraft::runtime
