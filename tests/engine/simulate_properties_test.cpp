// SPDX-License-Identifier: Apache-2.0
//
// What holds for every plan: stages 1-8, micro-batches 1-16, random stage times and transfers.
#include "random_case.h"

#include "engine/schedule/milestones.h"
#include "engine/schedule/validate.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

traces::TimeNs timeOf(const engine::CostTable& costs, const traces::Work& work)
{
    const engine::StageCosts& stage = costs.stages[index(work.stage)];
    switch (work.kind) {
    case engine::ActionKind::Forward: return stage.forward;
    case engine::ActionKind::Backward: return stage.backward;
    case engine::ActionKind::InputGrad: return stage.inputGrad;
    case engine::ActionKind::WeightGrad: return stage.weightGrad;
    case engine::ActionKind::Optimizer: return stage.optimizer;
    case engine::ActionKind::Offload:
    case engine::ActionKind::Reload: return 0; // on lanes of their own
    default: ADD_FAILURE() << "no time for " << traces::toText({work, {}}); return 0;
    }
}

constexpr unsigned kSeeds = 400;

TEST(RandomPlans, AreLegalAndHoldTheirBounds)
{
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = draw(seed);
        ASSERT_TRUE(engine::validate(drawn.schedule).legal());
        const traces::Trace trace = engine::simulate(drawn.schedule, drawn.costs).value();
        const traces::StepFigures figures = traces::stepFigures(trace, traces::Step{0}).value();

        // every action once; that they are all that is needed is for validate() to say
        std::map<std::string, int> seen;
        for (int r = 0; r < drawn.schedule.ranks; ++r)
            for (std::size_t i = 0; i < trace.lane(traces::LaneId{r}).size(); ++i) ++seen[trace.sliceName({traces::LaneId{r}, static_cast<std::uint32_t>(i)})];
        std::size_t computing = 0;
        for (const std::vector<engine::Action>& list : drawn.schedule.order)
            computing += static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](const auto& a) { return traces::isCompute(a.kind()); }));
        EXPECT_EQ(seen.size(), computing);
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));

        // no step is shorter than the work of a rank, nor than the way of one micro-batch through all stages and back
        traces::TimeNs chain = 0;
        std::vector<traces::TimeNs> work(static_cast<std::size_t>(drawn.schedule.ranks), 0);
        bool comesBack = false;
        for (std::size_t r = 0; r < work.size(); ++r)
            for (const engine::Action& action : drawn.schedule.order[r])
                engine::forEachWork(action, [&](const traces::Work& part) { // a pair takes the sum of its parts here
                    work[r] += timeOf(drawn.costs, part);
                    if (part.kind != engine::ActionKind::Forward) comesBack = true;
                    if (part.microbatch.value == 0 && part.flow != traces::Flow::Up && part.kind != engine::ActionKind::WeightGrad &&
                        part.kind != engine::ActionKind::Optimizer)
                        chain += timeOf(drawn.costs, part);
                });
        for (std::size_t s = 1; s < drawn.costs.stages.size(); ++s)
            if (drawn.schedule.stageToRank[s] != drawn.schedule.stageToRank[s - 1])
                chain += (comesBack ? 2 : 1) * drawn.costs.transfer;
        EXPECT_GE(figures.makespan, chain);
        EXPECT_GE(figures.makespan, *std::max_element(work.begin(), work.end()));

        for (std::size_t r = 0; r < figures.ranks.size(); ++r) {
            EXPECT_EQ(figures.ranks[r].busy, work[r]);
            EXPECT_EQ(figures.ranks[r].busy + figures.ranks[r].idle, figures.makespan);
            EXPECT_EQ(std::accumulate(figures.ranks[r].idleByCause.begin(), figures.ranks[r].idleByCause.end(), traces::TimeNs{0}),
                      figures.ranks[r].idle);
        }

        // memory never negative, empty at the end of a step that comes back
        for (const traces::MemorySeries& series : trace.memory()) {
            if (series.memory != traces::MemoryClass::Activations) continue;
            EXPECT_GE(*std::min_element(series.value.begin(), series.value.end()), 0);
            if (comesBack) {
                EXPECT_EQ(series.value.back(), 0);
            }
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
