// SPDX-License-Identifier: Apache-2.0
//
// Chimera (Li and Hoefler, SC'21, arXiv 2107.06925), p = 4, m = 4: two pipelines in opposite directions, d with stage s on rank s,
// u with stage s on rank p-1-s, each with half of the micro-batches; what one leaves idle the other fills.
//
//   rank 0 | dF0 dF1         uF0 uB0 uF1 uB1 dB0     dB1
//   rank 1 |     dF0 uF0 dF1 uF1 uB0 dB0 uB1     dB1
//   rank 2 |     uF0 dF0 uF1 dF1 dB0 uB0 dB1     uB1
//   rank 3 | uF0 uF1         dF0 dB0 dF1 dB1 uB0     uB1
//
// The paper draws a unit of p micro-batches, merged from two 1F1B pipelines, and concatenates units for more. It gives no rule for
// the order within, so it is derived here: a list schedule of slots in which F and B take one each (the paper's assumption for its
// formula). In every slot a rank takes what is ready, a backward before a forward, of equals the lower micro-batch, then the stage
// further on. A rank keeps at most p/2 micro-batches of each direction, which is a unit; so the next unit's forwards enter as the
// last one's backwards leave (the paper's direct concatenation, Fig. 7a).
// That gives the paper's figures (Table 2) for m that are multiples of p: makespan 2m + p - 2 slots, bubble (p-2)/(2m+p-2),
// activations from p/2 + 1 on the outer ranks to p in the middle, whatever m. There are 2 copies of the weights, whose gradients the
// mirrored ranks add up. p and m are even.
#include "engine/schedule/families.h"
#include "engine/schedule/mirrored.h"

#include <algorithm>
#include <array>

namespace stagecraft::engine {
namespace {

// One direction's pipeline while the slots are filled: how far each of its stages is.
class Pipeline {
public:
    Pipeline(Flow flow, int stages, int microbatches)
        : flow_(flow), stages_(stages), microbatches_(microbatches), forwards_(static_cast<std::size_t>(stages), 0),
          backwards_(static_cast<std::size_t>(stages), 0)
    {
    }

    // What the stage could take now by what was done before this slot; the micro-batch that it would be.
    [[nodiscard]] bool forwardReady(int stage) const
    {
        const int i = forwards_[at(stage)];
        return i < microbatches_ && i - backwards_[at(stage)] < stages_ / 2 && (stage == 0 || forwards_[at(stage - 1)] > i);
    }
    [[nodiscard]] bool backwardReady(int stage) const
    {
        const int i = backwards_[at(stage)];
        return i < forwards_[at(stage)] && (stage + 1 == stages_ || backwards_[at(stage + 1)] > i);
    }
    [[nodiscard]] int next(int stage, ActionKind kind) const { return (kind == ActionKind::Forward ? forwards_ : backwards_)[at(stage)]; }
    [[nodiscard]] Flow flow() const { return flow_; }

    void take(int stage, ActionKind kind) { ++(kind == ActionKind::Forward ? forwards_ : backwards_)[at(stage)]; }

private:
    static std::size_t at(int stage) { return static_cast<std::size_t>(stage); }

    Flow flow_;
    int stages_;
    int microbatches_;
    std::vector<int> forwards_; // done, by stage
    std::vector<int> backwards_;
};

struct Choice {
    Pipeline* pipeline = nullptr;
    int stage = 0;
    ActionKind kind = ActionKind::None;

    [[nodiscard]] int microbatch() const { return pipeline->next(stage, kind); }
    // Of two that are ready.
    [[nodiscard]] bool comesBefore(const Choice& other) const
    {
        if (kind != other.kind) return kind == ActionKind::Backward;
        if (microbatch() != other.microbatch()) return microbatch() < other.microbatch();
        return stage > other.stage;
    }
};

Choice bestOf(std::array<Pipeline, 2>& pipelines, int ranks, int rank)
{
    Choice best;
    for (Pipeline& pipeline : pipelines) {
        const int stage = pipeline.flow() == Flow::Down ? rank : ranks - 1 - rank;
        const ActionKind kind = pipeline.backwardReady(stage)  ? ActionKind::Backward
                                : pipeline.forwardReady(stage) ? ActionKind::Forward
                                                               : ActionKind::None;
        const Choice choice{&pipeline, stage, kind};
        if (kind != ActionKind::None && (best.pipeline == nullptr || choice.comesBefore(best))) best = choice;
    }
    return best;
}

Schedule chimeraSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = mirroredSchedule(request, 2 * static_cast<std::size_t>(m));
    std::array pipelines{Pipeline(Flow::Down, p, m / 2), Pipeline(Flow::Up, p, m / 2)};
    std::vector<Choice> slot(static_cast<std::size_t>(p));
    for (std::size_t left = 2 * static_cast<std::size_t>(m) * static_cast<std::size_t>(p); left > 0;) {
        if (request.stop.stop_requested()) break;
        for (int r = 0; r < p; ++r) slot[static_cast<std::size_t>(r)] = bestOf(pipelines, p, r);
        for (int r = 0; r < p; ++r) {
            const Choice& choice = slot[static_cast<std::size_t>(r)];
            if (choice.pipeline == nullptr) continue;
            schedule.order[static_cast<std::size_t>(r)].push_back(
                traces::makeAction(choice.kind, Stage{choice.stage}, MicroBatch{choice.microbatch()}, choice.pipeline->flow()));
            choice.pipeline->take(choice.stage, choice.kind);
            --left;
        }
    }
    return schedule;
}

} // namespace

Generator chimera()
{
    return {{"chimera", "Chimera", "Two pipelines run in opposite directions over the same ranks and fill each other's bubbles.",
             "p and m even; one chunk per rank and direction, so two copies of the weights",
             "Li and Hoefler 2021, arXiv 2107.06925", 1, 1, {{"paper", "Chimera, direct concatenation"}}},
            &chimeraSchedule, &checkMirrored};
}

} // namespace stagecraft::engine
