// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/zb_planner.h"

#include <algorithm>

namespace stagecraft::engine {

using traces::Bytes;
using traces::TimeNs;

ZbPlanner::ZbPlanner(std::vector<ZbStage> stages, int microbatches, TimeNs transfer)
    : stages_(std::move(stages)), microbatches_(microbatches), transfer_(transfer), progress_(stages_.size()),
      takesForward_(stages_.size(), 0), forwardEnds_(stages_.size() * static_cast<std::size_t>(microbatches), 0),
      inputGradEnds_(forwardEnds_.size(), 0)
{
}

bool ZbPlanner::plan(const ZbVariant& variant, const std::stop_token& stop)
{
    variant_ = variant;
    begin();
    if (stop.stop_requested()) return false;
    warmUp();
    for (int round = 1; round < microbatches_; ++round) {
        if (stop.stop_requested()) return false;
        chooseForwards();
        forwardsOfARound();
        inputGradsOfARound();
    }
    for (std::size_t s = 0; s < stages_.size(); ++s)
        while (progress_[s].hasWeights()) put(s, ActionKind::WeightGrad);
    return true;
}

TimeNs ZbPlanner::longestSpan() const
{
    TimeNs longest = 0;
    for (const Progress& stage : progress_) longest = std::max(longest, stage.clock - stage.begin);
    return longest;
}

void ZbPlanner::begin()
{
    largestBubble_ = 0;
    for (Progress& stage : progress_) {
        std::vector<ActionKind> order = std::move(stage.order);
        order.clear();
        order.reserve(3 * static_cast<std::size_t>(microbatches_));
        stage = {};
        stage.order = std::move(order);
    }
}

void ZbPlanner::warmUp()
{
    for (std::size_t s = 0; s < stages_.size(); ++s) put(s, ActionKind::Forward);

    // When the first I could end on each stage, from the last to the first, and how many F fit in before.
    std::vector<int> extra(stages_.size(), 0);
    TimeNs back = progress_.back().clock + stages_.back().inputGrad;
    for (std::size_t s = stages_.size() - 1; s-- > 0;) {
        const ZbStage& stage = stages_[s];
        TimeNs clock = progress_[s].clock;
        Bytes held = progress_[s].held;
        const TimeNs arrives = back + transfer_;
        while (1 + extra[s] < microbatches_ && held + stage.activations <= stage.limit &&
               (variant_.waitForFirst ? clock + stage.forward <= arrives : clock < arrives)) {
            clock += stage.forward;
            held += stage.activations;
            ++extra[s];
        }
        back = std::max(clock, arrives) + stage.inputGrad;
    }
    trimWarmUp(extra);
    for (std::size_t s = 0; s < stages_.size(); ++s)
        for (int i = 0; i < extra[s]; ++i) put(s, ActionKind::Forward);
    for (std::size_t s = stages_.size(); s-- > 0;) put(s, ActionKind::InputGrad);
}

// A stage stays at least one forward ahead of the next until it has done them all. A next stage that is further would wait in its
// warm-up for a forward that this one does after its first I, which in turn waits for the next stage's.
void ZbPlanner::trimWarmUp(std::vector<int>& extra) const
{
    for (std::size_t s = 1; s < extra.size(); ++s) {
        const int most = 1 + extra[s - 1] < microbatches_ ? extra[s - 1] - 1 : extra[s - 1];
        extra[s] = std::clamp(extra[s], 0, std::max(0, most));
    }
}

void ZbPlanner::chooseForwards()
{
    for (std::size_t s = 0; s < stages_.size(); ++s)
        takesForward_[s] = progress_[s].forwards < microbatches_ && !(variant_.skipForwards && nextCanDoWithout(s)) ? 1 : 0;
    for (std::size_t s = stages_.size() - 1; s-- > 0;) takesForward_[s] = std::min(takesForward_[s], takesForward_[s + 1]);
}

// The next stage has two forwards in store, this one would do well to be free when the I for it arrives: the forward is left out
// where that I could be here already, or where the forward would delay it and waiting instead stays within the largest bubble.
bool ZbPlanner::nextCanDoWithout(std::size_t s) const
{
    if (s + 1 == stages_.size() || progress_[s].forwards < progress_[s + 1].forwards + 2) return false;
    const Progress& own = progress_[s];
    const ZbStage& stage = stages_[s];
    const TimeNs nextIsBack = progress_[s + 1].clock + stages_[s + 1].forward + stages_[s + 1].inputGrad + transfer_;
    if (own.clock >= nextIsBack) return true;
    // what the memory for one more forward would take
    const Bytes excess = own.held + stage.activations - stage.limit;
    TimeNs weights = 0;
    if (excess > 0) {
        const Bytes due = own.inputGrads - own.weightGrads;
        const Bytes needed = stage.forWeights > 0 ? (excess + stage.forWeights - 1) / stage.forWeights : due;
        weights = std::min(needed, due) * stage.weightGrad;
    }
    if (own.clock + stage.forward + weights <= nextIsBack) return false;
    return nextIsBack - own.clock <= largestBubble_ - own.bubble;
}

void ZbPlanner::forwardsOfARound()
{
    for (std::size_t s = 0; s < stages_.size(); ++s)
        if (takesForward_[s] != 0) putForward(s);
}

void ZbPlanner::inputGradsOfARound()
{
    for (std::size_t s = stages_.size(); s-- > 0;) putInputGrad(s);
}

void ZbPlanner::putForward(std::size_t s)
{
    makeRoom(s, stages_[s].activations);
    if (s > 0) fillWait(s, arrival(s, ActionKind::Forward));
    put(s, ActionKind::Forward);
}

void ZbPlanner::putInputGrad(std::size_t s)
{
    Progress& own = progress_[s];
    makeRoom(s, stages_[s].forWeights - stages_[s].activations);
    if (s + 1 < stages_.size()) fillWait(s, arrival(s, ActionKind::InputGrad));
    // nobody waits for the first stage once its forwards are done
    if (s == 0 && own.forwards == microbatches_)
        while (own.hasWeights()) put(s, ActionKind::WeightGrad);
    put(s, ActionKind::InputGrad);
}

void ZbPlanner::makeRoom(std::size_t s, Bytes more)
{
    while (progress_[s].held + more > stages_[s].limit && progress_[s].hasWeights()) put(s, ActionKind::WeightGrad);
}

void ZbPlanner::fillWait(std::size_t s, TimeNs until)
{
    Progress& own = progress_[s];
    while (own.hasWeights() && own.clock + stages_[s].weightGrad <= until) put(s, ActionKind::WeightGrad);
    if (!own.hasWeights() || own.clock >= until) return;
    const bool harmless = until - own.clock <= largestBubble_ - own.bubble;
    if (!harmless || variant_.greedyWeights) put(s, ActionKind::WeightGrad);
}

std::size_t ZbPlanner::slot(std::size_t s, int microbatch) const
{
    return s * static_cast<std::size_t>(microbatches_) + static_cast<std::size_t>(microbatch);
}

// Of what the stage's next action of that kind needs from another stage.
TimeNs ZbPlanner::arrival(std::size_t s, ActionKind kind) const
{
    const Progress& own = progress_[s];
    if (kind == ActionKind::Forward && s > 0) return forwardEnds_[slot(s - 1, own.forwards)] + transfer_;
    if (kind == ActionKind::InputGrad && s + 1 < stages_.size()) return inputGradEnds_[slot(s + 1, own.inputGrads)] + transfer_;
    return 0;
}

void ZbPlanner::put(std::size_t s, ActionKind kind)
{
    Progress& own = progress_[s];
    const ZbStage& stage = stages_[s];
    const TimeNs start = std::max(own.clock, arrival(s, kind));
    if (own.order.empty()) {
        own.begin = start;
    } else {
        own.bubble += start - own.clock;
        largestBubble_ = std::max(largestBubble_, own.bubble);
    }
    switch (kind) {
    case ActionKind::Forward:
        own.clock = start + stage.forward;
        own.held += stage.activations;
        forwardEnds_[slot(s, own.forwards++)] = own.clock;
        break;
    case ActionKind::InputGrad:
        own.clock = start + stage.inputGrad;
        own.held += stage.forWeights - stage.activations;
        inputGradEnds_[slot(s, own.inputGrads++)] = own.clock;
        break;
    default:
        own.clock = start + stage.weightGrad;
        own.held -= stage.forWeights;
        ++own.weightGrads;
        break;
    }
    own.order.push_back(kind);
}

} // namespace stagecraft::engine
