// SPDX-License-Identifier: Apache-2.0
//
// Chimera (Li and Hoefler, SC 2021, arXiv 2107.06925), p = 4, m = 4; d goes from rank 0 to 3, u from 3 to 0:
//
//   rank 0 | dF0 dF1         uF0 uB0 uF1 uB1 dB0     dB1
//   rank 1 |     dF0 uF0 dF1 uF1 uB0 dB0 uB1     dB1
//   rank 2 |     uF0 dF0 uF1 dF1 dB0 uB0 dB1     uB1
//   rank 3 | uF0 uF1         dF0 dB0 dF1 dB1 uB0     uB1
//
// The paper draws a unit of p micro-batches, merged from two 1F1B pipelines, and concatenates units for more. It gives no rule for
// the order within, so it is derived here: a list schedule of slots. In every slot a rank takes what is ready, a backward before a
// forward. p and m are even. There are 2 copies of the weights, whose gradients the mirrored ranks add up.
//
// Direct concatenation (Fig. 7a). F and B take a slot each (the paper's assumption for its formula). Of equals the lower micro-batch
// goes first, then the stage further on. A rank keeps at most p/2 micro-batches of each direction, which is a unit; so the next unit's
// forwards enter as the last one's backwards leave. That gives the paper's figures (Table 2) for m that are multiples of p: makespan
// 2m + p - 2 slots, bubble (p-2)/(2m+p-2), activations from p/2 + 1 on the outer ranks to p in the middle, whatever m.
//
// A backward takes about as long as two forwards, so that bubbles open between units. Two ways of the paper close them:
//
// Forward doubling (Fig. 7b). A forward takes two micro-batches at once and a slot, as a backward of one does; in the order they stand
// one behind the other. A unit is 2p micro-batches, and so is what a rank keeps. Derived: of equals the stage further on goes first,
// then the lower micro-batch, and a direction has at most 2p in flight. That takes 3m/2 + p - 2 slots for m that are multiples of
// 2p: nobody waits but while the first unit enters and the last one leaves, where a slot is two forwards or one backward. (With the
// rule of the direct way, slots are lost from p = 8 on.) A direction's last micro-batch goes alone where their number is odd.
//
//   rank 0 | dF0,1 dF2,3       uF0,1 uB0   uB1   uF2,3 uB2   uB3   dB0         dB1   dB2   dB3        m = 8, a column is a slot
//   rank 1 |       dF0,1 uF0,1 dF2,3 uF2,3 uB0   uB1   dB0   uB2   uB3   dB1   dB2   dB3
//
// Backward halving (Fig. 7c). The same order with halves of micro-batches: a whole one goes forward, and its halves come back one by
// one, so that all slots are as long as a forward. A half is written as a slice: number 2i + h. For m that are multiples of p that
// takes 3m + p - 2 slots, with the activations of the direct way.
#include "engine/schedule/families.h"
#include "engine/schedule/mirrored.h"

#include <algorithm>
#include <array>

namespace stagecraft::engine {
namespace {

// What tells one way of concatenation from another. Units are micro-batches, or halves of them.
struct Rule {
    int forwardsAtOnce = 1; // units of a slot
    int inFlight = 1;       // units that a stage may have between forward and backward
    bool furtherStageFirst = false; // of two forwards or two backwards; else the lower unit
    int unitsPerMicrobatch = 1;
};

Rule ruleOf(Concatenation concatenation, int ranks)
{
    switch (concatenation) {
    case Concatenation::Doubling: return {2, 2 * ranks, true, 1};
    case Concatenation::Halving: return {2, 2 * ranks, true, 2};
    default: return {1, ranks / 2, false, 1};
    }
}

// One direction's pipeline while the slots are filled: how far each of its stages is.
class Pipeline {
public:
    Pipeline(Flow flow, int stages, int units, const Rule& rule)
        : flow_(flow), stages_(stages), units_(units), rule_(rule), forwards_(static_cast<std::size_t>(stages), 0),
          backwards_(static_cast<std::size_t>(stages), 0)
    {
    }

    // How many units the stage could take forward in this slot by what was done before it.
    [[nodiscard]] int forwardsReady(int stage) const
    {
        const int done = forwards_[at(stage)];
        const int count = std::min(rule_.forwardsAtOnce, units_ - done);
        const bool fits = done + count - backwards_[at(stage)] <= rule_.inFlight;
        return fits && (stage == 0 || forwards_[at(stage - 1)] >= done + count) ? count : 0;
    }
    [[nodiscard]] int backwardsReady(int stage) const
    {
        const int done = backwards_[at(stage)];
        return done < forwards_[at(stage)] && (stage + 1 == stages_ || backwards_[at(stage + 1)] > done) ? 1 : 0;
    }
    [[nodiscard]] int next(int stage, ActionKind kind) const { return (kind == ActionKind::Forward ? forwards_ : backwards_)[at(stage)]; }
    [[nodiscard]] Flow flow() const { return flow_; }

    void take(int stage, ActionKind kind, int count) { (kind == ActionKind::Forward ? forwards_ : backwards_)[at(stage)] += count; }

private:
    static std::size_t at(int stage) { return static_cast<std::size_t>(stage); }

    Flow flow_;
    int stages_;
    int units_;
    Rule rule_;
    std::vector<int> forwards_; // done, by stage
    std::vector<int> backwards_;
};

struct Choice {
    Pipeline* pipeline = nullptr;
    int stage = 0;
    ActionKind kind = ActionKind::None;
    int count = 0; // of units, from next() on

    [[nodiscard]] int unit() const { return pipeline->next(stage, kind); }
    // Of two that are ready.
    [[nodiscard]] bool comesBefore(const Choice& other, const Rule& rule) const
    {
        if (kind != other.kind) return kind == ActionKind::Backward;
        if (rule.furtherStageFirst && stage != other.stage) return stage > other.stage;
        if (unit() != other.unit()) return unit() < other.unit();
        return stage > other.stage;
    }
};

Choice bestOf(std::array<Pipeline, 2>& pipelines, const Rule& rule, int ranks, int rank)
{
    Choice best;
    for (Pipeline& pipeline : pipelines) {
        const int stage = pipeline.flow() == Flow::Down ? rank : ranks - 1 - rank;
        const int backwards = pipeline.backwardsReady(stage);
        const int forwards = pipeline.forwardsReady(stage);
        if (backwards + forwards == 0) continue;
        const Choice choice = backwards > 0 ? Choice{&pipeline, stage, ActionKind::Backward, backwards}
                                            : Choice{&pipeline, stage, ActionKind::Forward, forwards};
        if (best.pipeline == nullptr || choice.comesBefore(best, rule)) best = choice;
    }
    return best;
}

// The second half of a micro-batch comes back first, as slices do.
int numberOf(ActionKind kind, int unit, const Rule& rule)
{
    return kind == ActionKind::Backward && rule.unitsPerMicrobatch == 2 ? unit ^ 1 : unit;
}

Schedule chimeraSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const Rule rule = ruleOf(request.concatenation, p);
    const int units = request.microbatches / 2 * rule.unitsPerMicrobatch; // of a direction
    Schedule schedule = mirroredSchedule(request, 4 * static_cast<std::size_t>(units));
    schedule.slices = rule.unitsPerMicrobatch;
    std::array pipelines{Pipeline(Flow::Down, p, units, rule), Pipeline(Flow::Up, p, units, rule)};
    std::vector<Choice> slot(static_cast<std::size_t>(p));
    for (long long left = 4LL * units * p; left > 0;) {
        if (request.stop.stop_requested()) break;
        for (int r = 0; r < p; ++r) slot[static_cast<std::size_t>(r)] = bestOf(pipelines, rule, p, r);
        for (int r = 0; r < p; ++r) {
            const Choice& choice = slot[static_cast<std::size_t>(r)];
            if (choice.pipeline == nullptr) continue;
            const int first = choice.unit();
            for (int unit = first; unit < first + choice.count; ++unit)
                schedule.order[static_cast<std::size_t>(r)].push_back(traces::makeAction(
                    choice.kind, Stage{choice.stage}, MicroBatch{numberOf(choice.kind, unit, rule)}, choice.pipeline->flow()));
            choice.pipeline->take(choice.stage, choice.kind, choice.count);
            left -= choice.count;
        }
    }
    return schedule;
}

} // namespace

Generator chimera()
{
    Generator made{{"chimera", "Chimera", "Two pipelines run in opposite directions over the same ranks and fill each other's bubbles.",
                    "p and m even; one chunk per rank and direction, so two copies of the weights",
                    "Li and Hoefler 2021, arXiv 2107.06925", 1, 1,
                    {{"paper", "Chimera: direct concatenation, forward doubling, backward halving"}}},
                   &chimeraSchedule, &checkMirrored};
    made.family.concatenates = true;
    return made;
}

} // namespace stagecraft::engine
