// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::engine {
namespace {

// More than any plan may have, so that what is too large is refused as such and not taken for a small number.
std::int64_t rounded(double value)
{
    constexpr double kMost = 1e18;
    return std::llround(std::clamp(value, -kMost, kMost));
}

std::int64_t scaled(std::int64_t value, double factor) { return rounded(static_cast<double>(value) * factor); }

// Every time and size of a micro-batch times `factor`.
void scaleMicrobatch(CostSpec& costs, double factor)
{
    for (std::int64_t* value : {&costs.forward, &costs.backward, &costs.activationBytes, &costs.wgradBytes, &costs.boundaryBytes})
        *value = scaled(*value, factor);
    for (std::optional<TimeNs>* time : {&costs.inputGrad, &costs.weightGrad, &costs.overlap})
        if (*time) **time = scaled(**time, factor);
    for (StageCosts& stage : costs.measured)
        for (std::int64_t* value : {&stage.forward, &stage.backward, &stage.inputGrad, &stage.weightGrad, &stage.overlap,
                                    &stage.activationBytes, &stage.wgradBytes})
            *value = scaled(*value, factor);
}

Expected<void> setMicrobatchSize(const SweepRequest& request, long long size, Plan& plan)
{
    const double own = samplesOf(plan);
    const long long batch = request.batch > 0 ? request.batch : std::llround(own * plan.pipeline.microbatches);
    if (batch % size != 0) return Error{fmt::format("a batch of {} is no multiple of {}", batch, size)};
    if (batch / size > kMaxActions / 2)
        return Error{fmt::format("a batch of {} makes {} micro-batches of {}; at most {} are possible", batch, batch / size, size, kMaxActions / 2)};
    plan.pipeline.microbatches = static_cast<int>(batch / size);
    if (!plan.model.empty()) plan.model.microbatchRows = static_cast<int>(size);
    scaleMicrobatch(plan.costs, static_cast<double>(size) / own);
    return {};
}

Expected<Plan> withValue(const SweepRequest& request, Plan plan, double value)
{
    const int whole = infoOf(request.axis.quantity).unit == SweepUnit::Count ? static_cast<int>(value) : 0;
    CostSpec& costs = plan.costs;
    switch (request.axis.quantity) {
    case SweepQuantity::Microbatches: plan.pipeline.microbatches = whole; break;
    case SweepQuantity::Ranks: return withShape(std::move(plan), whole, plan.pipeline.chunks);
    case SweepQuantity::Chunks: return withShape(std::move(plan), plan.pipeline.ranks, whole);
    case SweepQuantity::Slices: plan.pipeline.slices = whole; break;
    case SweepQuantity::Group: plan.pipeline.group = whole; break;
    case SweepQuantity::MicrobatchSize:
        if (Expected<void> set = setMicrobatchSize(request, whole, plan); !set.ok()) return set.error();
        break;
    case SweepQuantity::Forward:
        costs.source = CostSource::Assumed;
        costs.forward = std::llround(value);
        break;
    case SweepQuantity::Backward:
        costs.source = CostSource::Assumed;
        costs.inputGrad.reset();
        costs.weightGrad.reset();
        costs.backward = std::llround(value);
        break;
    case SweepQuantity::Latency: costs.latency = std::llround(value); break;
    case SweepQuantity::Bandwidth: costs.bandwidth = value; break;
    case SweepQuantity::BoundaryBytes: costs.boundaryBytes = std::llround(value); break;
    case SweepQuantity::ActivationBytes: costs.activationBytes = std::llround(value); break;
    case SweepQuantity::MemoryLimit: plan.pipeline.memoryLimit = std::llround(value); break;
    case SweepQuantity::Jitter: costs.jitter = value; break;
    case SweepQuantity::Offload: plan.pipeline.offload = value; break;
    case SweepQuantity::RanksPerNode: plan.machine.ranksPerNode = whole; break;
    case SweepQuantity::NodeLatency: plan.machine.between.latency = std::llround(value); break;
    case SweepQuantity::NodeBandwidth: plan.machine.between.bytesPerSecond = value; break;
    case SweepQuantity::Replicas: plan.machine.replicas = whole; break;
    }
    return plan;
}

void addFixedCost(TimeNs fixed, CostTable& costs)
{
    if (fixed == 0) return;
    for (StageCosts& stage : costs.stages) {
        for (TimeNs* time : {&stage.forward, &stage.backward, &stage.inputGrad, &stage.weightGrad}) *time += fixed;
        stage.overlap += 2 * fixed;
    }
}

// A table of `stages` equal ones that together do and hold `share` times what the base's do.
CostTable spread(const CostTable& base, std::size_t stages, double share)
{
    constexpr std::int64_t StageCosts::*kMembers[] = {
        &StageCosts::forward,         &StageCosts::backward,   &StageCosts::inputGrad,   &StageCosts::weightGrad,    &StageCosts::overlap,
        &StageCosts::activationBytes, &StageCosts::wgradBytes, &StageCosts::weightBytes, &StageCosts::gradientBytes, &StageCosts::optimizerBytes,
        &StageCosts::optimizer};
    StageCosts one = base.stages.front(); // what is no share of the work stays
    for (const auto member : kMembers) {
        double sum = 0;
        for (const StageCosts& stage : base.stages) sum += static_cast<double>(stage.*member);
        one.*member = rounded(sum * share / static_cast<double>(stages));
    }
    CostTable costs = base;
    costs.stages.assign(stages, one);
    return costs;
}

// Forward and backward of all stages for all micro-batches, one after the other, and the update.
double serialTime(const Plan& plan, const CostTable& costs)
{
    const bool back = plan.pipeline.schedule != "forward-only";
    const double forwards = back && plan.pipeline.recompute == Recompute::Full ? 2 : 1;
    double once = 0;
    double update = 0;
    for (const StageCosts& stage : costs.stages) {
        once += forwards * static_cast<double>(stage.forward) + (back ? static_cast<double>(stage.backward) : 0);
        update += static_cast<double>(stage.optimizer);
    }
    return once * plan.pipeline.microbatches * plan.pipeline.parts() + update;
}

// The costs that the plan, with the value, has at `ranks`; and the work of the whole on one rank.
Expected<void> scale(const SweepRequest& request, const Plan& base, PointInput& input)
{
    Expected<CostTable> before = costsOf(base);
    if (!before.ok()) return before.error();
    addFixedCost(request.fixedPerAction, before.value());
    const double growth = request.scaling == Scaling::Weak ? static_cast<double>(input.plan.pipeline.ranks) / base.pipeline.ranks : 1;
    input.serialTime = serialTime(base, before.value()) * growth;
    if (request.scaling == Scaling::Strong && base.costs.source == CostSource::Model) return {};

    Expected<CostTable> plain = costsOf(base);
    input.costs = spread(plain.value(), static_cast<std::size_t>(input.plan.stages()), growth);
    input.costs.machine = input.plan.machine; // without what is of single ranks, where there are others
    // it is the costs that were spread: a model of the plan's size has no say in them
    input.plan.model = {};
    input.plan.partition.clear();
    input.plan.costs.source = CostSource::Assumed;
    return {};
}

} // namespace

namespace {

Expected<void> checkShape(const Plan& plan)
{
    if (plan.pipeline.schedule != "custom") return checkRequest(requestOf(plan.pipeline));
    const Expected<Schedule> schedule = scheduleOf(plan);
    return schedule.ok() ? Expected<void>{} : Expected<void>{schedule.error()};
}

} // namespace

double samplesOf(const Plan& plan) { return plan.model.empty() ? 1 : plan.model.microbatchRows; }

Expected<PointInput> pointInput(const SweepRequest& request, const std::string& schedule, double value)
{
    const Plan base = withSchedule(request.plan, schedule);
    Expected<Plan> plan = withValue(request, base, value);
    if (!plan.ok()) return plan.error();
    PointInput input{.plan = std::move(plan).value(), .costs = {}};
    input.samples = request.axis.quantity == SweepQuantity::MicrobatchSize ? value : samplesOf(request.plan);
    // before anything is made for each of its stages
    if (Expected<void> shape = checkShape(input.plan); !shape.ok()) return shape.error();
    if (request.scaling != Scaling::None)
        if (Expected<void> done = scale(request, base, input); !done.ok()) return done.error();
    if (Expected<void> sound = checkPlan(input.plan); !sound.ok()) return sound.error();
    if (input.costs.stages.empty()) {
        Expected<CostTable> costs = costsOf(input.plan);
        if (!costs.ok()) return costs.error();
        input.costs = std::move(costs).value();
    }
    addFixedCost(request.fixedPerAction, input.costs);
    return input;
}

} // namespace stagecraft::engine
