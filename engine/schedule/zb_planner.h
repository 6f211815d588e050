// SPDX-License-Identifier: Apache-2.0
//
// The automatic zero-bubble heuristic (Qi et al. 2023, arXiv 2401.10241 sec. 3.1; its eight variants as in the authors' open
// program): orders forwards F, input gradients I and weight gradients W of stages that follow one another, one per rank, by
// their times, the time of a transfer, and how much each may hold.
//
//   before the first I   as many F as memory allows and the wait for it has room for
//   then, for each i     a round of F from the first stage to the last, then the I of micro-batch i from the last to the first;
//                        W where the wait before an F or I has room for it, where a shorter wait would make this stage's bubble
//                        the largest of all, and where memory has run out
//   at the end           the W that are left
//
// An order is made as it is timed, action after action, each after what it needs: it is always legal.
//
//   ZbPlanner planner(stages, m, transfer);
//   if (planner.plan({.greedyWeights = true}, stop)) best = std::min(best, planner.longestSpan());
#pragma once

#include "engine/schedule/schedule.h"
#include "traces/base/units.h"

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace stagecraft::engine {

struct ZbStage {
    traces::TimeNs forward = 1;
    traces::TimeNs inputGrad = 1;
    traces::TimeNs weightGrad = 1;
    traces::Bytes activations = 2; // from F to I
    traces::Bytes forWeights = 1;  // the part of them that stays until W
    traces::Bytes limit = 0;       // at least `activations`
};

// The three questions that the heuristic leaves open; the answers that give the shortest plan depend on the costs.
struct ZbVariant {
    bool waitForFirst = false;  // before the first I: leave out a forward that would delay it
    bool skipForwards = false;  // leave out a forward of a round where the next stage has two in store and would idle no longer
    bool greedyWeights = false; // fill a wait that is too short for a W with one even where the bubble is not the largest
};

class ZbPlanner {
public:
    ZbPlanner(std::vector<ZbStage> stages, int microbatches, traces::TimeNs transfer);

    // False where it was stopped: there is no plan then.
    bool plan(const ZbVariant& variant, const std::stop_token& stop);

    [[nodiscard]] traces::TimeNs longestSpan() const; // of all stages, from their first start to their last end
    [[nodiscard]] std::span<const ActionKind> order(int stage) const { return progress_[static_cast<std::size_t>(stage)].order; }

private:
    struct Progress {
        traces::TimeNs begin = 0; // of the first forward
        traces::TimeNs clock = 0; // end of the last action
        traces::TimeNs bubble = 0; // waits since the first forward
        traces::Bytes held = 0;
        int forwards = 0;
        int inputGrads = 0;
        int weightGrads = 0;
        std::vector<ActionKind> order;

        [[nodiscard]] bool hasWeights() const { return weightGrads < inputGrads; }
    };

    void begin();
    void warmUp();
    void trimWarmUp(std::vector<int>& extra) const;
    void chooseForwards();
    [[nodiscard]] bool nextCanDoWithout(std::size_t stage) const;
    void forwardsOfARound();
    void inputGradsOfARound();

    void put(std::size_t stage, ActionKind kind);
    void putForward(std::size_t stage);
    void putInputGrad(std::size_t stage);
    void makeRoom(std::size_t stage, traces::Bytes more);
    void fillWait(std::size_t stage, traces::TimeNs until);
    [[nodiscard]] traces::TimeNs arrival(std::size_t stage, ActionKind kind) const;
    [[nodiscard]] std::size_t slot(std::size_t stage, int microbatch) const;

    std::vector<ZbStage> stages_;
    int microbatches_;
    traces::TimeNs transfer_;
    ZbVariant variant_;

    std::vector<Progress> progress_;
    std::vector<char> takesForward_; // of this round
    traces::TimeNs largestBubble_ = 0;
    std::vector<traces::TimeNs> forwardEnds_; // by slot()
    std::vector<traces::TimeNs> inputGradEnds_;
};

} // namespace stagecraft::engine
