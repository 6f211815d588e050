// SPDX-License-Identifier: Apache-2.0
//
// Automatic zero bubble (Qi et al. 2023, arXiv 2401.10241 sec. 3.1), planned by the costs of each stage and by how much a rank
// may keep, p = 3, m = 4, equal times, limit of p micro-batches ("ZB-1p") and of 2p ("ZB-2p"):
//
//   1p, rank 0 | F0 F1 F2       I0 W0 F3 I1 W1    I2 W2    I3 W3
//       rank 1 |    F0 F1    I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//       rank 2 |       F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//   2p, rank 0 | F0 F1 F2 F3    I0 W0    I1 W1    I2 W2    I3 W3
//       rank 1 |    F0 F1 F2 I0 F3 I1    I2    I3 W0 W1 W2 W3
//       rank 2 |       F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3
//
// The heuristic (zb_planner.h) leaves three questions open; all eight plans are made, and the one whose longest rank is the shortest
// is taken, the first of equals. Without costs F, I and W take the same time, transfers none, and half of what F keeps stays
// until W; without a limit it is p micro-batches. Any p and m; the limit must hold one micro-batch.
#include "engine/schedule/families.h"
#include "engine/schedule/zb_planner.h"
#include "engine/simulate/cost_table.h"
#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stagecraft::engine {
namespace {

constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max() / 2; // room to add one more micro-batch

Bytes largestActivations(const CostTable& costs)
{
    Bytes largest = 0;
    for (const StageCosts& stage : costs.stages) largest = std::max({largest, stage.activationBytes, stage.wgradBytes});
    return largest;
}

Expected<void> checkZbAuto(const ScheduleRequest& request)
{
    const CostTable* costs = request.costs;
    const auto refused = [&](const std::string& why) { return Error{fmt::format("schedule {}: {}", request.name, why)}; };
    if (request.memoryLimit < 0) return refused(fmt::format("a memory limit of {} bytes is not allowed; 0 or more", request.memoryLimit));
    const Bytes largest = costs ? largestActivations(*costs) : 0;
    if (request.memoryLimit > 0 && largest == 0)
        return refused(fmt::format("nothing says what a forward keeps, so a memory limit of {} cannot be planned for; give the bytes of "
                                   "its activations, or leave the limit out",
                                   traces::formatSize(request.memoryLimit)));
    if (request.memoryLimit > 0 && request.memoryLimit < largest)
        return refused(fmt::format("a memory limit of {} is not allowed, one micro-batch already keeps {}; the nearest is {}",
                                   traces::formatSize(request.memoryLimit), traces::formatSize(largest), traces::exactSize(largest)));
    if (!costs) return {};
    if (costs->stages.size() != static_cast<std::size_t>(request.ranks))
        return refused(fmt::format("the costs are of {}, there are {}; give one entry per stage",
                                   traces::counted(costs->stages.size(), "stage"), request.ranks));
    double longest = 0; // if no two actions overlapped
    for (const StageCosts& stage : costs->stages)
        longest += static_cast<double>(stage.forward) + static_cast<double>(stage.inputGrad) + static_cast<double>(stage.weightGrad) +
                   2 * static_cast<double>(costs->transfer);
    if (longest * request.microbatches > static_cast<double>(traces::kMostTime))
        return refused(fmt::format("the step could take {:.3g} s, more than a clock of nanoseconds can tell; take shorter times or fewer "
                                   "micro-batches",
                                   longest * request.microbatches / 1e9));
    return {};
}

std::vector<ZbStage> stagesOf(const ScheduleRequest& request)
{
    std::vector<ZbStage> stages(static_cast<std::size_t>(request.ranks));
    const bool sized = request.costs && largestActivations(*request.costs) > 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        ZbStage& stage = stages[s];
        if (request.costs) {
            const StageCosts& costs = request.costs->stages[s];
            stage.forward = costs.forward;
            stage.inputGrad = costs.inputGrad;
            stage.weightGrad = costs.weightGrad;
            if (sized) {
                stage.activations = costs.activationBytes;
                stage.forWeights = costs.wgradBytes;
            }
        }
        const bool uncountable = std::max(stage.activations, stage.forWeights) > kNoLimit / request.ranks;
        stage.limit = request.memoryLimit > 0 ? std::min(request.memoryLimit, kNoLimit)
                      : uncountable           ? kNoLimit
                                              : std::max(stage.activations, stage.forWeights) * request.ranks;
    }
    return stages;
}

// The best plan's kinds of actions, stage by stage; empty where it was stopped.
std::vector<std::vector<ActionKind>> bestPlan(const ScheduleRequest& request)
{
    ZbPlanner planner(stagesOf(request), request.microbatches, request.costs ? request.costs->transfer : 0);
    std::vector<std::vector<ActionKind>> best;
    traces::TimeNs shortest = std::numeric_limits<traces::TimeNs>::max();
    for (const bool waitForFirst : {true, false})
        for (const bool skipForwards : {true, false})
            for (const bool greedyWeights : {true, false}) {
                const ZbVariant variant{waitForFirst, skipForwards, greedyWeights};
                if (!planner.plan(variant, request.stop)) return {};
                if (planner.longestSpan() >= shortest) continue;
                shortest = planner.longestSpan();
                best.resize(static_cast<std::size_t>(request.ranks));
                for (int s = 0; s < request.ranks; ++s) {
                    const auto order = planner.order(s);
                    best[static_cast<std::size_t>(s)].assign(order.begin(), order.end());
                }
            }
    return best;
}

Schedule zbAutoSchedule(const ScheduleRequest& request)
{
    Schedule schedule = emptySchedule(request, 3 * static_cast<std::size_t>(request.microbatches));
    const std::vector<std::vector<ActionKind>> plan = bestPlan(request);
    for (std::size_t s = 0; s < plan.size(); ++s) {
        if (request.stop.stop_requested()) break;
        int forwards = 0;
        int inputGrads = 0;
        int weightGrads = 0;
        for (const ActionKind kind : plan[s]) {
            int& next = kind == ActionKind::Forward ? forwards : kind == ActionKind::InputGrad ? inputGrads : weightGrads;
            schedule.order[s].push_back(traces::makeAction(kind, Stage{s}, MicroBatch{next++}));
        }
    }
    return schedule;
}

} // namespace

Generator zbAuto()
{
    return {{"zb-auto", "Automatic zero bubble",
             "Planned by the costs of each stage and a memory limit: close to ZB-H1 with p micro-batches, to no bubble with 2p.",
             "any number of ranks and micro-batches; a memory limit that holds one micro-batch at least; one chunk per rank",
             "Zero Bubble Pipeline Parallelism, Qi et al. 2023, arXiv 2401.10241 section 3.1", 1, 1,
             {{"paper", "ZB-1p, ZB-2p"}, {"sail-sg", "zero-bubble schedule (zb.py)"}}, true},
            &zbAutoSchedule, &checkZbAuto};
}

} // namespace stagecraft::engine
