// SPDX-License-Identifier: Apache-2.0
//
// The slack of simulated steps against a simulation that is made again, by other means, with one action delayed.
#include "random_case.h"

#include "engine/schedule/milestones.h"
#include "traces/analysis/slack.h"
#include "traces/analysis/step_index.h"

#include <map>
#include <random>
#include <tuple>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

using traces::TimeNs;

// Runs a schedule by asking every rank in turn whether its next action can begin. Only for compute actions.
class Again {
public:
    Again(const engine::Schedule& schedule, const traces::Trace& trace, TimeNs transfer)
        : schedule_(schedule), shape_(schedule, false), trace_(trace), transfer_(transfer)
    {
    }

    // When the step ends if the rank's i-th action begins so much later than it could.
    TimeNs makespan(std::size_t delayedRank, std::size_t delayed, TimeNs delay) const
    {
        std::map<std::tuple<engine::Fact, traces::Flow, int, int>, std::pair<TimeNs, traces::Rank>> made;
        std::vector<std::size_t> next(schedule_.order.size(), 0);
        std::vector<TimeNs> clock(schedule_.order.size(), 0);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < next.size(); ++r) {
                if (next[r] == schedule_.order[r].size()) continue;
                const traces::Action& action = schedule_.order[r][next[r]];
                TimeNs begin = clock[r];
                bool possible = true;
                engine::forEachWork(action, [&](const traces::Work& work) {
                    engine::everyNeed(shape_, work, [&](const engine::Milestone& need) {
                        const auto known = made.find({need.fact, need.flow, need.stage.value, need.microbatch.value});
                        if (known == made.end()) possible = false;
                        else begin = std::max(begin, known->second.first + (known->second.second == traces::Rank{r} ? 0 : transfer_));
                        return true;
                    });
                });
                if (!possible) continue;
                if (r == delayedRank && next[r] == delayed) begin += delay;
                const traces::Slice slice = trace_.slice({traces::LaneId{r}, static_cast<std::uint32_t>(next[r])});
                clock[r] = begin + slice.duration();
                engine::forEachWork(action, [&](const traces::Work& work) {
                    if (const auto gain = engine::gainOf(work))
                        made[{gain->fact, gain->flow, gain->stage.value, gain->microbatch.value}] = {clock[r], traces::Rank{r}};
                });
                ++next[r];
                moved = true;
            }
        }
        return *std::max_element(clock.begin(), clock.end());
    }

private:
    const engine::Schedule& schedule_;
    engine::ScheduleShape shape_;
    const traces::Trace& trace_;
    TimeNs transfer_;
};

// What a trace of compute actions alone can be compared with: nothing is copied, summed or updated.
bool computesOnly(const engine::Schedule& schedule)
{
    for (const auto& list : schedule.order)
        for (const traces::Action& action : list)
            if (!traces::isCompute(action.kind()) || action.kind() == traces::ActionKind::Optimizer) return false;
    return true;
}

TEST(SlackOfASimulation, IsTheLargestDelayThatCostsTheStepNothing)
{
    std::mt19937 random(11);
    int compared = 0;
    for (unsigned round = 0; round < 150; ++round) {
        RandomCase drawn = draw(round);
        const engine::Schedule& schedule = drawn.schedule;
        if (!computesOnly(schedule)) continue;
        SCOPED_TRACE(schedule.name + " in round " + std::to_string(round));
        const traces::Trace trace = engine::simulate(schedule, drawn.costs).value();
        const traces::StepSlack slack = traces::slackOf(trace, traces::StepIndex(trace), traces::Step{0}).value();
        const Again again(schedule, trace, drawn.costs.transfer);
        const TimeNs makespan = again.makespan(0, 0, 0);
        ASSERT_EQ(makespan, traces::stepFigures(trace, traces::Step{0}).value().makespan) << "both simulate the same";
        for (int pick = 0; pick < 12; ++pick) {
            const auto r = std::uniform_int_distribution<std::size_t>(0, schedule.order.size() - 1)(random);
            const auto i = std::uniform_int_distribution<std::size_t>(0, schedule.order[r].size() - 1)(random);
            const auto spare = slack.of({traces::LaneId{r}, static_cast<std::uint32_t>(i)});
            ASSERT_TRUE(spare) << "rank " << r << " action " << i;
            EXPECT_EQ(again.makespan(r, i, *spare), makespan) << "rank " << r << " action " << i;
            EXPECT_EQ(again.makespan(r, i, *spare + 1), makespan + 1) << "rank " << r << " action " << i;
            ++compared;
        }
    }
    EXPECT_GT(compared, 500);
}

} // namespace
