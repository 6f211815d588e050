// SPDX-License-Identifier: Apache-2.0
//
// Sweeps against values that were found without the simulator: papers, and arithmetic by hand.
#include "engine/explain/sweep.h"
#include "engine/explain/sweep_figures.h"
#include "engine/explain/sweep_files.h"
#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>

#include <limits>

namespace stagecraft::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweepAxis axis(const char* text)
{
    const Expected<SweepAxis> parsed = parseSweepAxis(text);
    if (!parsed.ok()) throw std::runtime_error(parsed.error().message);
    return parsed.value();
}

std::string refusal(const char* text)
{
    const Expected<SweepAxis> parsed = parseSweepAxis(text);
    return parsed.ok() ? "" : parsed.error().message;
}

Plan planOf(int ranks, int microbatches)
{
    Plan plan; // 1f1b, forward 1 ms, backward 2 ms
    plan.pipeline.ranks = ranks;
    plan.pipeline.microbatches = microbatches;
    return plan;
}

Sweep swept(const SweepRequest& request)
{
    const Expected<Sweep> sweep = runSweep(request);
    if (!sweep.ok()) throw std::runtime_error(sweep.error().message);
    return sweep.value();
}

std::vector<double> valuesOf(const SweepSeries& series, double SweepPoint::*figure)
{
    std::vector<double> values;
    for (const SweepPoint& point : series.points) values.push_back(point.*figure);
    return values;
}

TEST(SweepAxis, IsAListARangeOrASeriesThatGrowsByAFactor)
{
    EXPECT_THAT(axis("microbatches=16,4,8,4").values, ElementsAre(4, 8, 16));
    EXPECT_THAT(axis("ranks=2..5").values, ElementsAre(2, 3, 4, 5));
    EXPECT_THAT(axis("ranks=2..9+3").values, ElementsAre(2, 5, 8));
    EXPECT_THAT(axis("microbatches=1..40*3").values, ElementsAre(1, 3, 9, 27));
    EXPECT_TRUE(axis("microbatches=1..40*3").geometric);
    EXPECT_FALSE(axis("microbatches=1,3,9").geometric);
    EXPECT_THAT(axis("latency=0us..1.5us+500ns").values, ElementsAre(0, 500, 1000, 1500));
    EXPECT_EQ(axis("latency=0..1ms").values.size(), 21U);
    EXPECT_THAT(axis("memory-limit=1GiB..4GiB*2").values, ElementsAre(1 << 30, 2.0 * (1 << 30), 4.0 * (1 << 30)));
    EXPECT_THAT(axis("jitter=0%,5%").values, ElementsAre(0, 0.05));
}

TEST(SweepAxis, RefusesWhatIsNoneAndSaysWhy)
{
    EXPECT_THAT(refusal("micro=1..4"), HasSubstr("there are microbatches, ranks"));
    EXPECT_THAT(refusal("microbatches"), HasSubstr("write microbatches=1..64"));
    EXPECT_THAT(refusal("microbatches=4..1"), HasSubstr("goes down"));
    EXPECT_THAT(refusal("microbatches=1..64*1"), HasSubstr("no factor above 1"));
    EXPECT_THAT(refusal("microbatches=0,1"), HasSubstr("'0' is no whole number from 1"));
    EXPECT_THAT(refusal("microbatches=1.5"), HasSubstr("whole number"));
    EXPECT_THAT(refusal("microbatches=1..100000"), HasSubstr("at most 1024 values"));
    EXPECT_THAT(refusal("latency=5"), HasSubstr("latency: "));
    EXPECT_THAT(refusal("latency=0s..1s*2"), HasSubstr("begin above 0"));
    EXPECT_THAT(refusal("jitter=150%"), HasSubstr("0% to 100%"));
}

// 1F1B and GPipe: (p-1)/(m+p-1) (arXiv 2104.04473 sec. 2.2). Peak activations m and min(p, m).
TEST(Sweep, GivesTheBubblesOfThePapersOverMicrobatches)
{
    const Sweep sweep = swept({.plan = planOf(4, 8), .schedules = {"gpipe", "1f1b"}, .axis = axis("microbatches=1,2,5,8,12")});
    ASSERT_EQ(sweep.series.size(), 2U);
    for (const SweepSeries& series : sweep.series)
        EXPECT_THAT(valuesOf(series, &SweepPoint::bubbleMakespan),
                    ElementsAre(testing::DoubleEq(3.0 / 4), testing::DoubleEq(3.0 / 5), testing::DoubleEq(3.0 / 8), testing::DoubleEq(3.0 / 11),
                                testing::DoubleEq(3.0 / 15)));
    EXPECT_THAT(valuesOf(sweep.series[0], &SweepPoint::peakActivations), ElementsAre(1, 2, 5, 8, 12));
    EXPECT_THAT(valuesOf(sweep.series[1], &SweepPoint::peakActivations), ElementsAre(1, 2, 4, 4, 4));
    EXPECT_EQ(sweep.series[1].points[2].forms.bubbleMakespan->text, "(p−1)/(m+p−1)");
    EXPECT_EQ(sweep.series[1].points[3].makespan, 33'000'000);
    EXPECT_DOUBLE_EQ(sweep.series[1].points[3].throughput, 8 / 0.033);
    EXPECT_EQ(sweep.throughputUnit, "micro-batches/s");
    EXPECT_EQ(sweep.fixed, "p=4");
}

// An independent event simulation: hops of half a forward make 1F1B slower than GPipe, 41 against 36 (reference figures).
TEST(Sweep, ShowsThatLatencyMakesOneFOneBSlowerThanGPipe)
{
    const Sweep sweep = swept({.plan = planOf(4, 8), .schedules = {"gpipe", "1f1b"}, .axis = axis("latency=0,500us")});
    EXPECT_EQ(sweep.series[0].points[0].makespan, 33'000'000);
    EXPECT_EQ(sweep.series[0].points[1].makespan, 36'000'000);
    EXPECT_EQ(sweep.series[1].points[0].makespan, 33'000'000);
    EXPECT_EQ(sweep.series[1].points[1].makespan, 41'000'000);
    EXPECT_DOUBLE_EQ(sweep.series[1].points[1].forms.makespan->value, 41e6);
}

// GPipe's longest chain crosses each boundary twice, forward and back: 33 ms and twice the latency of each boundary between nodes.
TEST(Sweep, VariesTheNodesAndTheWayBetweenThem)
{
    Plan plan = planOf(4, 8);
    plan.machine.between.latency = 500'000;
    const Sweep nodes = swept({.plan = plan, .schedules = {"gpipe"}, .axis = axis("ranks-per-node=1..4*2")});
    EXPECT_THAT(valuesOf(nodes.series[0], &SweepPoint::value), ElementsAre(1, 2, 4));
    EXPECT_EQ(nodes.series[0].points[0].makespan, 36'000'000);
    EXPECT_EQ(nodes.series[0].points[1].makespan, 34'000'000);
    EXPECT_EQ(nodes.series[0].points[2].makespan, 33'000'000);
    EXPECT_TRUE(nodes.notes.empty());

    plan.machine.ranksPerNode = 2;
    const Sweep latency = swept({.plan = plan, .schedules = {"gpipe"}, .axis = axis("node-latency=0,1ms")});
    EXPECT_EQ(latency.series[0].points[0].makespan, 33'000'000);
    EXPECT_EQ(latency.series[0].points[1].makespan, 35'000'000);

    plan.machine.between.latency = 0;
    plan.costs.boundaryBytes = 1'000'000;
    const Sweep bandwidth = swept({.plan = plan, .schedules = {"gpipe"}, .axis = axis("node-bandwidth=1GB/s,2GB/s")}); // 1 and 0.5 ms
    EXPECT_EQ(bandwidth.series[0].points[0].makespan, 35'000'000);
    EXPECT_EQ(bandwidth.series[0].points[1].makespan, 34'000'000);
}

// Behind the last backward one ring all-reduce: 2(D-1) latencies and 2(D-1)/D of the bytes.
TEST(Sweep, VariesTheReplicas)
{
    Plan plan = planOf(4, 8);
    plan.costs.source = CostSource::Measured;
    plan.costs.measured.assign(4, {.forward = 1'000'000, .backward = 2'000'000, .inputGrad = 1'000'000, .weightGrad = 1'000'000,
                                   .gradientBytes = 1'000'000});
    plan.machine.replica = {.latency = 10'000, .bytesPerSecond = 1e9};
    const Sweep sweep = swept({.plan = plan, .schedules = {"gpipe"}, .axis = axis("replicas=1,2,4")});
    ASSERT_EQ(sweep.series[0].points.size(), 3U);
    EXPECT_EQ(sweep.series[0].points[0].makespan, 33'000'000);
    EXPECT_EQ(sweep.series[0].points[1].makespan, 33'000'000 + 20'000 + 1'000'000);
    EXPECT_EQ(sweep.series[0].points[2].makespan, 33'000'000 + 60'000 + 1'500'000);
    EXPECT_FALSE(sweep.series[0].points[2].forms.makespan) << "the formula knows of no replicas";
    EXPECT_THAT(sweep.notes, ElementsAre("The throughput is that of one replica."));
}

// 1F1B holds min(p, m) micro-batches on its first rank; where all that wait go to the host, the one at work and the one on its way.
TEST(Sweep, VariesWhatIsOffloaded)
{
    const Sweep sweep = swept({.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("offload=0%,100%")});
    EXPECT_EQ(sweep.series[0].points[0].peakActivations, 4);
    EXPECT_EQ(sweep.series[0].points[1].peakActivations, 2);
}

TEST(Sweep, SaysWhyACurveOfTheMachineStaysFlat)
{
    const auto notes = [](const char* over) { return swept({.plan = planOf(4, 8), .schedules = {}, .axis = axis(over)}).notes; };
    EXPECT_THAT(notes("node-latency=0,1ms"), ElementsAre(HasSubstr("All ranks lie on one node")));
    EXPECT_THAT(notes("ranks-per-node=1,2"), ElementsAre(HasSubstr("no latency or bandwidth between nodes")));
    EXPECT_THAT(notes("replicas=1,2"), ElementsAre(HasSubstr("no latency or bandwidth between replicas"), HasSubstr("one replica")));
}

TEST(Sweep, LeavesOutWhatAScheduleRefusesAndTakesChunksThatItAllows)
{
    const Sweep sweep =
        swept({.plan = planOf(4, 8), .schedules = {"1f1b", "interleaved", "dualpipe"}, .axis = axis("microbatches=7,8,9")});
    EXPECT_EQ(sweep.series[0].points.size(), 3U);
    EXPECT_EQ(sweep.series[1].title, "Interleaved 1F1B, v=2");
    ASSERT_EQ(sweep.series[1].leftOut.size(), 1U); // 9 is no multiple of the two rounds that PyTorch cuts it into
    EXPECT_EQ(sweep.series[1].leftOut[0].value, 9);
    EXPECT_THAT(sweep.series[1].leftOut[0].reason, HasSubstr("interleaved"));
    ASSERT_EQ(sweep.series[2].points.size(), 1U); // dualpipe takes even numbers from 2p on
    EXPECT_EQ(sweep.series[2].points[0].value, 8);
}

// T(b) = (B/b + p-1)(α' + β'b) with B = 64, p = 5, a forward and backward of 3 ms a sample and 2·750 µs beside: b* = sqrt(64·1.5/(4·3)) = √8.
TEST(Sweep, FindsTheBestMicrobatchSizeOfAFixedBatch)
{
    SweepRequest request{.plan = planOf(5, 64), .schedules = {"1f1b", "naive"}, .axis = axis("microbatch-size=1..64")};
    request.fixedPerAction = 750'000;
    const Sweep sweep = swept(request);
    EXPECT_THAT(valuesOf(sweep.series[0], &SweepPoint::value), ElementsAre(1, 2, 4, 8, 16, 32, 64)); // the divisors of 64
    for (const SweepPoint& point : sweep.series[0].points) {
        EXPECT_NEAR(static_cast<double>(point.makespan), (64 / point.value + 4) * (1.5e6 + 3e6 * point.value), 1);
        EXPECT_NEAR(point.forms.makespan->value, static_cast<double>(point.makespan), 1);
    }
    EXPECT_NEAR(sweep.series[0].bestSize->value, std::sqrt(8.0), 1e-9);
    // on both sides of √8: (32+4)(1.5+6) = 270 ms and (16+4)(1.5+12) = 270 ms; of equals the first
    EXPECT_EQ(fastest(sweep.series[0])->value, 2);
    EXPECT_THAT(sweep.series[0].leftOut.front().reason, HasSubstr("a batch of 64 is no multiple of 3"));
    EXPECT_FALSE(sweep.series[1].bestSize); // no bubble to weigh against: the larger the better
    EXPECT_EQ(fastest(sweep.series[1])->value, 64);
    EXPECT_EQ(sweep.throughputUnit, "samples/s");
    EXPECT_EQ(sweep.fixed, "p=5, B=64, α=750 µs per action");
}

TEST(Sweep, CountsTheRowsOfAModelAsSamples)
{
    SweepRequest request{.plan = presetPlan("mlp").value(), .schedules = {"gpipe"}, .axis = axis("microbatch-size=1..4096*2")};
    request.plan.pipeline.ranks = 2;
    request.plan.partition.clear();
    const long long batch = static_cast<long long>(request.plan.model.microbatchRows) * request.plan.pipeline.microbatches;
    const Sweep sweep = swept(request);
    EXPECT_EQ(sweep.throughputUnit, "rows/s");
    ASSERT_FALSE(sweep.series[0].points.empty());
    const SweepPoint& last = sweep.series[0].points.back(); // its micro-batch is the whole batch, so there is one
    EXPECT_EQ(last.value, batch);
    EXPECT_NEAR(last.bubbleMakespan, 0.5, 0.2);
    EXPECT_NEAR(last.throughput, static_cast<double>(batch) * 1e9 / static_cast<double>(last.makespan), 1e-6);
}

// GPipe keeps model and batch: m·p/(m+p-1) times as fast as one rank, which is Amdahl's law with 1/m.
TEST(Scaling, IsAmdahlsWhenTheModelStays)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"gpipe"}, .axis = axis("ranks=1,2,4,8,16")};
    request.scaling = Scaling::Strong;
    const Sweep sweep = swept(request);
    for (const SweepPoint& point : sweep.series[0].points) {
        EXPECT_NEAR(point.speedup, 8 * point.value / (8 + point.value - 1), 1e-9);
        EXPECT_NEAR(point.law, point.speedup, 1e-9);
        EXPECT_NEAR(point.efficiency, 8 / (8 + point.value - 1), 1e-9);
    }
    EXPECT_EQ(sweep.series[0].points[0].makespan, 96'000'000); // 8 micro-batches of 4 ranks' 3 ms, on one
    request.serialShare = 0.25;
    EXPECT_DOUBLE_EQ(swept(request).series[0].points[2].law, 4 / (0.25 * 4 + 0.75));
}

// Weak: the step is (m+p-1)(F+B) long and does p ranks' work, so p·m/(m+p-1). Gustafson's line s + (1-s)p lies above.
TEST(Scaling, FallsBelowGustafsonsLineWhenTheModelGrows)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("ranks=1,2,4,8,16")};
    request.scaling = Scaling::Weak;
    const Sweep sweep = swept(request);
    for (const SweepPoint& point : sweep.series[0].points) {
        EXPECT_EQ(point.makespan, std::llround((8 + point.value - 1) * 3e6));
        EXPECT_NEAR(point.speedup, 8 * point.value / (8 + point.value - 1), 1e-9);
        EXPECT_NEAR(point.law, 1.0 / 8 + (1 - 1.0 / 8) * point.value, 1e-9);
    }
    EXPECT_GT(sweep.series[0].points[4].law, sweep.series[0].points[4].speedup);
}

// No schedule outruns its line, whatever it does with weight gradients, chunks and slices; ZB-H1's serial share is a third of 1F1B's.
TEST(Scaling, HasALineThatBoundsEverySchedule)
{
    std::vector<std::string> names;
    for (const ScheduleFamily& family : scheduleFamilies()) names.push_back(family.name);
    for (const char* send : {"0ns", "100us"}) {
        Plan plan = planOf(4, 16);
        plan.costs.latency = traces::parseDuration(send).value();
        SweepRequest request{.plan = plan, .schedules = names, .axis = axis("ranks=1..16*2")};
        for (const Scaling scaling : {Scaling::Strong, Scaling::Weak}) {
            request.scaling = scaling;
            std::map<std::string, std::optional<double>> shares;
            for (const SweepSeries& series : swept(request).series) {
                shares[series.schedule] = series.serialShare;
                for (const SweepPoint& point : series.points) {
                    EXPECT_EQ(point.law > 0, series.serialShare.has_value()) << series.schedule;
                    if (point.law > 0) {
                        EXPECT_LE(point.speedup, point.law * (1 + 1e-4)) << series.schedule << " " << point.value;
                    }
                }
            }
            EXPECT_NEAR(shares.at("1f1b").value(), 1.0 / 16, 1e-4);
            EXPECT_NEAR(shares.at("zb-h1").value(), 1.0 / 48, 1e-4);
            EXPECT_FALSE(shares.at("hanayo")) << "has no formula";
        }
    }
}

TEST(Sweep, RefusesAQuantityThatChangesNothing)
{
    const auto refusal = [](const char* values, std::vector<std::string> schedules) {
        const Expected<Sweep> sweep = runSweep({.plan = planOf(4, 8), .schedules = std::move(schedules), .axis = axis(values)});
        return sweep.ok() ? std::string() : sweep.error().message;
    };
    EXPECT_THAT(refusal("memory-limit=1MiB..4MiB*2", {"1f1b", "gpipe"}), HasSubstr("none of the schedules plans for a limit"));
    EXPECT_THAT(refusal("group=1..3", {"1f1b"}), HasSubstr("none of the schedules goes in groups"));
    EXPECT_THAT(refusal("bandwidth=1GB/s..4GB/s*2", {"1f1b"}), HasSubstr("nothing says how much is sent"));
    EXPECT_THAT(refusal("boundary-bytes=1MiB..4MiB*2", {"1f1b"}), HasSubstr("without a bandwidth"));
    EXPECT_EQ(refusal("group=4..6", {"1f1b", "pipedream-2bw"}), "") << "1F1B stands beside it to compare with";
}

TEST(Scaling, PartitionsAModelAnewAndLeavesOutMoreStagesThanLayers)
{
    SweepRequest request{.plan = presetPlan("gpt-small").value(), .schedules = {"1f1b"}, .axis = axis("ranks=1..64*2")};
    request.plan.costs.source = CostSource::Model;
    request.scaling = Scaling::Strong;
    const Sweep sweep = swept(request);
    EXPECT_FALSE(sweep.series[0].points.empty());
    EXPECT_FALSE(sweep.series[0].leftOut.empty());
    EXPECT_THAT(sweep.series[0].leftOut.back().reason, HasSubstr("layers"));
    // one rank does the whole work alone
    EXPECT_NEAR(sweep.series[0].points[0].speedup, 1, 1e-6);
}

// On one rank nobody waits, whatever that rank does beside: 8 (2F + B) and an update of the whole model, against itself.
TEST(Scaling, BeginsAtOneWithRecomputingAndUpdates)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("ranks=1,4")};
    request.plan.pipeline.recompute = Recompute::Full;
    request.plan.costs.optimizer = 5'000'000; // of a quarter of the model
    request.scaling = Scaling::Strong;
    const SweepSeries series = swept(request).series[0];
    EXPECT_EQ(series.points[0].makespan, 8 * 4 * 4'000'000 + 4 * 5'000'000);
    EXPECT_DOUBLE_EQ(series.points[0].speedup, 1);
    EXPECT_DOUBLE_EQ(series.points[1].speedup, 148e6 / static_cast<double>(series.points[1].makespan));
}

// Each of 4 ranks works 8 (F + B) = 16 ms, so that one rank takes 64 ms; halves are no more work than wholes.
TEST(Scaling, CountsTheWorkOfHalvedMicroBatchesOnce)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"chimera"}, .axis = axis("ranks=2,4")};
    request.plan.costs.backward = request.plan.costs.forward;
    request.plan.pipeline.concatenation = Concatenation::Halving;
    request.scaling = Scaling::Strong;
    const Sweep sweep = swept(request);
    for (const SweepPoint& point : sweep.series[0].points) {
        EXPECT_DOUBLE_EQ(point.speedup, 64e6 / static_cast<double>(point.makespan));
        EXPECT_NEAR(point.efficiency, 1 - point.bubbleMakespan, 1e-12);
    }
}

TEST(Scaling, LeavesOutWhatIsOfSingleRanksWhereThereAreOthersAndSaysSo)
{
    for (const Scaling scaling : {Scaling::None, Scaling::Strong, Scaling::Weak}) {
        SweepRequest request{.plan = planOf(2, 8), .schedules = {"gpipe"}, .axis = axis("ranks=2,4")};
        request.plan.machine.rankScale = {1, 3};
        request.plan.machine.lateStart = {0, 500'000};
        request.scaling = scaling;
        const Sweep sweep = swept(request);
        EXPECT_THAT(sweep.notes, testing::Contains(HasSubstr("Factors and late starts of ranks are left out")));
        ASSERT_EQ(sweep.series[0].points.size(), 2U) << sweep.series[0].leftOut[0].reason;
        // rank 1 takes 8 times 9 ms after rank 0's first forward of 1 ms, and rank 0 comes last with a backward of 2 ms
        EXPECT_EQ(sweep.series[0].points[0].makespan, 75'000'000);
        // (m+p-1)(F+B) on equal ranks, half as long where the model stays
        EXPECT_EQ(sweep.series[0].points[1].makespan, scaling == Scaling::Strong ? 16'500'000 : 33'000'000);
    }
}

// What a plan asks for beside the order is done to the orders of the families that plan, too: each rank works 8 (2F + B).
TEST(Sweep, RecomputesInSchedulesThatPlanByCosts)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"zb-auto", "zb-v-auto", "1f1b"}, .axis = axis("microbatches=8")};
    request.plan.pipeline.recompute = Recompute::Full;
    const Sweep sweep = swept(request);
    for (const SweepSeries& series : sweep.series) EXPECT_EQ(series.points[0].work, 32e6) << series.schedule;
}

// Two slots a micro-batch with the fixed cost, by which it is planned, too: as in a plan of these times.
TEST(Sweep, PlansByTheCostsOfThePoint)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"zb-auto"}, .axis = axis("microbatches=8"), .fixedPerAction = 2'000'000};
    Plan same = planOf(4, 8);
    same.pipeline.schedule = "zb-auto";
    same.costs.forward = 3'000'000;
    same.costs.inputGrad = 3'000'000;
    same.costs.weightGrad = 3'000'000;
    const SweepRequest plain{.plan = same, .schedules = {}, .axis = axis("microbatches=8")};
    EXPECT_EQ(swept(request).series[0].points[0].makespan, swept(plain).series[0].points[0].makespan);
}

TEST(Sweep, LeavesOutNumbersThatNoScheduleTakesBeforeItMakesAnything)
{
    const auto reason = [](SweepRequest request, Scaling scaling) {
        request.scaling = scaling;
        const SweepSeries series = swept(request).series[0];
        return series.leftOut.empty() ? std::string() : series.leftOut.back().reason;
    };
    for (const Scaling scaling : {Scaling::None, Scaling::Strong, Scaling::Weak}) {
        EXPECT_THAT(reason({.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("ranks=2,20000000")}, scaling), HasSubstr("1 to 16384"));
        SweepRequest own{.plan = planOf(4, 8), .schedules = {}, .axis = axis("ranks=4,20000000")};
        own.plan = withCustomSchedule(own.plan, toText(generate({.name = "gpipe"}).value())).value();
        EXPECT_THAT(reason(own, scaling), HasSubstr("the plan says 20000000"));
    }
    SweepRequest chunks{.plan = planOf(8192, 1), .schedules = {"interleaved"}, .axis = axis("chunks=2,20000000")};
    EXPECT_THAT(reason(chunks, Scaling::None), HasSubstr("20000000 chunks per rank"));
    EXPECT_EQ(withShape(planOf(1, 1), 16384, 20'000'000).stages(), std::numeric_limits<int>::max());
    SweepRequest sizes{.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("microbatch-size=1"), .batch = 1LL << 32};
    EXPECT_THAT(reason(sizes, Scaling::None), HasSubstr("at most 10000000 are possible"));
    SweepRequest large{.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("microbatch-size=20000000"), .batch = 20'000'000};
    large.plan.costs.forward = 1'000'000'000'000'000;
    EXPECT_THAT(reason(large, Scaling::None), HasSubstr("costs: forward comes to"));
}

TEST(Sweep, CanBeWatchedAndStopped)
{
    const SweepRequest request{.plan = planOf(2, 4), .schedules = {"gpipe", "1f1b"}, .axis = axis("microbatches=1..3")};
    std::vector<std::size_t> done;
    std::stop_source stop;
    const auto watch = [&](const SweepProgress& progress) {
        done.push_back(progress.done);
        EXPECT_EQ(progress.total, 6U);
    };
    ASSERT_TRUE(runSweep(request, watch, stop.get_token()).ok());
    EXPECT_THAT(done, ElementsAre(0, 1, 2, 3, 4, 5, 6));

    done.clear();
    const Expected<Sweep> stopped = runSweep(
        request,
        [&](const SweepProgress& progress) {
            done.push_back(progress.done);
            if (progress.done == 2) stop.request_stop();
        },
        stop.get_token());
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().message, "the sweep was stopped");
    EXPECT_THAT(done, ElementsAre(0, 1, 2));
}

TEST(Sweep, RefusesWhatMakesNoSense)
{
    const auto reason = [](SweepRequest request) {
        const Expected<Sweep> sweep = runSweep(request);
        return sweep.ok() ? std::string() : sweep.error().message;
    };
    SweepRequest request{.plan = planOf(2, 4), .schedules = {"1f1b"}, .axis = axis("microbatches=1..3")};
    request.scaling = Scaling::Strong;
    EXPECT_THAT(reason(request), HasSubstr("over ranks"));
    request.scaling = Scaling::None;
    request.schedules = {"1f1b", "gpipe", "1f1b"};
    EXPECT_THAT(reason(request), HasSubstr("named twice"));
    request.fixedPerAction = std::numeric_limits<TimeNs>::max();
    request.schedules = {"1f1b"};
    EXPECT_THAT(reason(request), HasSubstr("a fixed cost of"));
    request.schedules = {"gpip"};
    EXPECT_THAT(reason(request), HasSubstr("\"gpip\" is unknown"));
}

TEST(SweepFiles, HoldEveryPointAndReadBack)
{
    SweepRequest request{.plan = planOf(4, 8), .schedules = {"1f1b", "interleaved"}, .axis = axis("microbatches=8,9")};
    const Sweep sweep = swept(request);
    EXPECT_EQ(sweepCsv(sweep),
              "schedule,microbatches,bubble_makespan,bubble_span,bubble_over_ideal,makespan_ns,peak_activations,peak_memory_bytes,"
              "throughput_per_s,span_ns,work_ns,formula_bubble_makespan,formula_bubble_span,formula_bubble_over_ideal,formula_makespan_ns,"
              "formula_peak_activations,formula_throughput_per_s\r\n"
              "1f1b,8,0.2727272727272727,0.2727272727272727,0.375,33000000,4,0,242.42424242424244,33000000,24000000,0.2727272727272727,0.2727272727272727,"
              "0.375,33000000,4,242.42424242424244\r\n"
              "1f1b,9,0.25,0.25,0.33333333333333326,36000000,4,0,250,36000000,27000000,0.25,0.25,0.33333333333333326,36000000,4,250\r\n"
              "interleaved,8,0.1578947368421053,0.1578947368421053,0.1875,28500000,5.5,0,280.70175438596493,28500000,24000000,"
              "0.1578947368421053,0.1578947368421053,0.1875,28500000,5.5,280.70175438596493\r\n");
    const Expected<Sweep> again = readSweep(sweepJson(sweep));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value(), sweep);

    request = {.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("ranks=1,2")};
    request.scaling = Scaling::Weak;
    const Sweep scaled = swept(request);
    EXPECT_EQ(readSweep(sweepJson(scaled)).value(), scaled);
    request = {.plan = planOf(4, 8), .schedules = {"1f1b"}, .axis = axis("microbatch-size=1,2"), .fixedPerAction = 1000};
    const Sweep sized = swept(request);
    EXPECT_EQ(readSweep(sweepJson(sized)).value(), sized);
}

TEST(SweepFigures, AreWrittenWithoutPowersOfTen)
{
    EXPECT_EQ(figureText(SweepFigure::Throughput, 10234.4), "10234");
    EXPECT_EQ(figureText(SweepFigure::Throughput, 242.4242), "242.4");
    EXPECT_EQ(figureText(SweepFigure::BubbleSpan, 0.375), "37.5 %");
    EXPECT_EQ(figureText(SweepFigure::StepTime, 33e6), "33 ms");
}

TEST(SweepFiles, SayWhatIsWrongWithAFileThatIsNoSweep)
{
    EXPECT_THAT(readSweep("not json").error().message, HasSubstr("no JSON"));
    EXPECT_THAT(readSweep("{}").error().message, HasSubstr("quantity"));
    EXPECT_THAT(readSweep(R"({"quantity": "colour"})").error().message, HasSubstr("colour"));
}

} // namespace
} // namespace stagecraft::engine
