// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/v_planner.h"

#include "engine/simulate/cost_table.h"

#include <algorithm>
#include <array>
#include <optional>

namespace stagecraft::engine {
namespace {

constexpr std::size_t kPasses = 4; // without weight gradients

// Of a chunk. Doubles, for they hold every sum of costs that can be given.
struct ChunkCosts {
    double forward = 1;
    double inputGrad = 1;
    double weightGrad = 1;
    double transfer = 0;
    double activation = 1;     // kept from the forward on
    double weightGradPart = 1; // what stays of it until the weight gradient
};

double medianOfRanks(const std::vector<StageCosts>& stages, TimeNs StageCosts::*time)
{
    std::vector<double> means;
    for (std::size_t r = 0; r < stages.size() / 2; ++r)
        means.push_back((static_cast<double>(stages[r].*time) + static_cast<double>(stages[stages.size() - 1 - r].*time)) /
                        2);
    const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
    std::nth_element(means.begin(), middle, means.end());
    return *middle;
}

ChunkCosts chunkCosts(const CostTable* table)
{
    ChunkCosts costs;
    if (!table) return costs;
    costs.forward = medianOfRanks(table->stages, &StageCosts::forward);
    costs.inputGrad = medianOfRanks(table->stages, &StageCosts::inputGrad);
    costs.weightGrad = medianOfRanks(table->stages, &StageCosts::weightGrad);
    costs.transfer = static_cast<double>(table->transfer);
    Bytes activation = 0;
    Bytes weightGradPart = 0;
    for (const StageCosts& stage : table->stages) {
        activation = std::max({activation, stage.activationBytes, stage.wgradBytes});
        weightGradPart = std::max(weightGradPart, stage.wgradBytes);
    }
    if (activation == 0) return costs; // not known: chunks are counted
    costs.activation = static_cast<double>(activation);
    costs.weightGradPart = static_cast<double>(weightGradPart);
    return costs;
}

struct RankState {
    std::vector<VPass> order;
    std::array<std::vector<double>, kPasses> end; // [pass][micro-batch]
    int pending = 0;                              // input gradients without their weight gradient
    double clock = 0;
    double memory = 0;
    double bubble = 0;

    [[nodiscard]] int count(VPass pass) const { return static_cast<int>(end[static_cast<std::size_t>(pass)].size()); }
};

class Planner {
public:
    Planner(const ScheduleRequest& request, const VPlanOptions& options, const VPlan* known)
        : options_(options), known_(known), costs_(chunkCosts(request.costs)), p_(request.ranks), m_(request.microbatches),
          ranks_(static_cast<std::size_t>(p_))
    {
        for (RankState& rank : ranks_)
            for (std::vector<double>& ends : rank.end) ends.reserve(static_cast<std::size_t>(m_));
        // a limit below this one is only let through where there are too few micro-batches to come near it
        limit_ = std::max(2 * p_ * costs_.activation, static_cast<double>(request.memoryLimit));
    }

    VPlan plan(const std::stop_token& stop)
    {
        fill();
        for (int round = 0; round < 2 * m_ && !stop.stop_requested(); ++round) {
            takeInputGrads();
            takeForwards();
        }
        VPlan plan;
        for (RankState& rank : ranks_) {
            while (rank.pending > 0) takeWeightGrad(rank);
            plan.order.push_back(std::move(rank.order));
            plan.bubble.push_back(rank.bubble);
        }
        plan.largestBubble = largestBubble_;
        return plan;
    }

private:
    RankState& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] bool planned(int rank, VPass pass, int number) const
    {
        return number < ranks_[static_cast<std::size_t>(rank)].count(pass);
    }

    // The rank that a pass comes from; none where it begins or turns.
    [[nodiscard]] std::optional<int> rankBefore(int rank, VPass pass) const
    {
        const bool down = pass == VPass::Forward0 || pass == VPass::InputGrad1;
        const int before = down ? rank - 1 : rank + 1;
        if (before < 0 || before >= p_) return std::nullopt;
        return before;
    }

    // When the input of a rank's next action of a pass arrives from another rank.
    std::optional<double> arrival(int rank, VPass pass)
    {
        const std::optional<int> before = rankBefore(rank, pass);
        if (!before) return std::nullopt;
        return at(*before).end[static_cast<std::size_t>(pass)][static_cast<std::size_t>(at(rank).count(pass))] +
               costs_.transfer;
    }

    void take(int r, VPass pass)
    {
        RankState& rank = at(r);
        const double begin = std::max(rank.clock, arrival(r, pass).value_or(0));
        if (rank.count(VPass::Forward0) > 0) rank.bubble += begin - rank.clock;
        largestBubble_ = std::max(largestBubble_, rank.bubble);
        const bool forward = pass == VPass::Forward0 || pass == VPass::Forward1;
        rank.clock = begin + (forward ? costs_.forward : costs_.inputGrad);
        rank.end[static_cast<std::size_t>(pass)].push_back(rank.clock);
        rank.order.push_back(pass);
        rank.memory += forward ? costs_.activation : costs_.weightGradPart - costs_.activation;
        if (!forward) ++rank.pending;
    }

    void takeWeightGrad(RankState& rank) const
    {
        rank.clock += costs_.weightGrad;
        rank.memory -= costs_.weightGradPart;
        rank.order.push_back(VPass::WeightGrad);
        --rank.pending;
    }

    void fill()
    {
        for (int r = 0; r < p_; ++r) take(r, VPass::Forward0);
        for (int r = p_ - 1; r >= 0; --r) {
            if (const std::optional<double> back = arrival(r, VPass::Forward1))
                while (at(r).memory + costs_.activation * (2 + 2 * r) <= limit_ && at(r).clock + costs_.forward <= *back &&
                       at(r).count(VPass::Forward0) < m_)
                    for (int above = 0; above <= r; ++above) take(above, VPass::Forward0);
            take(r, VPass::Forward1);
        }
        VPass next = VPass::Forward0;
        for (int r = 1; r < p_; ++r)
            while (isBehind(at(r), at(r - 1))) {
                for (int below = p_ - 1; below >= r; --below)
                    if (at(below).count(next) < m_) take(below, next);
                next = next == VPass::Forward0 ? VPass::Forward1 : VPass::Forward0;
            }
    }

    [[nodiscard]] bool isBehind(const RankState& rank, const RankState& above) const
    {
        const auto forwards = [](const RankState& of) { return of.count(VPass::Forward0) + of.count(VPass::Forward1); };
        const int back = above.count(VPass::Forward1);
        return forwards(rank) < forwards(above) || (rank.count(VPass::Forward1) <= back && back < m_);
    }

    void takeInputGrads()
    {
        std::vector<int> onChunk1;
        std::vector<int> onChunk0;
        for (int r = 0; r < p_; ++r) {
            const int number = at(r).count(VPass::InputGrad0);
            const bool due = number < at(r).count(VPass::InputGrad1);
            const bool there =
                r == p_ - 1 || planned(r + 1, VPass::InputGrad0, number) || at(r).count(VPass::InputGrad1) >= m_;
            (due && there ? onChunk0 : onChunk1).push_back(r);
        }
        for (auto r = onChunk0.rbegin(); r != onChunk0.rend(); ++r) takeAfterWeightGrads(*r, VPass::InputGrad0, true);
        for (const int r : onChunk1) takeAfterWeightGrads(r, VPass::InputGrad1, options_.weightGradBeforeInputGrad1);
    }

    void takeForwards()
    {
        for (int r = 0; r < p_; ++r) {
            RankState& rank = at(r);
            const std::optional<VPass> pass = nextForward(r);
            if (!pass) continue;
            while (rank.memory + costs_.activation > limit_ && rank.pending > 0) takeWeightGrad(rank);
            takeAfterWeightGrads(r, *pass, options_.weightGradBeforeForward);
        }
    }

    std::optional<VPass> nextForward(int r)
    {
        const int down = at(r).count(VPass::Forward0);
        const int back = at(r).count(VPass::Forward1);
        if (back >= m_) return std::nullopt;
        if (back >= down) return VPass::Forward0;
        if (r == p_ - 1 || planned(r + 1, VPass::Forward1, back)) return VPass::Forward1;
        if (down < m_ && (r == 0 || planned(r - 1, VPass::Forward0, down))) return VPass::Forward0;
        return std::nullopt;
    }

    // Weight gradients that fit into the wait for the input, and one more where the wait that is left is more than this rank
    // may have; `late` allows that one.
    void takeAfterWeightGrads(int r, VPass pass, bool late)
    {
        RankState& rank = at(r);
        if (const std::optional<double> input = arrival(r, pass)) {
            while (rank.pending > 0 && *input >= rank.clock + costs_.weightGrad) takeWeightGrad(rank);
            if (late && rank.pending > 0 && *input - rank.clock > allowedBubble(r) - rank.bubble) takeWeightGrad(rank);
        }
        take(r, pass);
    }

    // The largest of all so far; or what this rank had less than the largest in the plan that is known.
    [[nodiscard]] double allowedBubble(int r) const
    {
        if (!known_) return largestBubble_;
        return std::max(largestBubble_, known_->largestBubble - known_->bubble[static_cast<std::size_t>(r)]);
    }

    VPlanOptions options_;
    const VPlan* known_;
    ChunkCosts costs_;
    int p_;
    int m_;
    double limit_ = 0;
    double largestBubble_ = 0;
    std::vector<RankState> ranks_;
};

} // namespace

VPlan planV(const ScheduleRequest& request, const VPlanOptions& options, const VPlan* known)
{
    return Planner(request, options, known).plan(request.stop);
}

} // namespace stagecraft::engine
