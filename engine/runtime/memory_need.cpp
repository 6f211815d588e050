// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/memory_need.h"

#include "engine/runtime/replica_part.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

namespace stagecraft::runtime {

using namespace engine;

namespace {

double elementsOf(const std::vector<std::int64_t>& shape)
{
    return std::accumulate(shape.begin(), shape.end(), 1.0, [](double product, std::int64_t size) {
        return product * static_cast<double>(size);
    });
}

// A run makes its whole batch before it starts: inputs and targets of all micro-batches.
double batchBytes(const Plan& plan)
{
    const int rows = plan.model.microbatchRows;
    const double inputs = elementsOf(inputShape(plan.model, rows)) * (tokenInput(plan.model) ? static_cast<int>(sizeof(std::int64_t)) : valueBytes(plan.run.precision));
    const double targets =
        elementsOf(targetShape(plan.model, rows)) * (plan.model.loss == Loss::CrossEntropy ? sizeof(std::int64_t) : sizeof(float));
    return (inputs + targets) * plan.pipeline.microbatches;
}

std::string sizeText(double bytes)
{
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    return bytes < kGiB ? traces::formatSize(std::llround(bytes)) : fmt::format("{:.3g} GiB", bytes / kGiB);
}

} // namespace

double peakActivations(const std::vector<Action>& order, const CostTable& costs)
{
    const auto unitOf = [](const traces::Work& work) { return std::tuple(work.flow, work.stage, work.microbatch); };
    std::set<std::tuple<traces::Flow, Stage, MicroBatch>> recomputed; // keep their input alone until then
    for (const Action& action : order)
        if (action.kind() == ActionKind::Recompute) recomputed.insert(unitOf(action.work));
    double held = 0;
    double most = 0;
    for (const Action& action : order)
        engine::forEachWork(action, [&](const traces::Work& work) {
            const StageCosts& stage = costs.stages[index(work.stage)];
            const double input = recomputed.contains(unitOf(work)) ? static_cast<double>(stage.inputBytes) : 0;
            const auto kept = static_cast<double>(stage.activationBytes);
            const auto forWeights = static_cast<double>(stage.wgradBytes);
            switch (work.kind) {
            case ActionKind::Forward: held += recomputed.contains(unitOf(work)) ? input : kept; break;
            case ActionKind::Recompute: held += kept; break;
            case ActionKind::Backward: held -= kept + input; break;
            case ActionKind::InputGrad: held += forWeights - kept - input; break;
            case ActionKind::WeightGrad: held -= forWeights; break;
            default: break;
            }
            most = std::max(most, held);
        });
    return most;
}

namespace {

// The most weights that UNSHARD has brought together at one time.
double peakGathered(const std::vector<Action>& order, const CostTable& costs)
{
    double held = 0;
    double most = 0;
    for (const Action& action : order) {
        const auto weights = static_cast<double>(costs.stages[index(action.stage())].weightBytes);
        if (action.kind() == ActionKind::Unshard) held += weights;
        if (action.kind() == ActionKind::Reshard) held -= weights;
        most = std::max(most, held);
    }
    return most;
}

} // namespace

MemoryNeed memoryNeed(const Plan& plan, const Schedule& schedule, const CostTable& costs)
{
    MemoryNeed need;
    double weights = 0;
    double gradients = 0;
    for (const StageCosts& stage : costs.stages) {
        weights += static_cast<double>(stage.weightBytes);
        gradients += static_cast<double>(stage.gradientBytes);
        need.standing += static_cast<double>(stage.optimizerBytes);
    }
    need.standing += weights + gradients;
    const double replicas = plan.machine.replicas;
    const double optimizer = need.standing - weights - gradients;
    const bool gathers = gathersWeights(schedule) || plan.pipeline.sharding == Sharding::Zero3;
    need.standing = (gathers ? 1 : replicas) * weights + replicas * gradients + (dividesUpdate(plan) ? 1 : replicas) * optimizer;
    if (schedule.twoDirections()) need.standing *= 2; // a copy of everything for each
    need.data = replicas * batchBytes(plan);
    if (plan.run.check != CheckMode::Off) need.check = weights + gradients + need.data;
    for (const std::vector<Action>& order : schedule.order) need.gathered += (replicas - 1) * peakGathered(order, costs);
    if (schedule.inference()) return need; // each forward lets go of them at its end
    for (const std::vector<Action>& order : schedule.order) need.activations += replicas * peakActivations(order, costs);
    return need;
}

Expected<std::string> judgeMemory(const MemoryNeed& need, const HostMemory& memory)
{
    if (memory.total == 0) return std::string();
    const auto total = static_cast<double>(memory.total);
    const auto available = static_cast<double>(memory.available);
    const std::string lasting =
        fmt::format("weights, gradients and optimizer state {}, inputs and targets {}{}", sizeText(need.standing),
                    sizeText(need.data), need.check > 0 ? ", the gradient check " + sizeText(need.check) : "");
    if (need.lasting() > total)
        return Error{fmt::format("the run needs {} before it keeps any activation ({}), and {} is all the memory there is: take a "
                                 "smaller model, fewer or smaller micro-batches, optimizer sgd, or no check",
                                 sizeText(need.lasting()), lasting, sizeText(total))};
    if (need.all() <= available) return std::string();
    return fmt::format("the run may hold up to {} at once (activations {}, {}), and {} of memory is available: the system may "
                       "slow it down or end it. Take smaller micro-batches, a schedule that keeps fewer of them, optimizer sgd, "
                       "or no check; or end other programs",
                       sizeText(need.all()), sizeText(need.activations), lasting, sizeText(available));
}

} // namespace stagecraft::runtime
