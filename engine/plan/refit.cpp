// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/refit.h"

#include "engine/model/tied.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <span>

namespace stagecraft::engine {
namespace {

using traces::counted;

// A cost of a stage, and the count of a layer that says how large its share of it is.
struct Share {
    std::int64_t StageCosts::*cost;
    double (*weight)(const LayerCounts& layer);
};

double forwardFlops(const LayerCounts& layer) { return layer.forwardFlops; }
double backwardFlops(const LayerCounts& layer) { return layer.backwardFlops; }
double bothFlops(const LayerCounts& layer) { return layer.forwardFlops + layer.backwardFlops; }
double parameters(const LayerCounts& layer) { return static_cast<double>(layer.parameters); }
double activationBytes(const LayerCounts& layer) { return static_cast<double>(layer.activationBytes); }
double wgradBytes(const LayerCounts& layer) { return static_cast<double>(layer.wgradBytes); }

// Not what stages hand over: that is a cut's, and the model tells it.
constexpr std::array<Share, 11> kShares{{{&StageCosts::forward, forwardFlops},
                                         {&StageCosts::backward, backwardFlops},
                                         {&StageCosts::inputGrad, backwardFlops},
                                         {&StageCosts::weightGrad, backwardFlops},
                                         {&StageCosts::overlap, bothFlops},
                                         {&StageCosts::optimizer, parameters},
                                         {&StageCosts::activationBytes, activationBytes},
                                         {&StageCosts::wgradBytes, wgradBytes},
                                         {&StageCosts::weightBytes, parameters},
                                         {&StageCosts::gradientBytes, parameters},
                                         {&StageCosts::optimizerBytes, parameters}}};

using LayerShares = std::array<double, kShares.size()>;

// What each layer has of the costs of its stage; where no layer of a stage counts for a cost, all have the same.
std::vector<LayerShares> sharesOf(const std::vector<StageCosts>& stages, const Partition& partition, const std::vector<LayerCounts>& layers)
{
    std::vector<LayerShares> shares;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const auto own = std::span(layers).subspan(shares.size(), static_cast<std::size_t>(partition[s]));
        LayerShares sums{};
        for (std::size_t c = 0; c < kShares.size(); ++c)
            for (const LayerCounts& layer : own) sums[c] += kShares[c].weight(layer);
        for (const LayerCounts& layer : own) {
            LayerShares share{};
            for (std::size_t c = 0; c < kShares.size(); ++c) {
                const double part = sums[c] > 0 ? kShares[c].weight(layer) / sums[c] : 1 / static_cast<double>(own.size());
                share[c] = static_cast<double>(stages[s].*kShares[c].cost) * part;
            }
            shares.push_back(share);
        }
    }
    return shares;
}

bool splitsExactly(const std::vector<StageCosts>& stages)
{
    for (const StageCosts& stage : stages)
        if (stage.inputGrad + stage.weightGrad != stage.backward) return false;
    return true;
}

std::vector<StageCosts> byLayers(const std::vector<StageCosts>& stages, const Partition& before, const Partition& after,
                                 const std::vector<LayerCounts>& layers)
{
    const std::vector<LayerShares> shares = sharesOf(stages, before, layers);
    std::vector<StageCosts> fitted;
    std::size_t next = 0;
    for (const int count : after) {
        LayerShares sums{};
        for (int i = 0; i < count; ++i, ++next)
            for (std::size_t c = 0; c < kShares.size(); ++c) sums[c] += shares[next][c];
        StageCosts& stage = fitted.emplace_back();
        for (std::size_t c = 0; c < kShares.size(); ++c) stage.*kShares[c].cost = std::llround(sums[c]);
    }
    return fitted;
}

std::vector<StageCosts> cut(const std::vector<StageCosts>& stages, std::size_t parts)
{
    std::vector<StageCosts> fitted;
    for (const StageCosts& whole : stages)
        for (std::size_t i = 0; i < parts; ++i) {
            StageCosts stage = whole; // hands over as much as the whole stage
            for (const Share& share : kShares) stage.*share.cost = std::llround(static_cast<double>(whole.*share.cost) / static_cast<double>(parts));
            fitted.push_back(stage);
        }
    return fitted;
}

std::vector<StageCosts> join(const std::vector<StageCosts>& stages, std::size_t parts)
{
    std::vector<StageCosts> fitted;
    for (std::size_t s = 0; s < stages.size(); s += parts) {
        StageCosts stage = stages[s + parts - 1];
        stage.inputBytes = stages[s].inputBytes;
        for (const Share& share : kShares) {
            stage.*share.cost = 0;
            for (std::size_t i = 0; i < parts; ++i) stage.*share.cost += stages[s + i].*share.cost;
        }
        fitted.push_back(stage);
    }
    return fitted;
}

Expected<Refit> byModel(const Plan& from, const Plan& to)
{
    const Expected<Partition> before = partitionOf(from);
    if (!before.ok()) return before.error();
    const Expected<Partition> after = partitionOf(to);
    if (!after.ok()) return after.error();
    const std::vector<StageCosts>& stages = from.costs.measured;
    if (before.value() == after.value()) return Refit{stages, ""};
    return Refit{byLayers(stages, before.value(), after.value(), heldCounts(to.model, after.value().size(), to.run.precision)),
                 fmt::format("the layers were in stages of {} and are in stages of {}: times given out to the layers by their FLOPs, and added up anew",
                             fmt::join(before.value(), ", "), fmt::join(after.value(), ", "))};
}

Expected<Refit> byNumber(const Plan& from, const Plan& to)
{
    const std::vector<StageCosts>& stages = from.costs.measured;
    const auto before = stages.size();
    const auto after = static_cast<std::size_t>(to.stages());
    if (before == after) return Refit{stages, ""};
    if (after % before == 0)
        return Refit{cut(stages, after / before), fmt::format("no model tells what the {} are made of: each is cut into {}", counted(before, "stage"),
                                                              counted(after / before, "equal part"))};
    if (before % after == 0)
        return Refit{join(stages, before / after), fmt::format("each of the {} is {} of those {}, one after the other", counted(after, "stage"),
                                                               before / after, before)};
    return Error{fmt::format("{} with {} make {}, and the times are of {}: without a model they can only be cut into equal parts or joined; take a "
                             "number of stages that is a multiple or a part of {}",
                             counted(to.pipeline.ranks, "rank"), counted(to.pipeline.chunks, "chunk"), counted(after, "stage"),
                             counted(before, "stage"), before)};
}

} // namespace

Expected<Refit> refitCosts(const Plan& from, const Plan& to)
{
    Expected<Refit> refit = to.model.empty() ? byNumber(from, to) : byModel(from, to);
    if (!refit.ok() || refit.value().how.empty() || !splitsExactly(from.costs.measured)) return refit;
    for (StageCosts& stage : refit.value().stages) stage.weightGrad = stage.backward - stage.inputGrad; // rounding must not part them
    return refit;
}

} // namespace stagecraft::engine
