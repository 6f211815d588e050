// SPDX-License-Identifier: Apache-2.0
//
// What holds for every plan: stages 1-8, micro-batches 1-16, random stage times and transfers.
#include "unit_costs.h"

#include "engine/schedule/validate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

struct RandomCase {
    engine::Schedule schedule;
    engine::CostTable costs;
};

RandomCase draw(unsigned seed)
{
    std::mt19937 random(seed);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const int ranks = among(1, 8);
    const char* names[] = {"naive", "gpipe", "1f1b", "interleaved"};
    const std::string name = names[among(0, 3)];
    const int chunks = name == "interleaved" ? among(2, 4) : 1;
    int microbatches = among(1, 16);
    while (!engine::generate({name, ranks, chunks, microbatches}).ok()) ++microbatches;
    RandomCase drawn{made(name, ranks, microbatches, chunks), {}};
    drawn.costs = slotCosts(drawn.schedule.stages(), 0, 0, among(0, 1) == 0 ? 0 : among(1, 900));
    for (engine::StageCosts& stage : drawn.costs.stages) {
        stage.forward = among(1, 1000);
        stage.backward = among(1, 2000);
        stage.activationBytes = among(1, 500);
    }
    return drawn;
}

constexpr unsigned kSeeds = 200;

TEST(RandomPlans, AreLegalAndHoldTheirBounds)
{
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = draw(seed);
        ASSERT_TRUE(engine::validate(drawn.schedule).legal());
        const traces::Trace trace = engine::simulate(drawn.schedule, drawn.costs).value();
        const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();

        // every (stage, micro-batch) once forward and once backward
        std::map<std::string, int> seen;
        for (int r = 0; r < drawn.schedule.ranks; ++r)
            for (std::size_t i = 0; i < trace.lane(traces::LaneId{r}).size(); ++i) ++seen[trace.sliceName({traces::LaneId{r}, static_cast<std::uint32_t>(i)})];
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * drawn.schedule.stages() * drawn.schedule.microbatches));
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));

        // no step is shorter than the work of a rank, nor than the way of one micro-batch through all stages and back
        traces::TimeNs chain = 0;
        std::vector<traces::TimeNs> work(static_cast<std::size_t>(drawn.schedule.ranks), 0);
        for (std::size_t s = 0; s < drawn.costs.stages.size(); ++s) {
            const traces::TimeNs both = drawn.costs.stages[s].forward + drawn.costs.stages[s].backward;
            chain += both;
            work[index(drawn.schedule.stageToRank[s])] += both * drawn.schedule.microbatches;
            if (s > 0 && drawn.schedule.stageToRank[s] != drawn.schedule.stageToRank[s - 1]) chain += 2 * drawn.costs.transfer;
        }
        EXPECT_GE(figures.makespan, chain);
        EXPECT_GE(figures.makespan, *std::max_element(work.begin(), work.end()));

        for (std::size_t r = 0; r < figures.ranks.size(); ++r) {
            EXPECT_EQ(figures.ranks[r].busy, work[r]);
            EXPECT_EQ(figures.ranks[r].busy + figures.ranks[r].idle, figures.makespan);
            EXPECT_EQ(std::accumulate(figures.ranks[r].idleByCause.begin(), figures.ranks[r].idleByCause.end(), traces::TimeNs{0}),
                      figures.ranks[r].idle);
        }

        // memory never negative, empty at the end
        for (const traces::MemorySeries& series : trace.memory()) {
            if (series.memory != traces::MemoryClass::Activations) continue;
            EXPECT_GE(*std::min_element(series.value.begin(), series.value.end()), 0);
            EXPECT_EQ(series.value.back(), 0);
        }
    }
}

TEST(RandomPlans, NeverEndEarlierWithMoreLatency)
{
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomCase drawn = draw(seed);
        const traces::TimeNs before = figuresOf(drawn.schedule, drawn.costs).makespan;
        drawn.costs.transfer += 137;
        EXPECT_GE(figuresOf(drawn.schedule, drawn.costs).makespan, before);
    }
}

TEST(RandomPlans, RunNoSlowerWithGPipeThanOneAfterTheOther)
{
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = draw(seed);
        const int p = drawn.schedule.stages(); // one stage per rank
        const int m = drawn.schedule.microbatches;
        EXPECT_GE(figuresOf(made("naive", p, m), drawn.costs).makespan, figuresOf(made("gpipe", p, m), drawn.costs).makespan);
    }
}

} // namespace
