// SPDX-License-Identifier: Apache-2.0
//
// What each rank holds, and from when to when:
//   versions                   of weights, beside the newest: old_versions.h
//   weights, optimizer state   all the time; of what replicas divide (ZeRO, arXiv 1910.02054 sec. 5) only the own part, and of weights
//                              all from the moment an UNSHARD asks for them until RESHARD
//   gradients                  from the first backward that makes them until the weights are updated
//   activations                from the begin of F to the end of B, of I (but what W needs) and of W; where nothing comes back,
//                              to the end of F; where they are computed again, the stage's input alone, and the rest from the
//                              begin of RECOMPUTE
//   buffers                    what was made until it is sent, and what arrived until it is used
#include "engine/simulate/machine.h"

#include "engine/simulate/slice_parts.h"

#include <utility>

namespace stagecraft::engine {

using traces::MemoryClass;
using traces::Work;

void Machine::openMemory()
{
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        forEachHeld(Rank{r}, [&](Flow, Stage, const StageCosts& stage, const Weights& weights) {
            recording_.hold(Rank{r}, MemoryClass::Weights, 0, ownPart(stage.weightBytes, weights.sharded));
            if (weights.old && weights.old->first() > 0) recording_.hold(Rank{r}, MemoryClass::Versions, 0, weights.old->first() * stage.weightBytes);
            recording_.hold(Rank{r}, MemoryClass::Optimizer, 0, ownPart(stage.optimizerBytes, divides(Sharding::Zero1)));
        });
}

void Machine::account(std::size_t r, const Work& work, TimeNs begin, TimeNs end)
{
    const Rank rank{r};
    const StageCosts& stage = costs_.stages[index(work.stage)];
    Weights& weights = weightsOf(work);
    const auto part = [&](Bytes ofMean) { return partOf(costs_.sliceSize, ofMean, work.microbatch); };
    const bool recomputes = isRecomputed(work);
    const MemoryClass kind = recomputes ? MemoryClass::Recompute : MemoryClass::Activations;
    const auto hold = [&](MemoryClass memory, TimeNs at, Bytes change) { recording_.hold(rank, memory, at, change); };
    const Bytes input = recomputes ? part(stage.inputBytes) : 0;
    const auto used = [&](ActionKind made, int from) { // what came from another rank's stage leaves its buffer
        if (!handsBytes_ || work.stage.value + from < 0 || work.stage.value + from >= shape_.stages) return;
        if (const std::optional<Message> message = messageOf({made, work.flow, Stage{work.stage.value + from}, work.microbatch}))
            hold(MemoryClass::Buffers, begin, -message->bytes);
    };
    const auto holdVersions = [&](TimeNs at, int change) {
        if (change != 0) hold(MemoryClass::Versions, at, change * stage.weightBytes);
    };
    if (weights.old) holdVersions(begin, weights.old->atBegin(work));
    switch (work.kind) {
    case ActionKind::Forward:
        used(ActionKind::Forward, -1);
        hold(MemoryClass::Activations, begin, recomputes ? input : part(stage.activationBytes));
        if (inference_) hold(MemoryClass::Activations, end, -part(stage.activationBytes));
        break;
    case ActionKind::Recompute: hold(MemoryClass::Recompute, begin, part(stage.activationBytes)); break;
    case ActionKind::Backward:
        used(ActionKind::Backward, 1);
        hold(kind, end, -part(stage.activationBytes));
        hold(MemoryClass::Activations, end, -input);
        break;
    case ActionKind::InputGrad:
        used(ActionKind::Backward, 1);
        hold(kind, end, part(stage.wgradBytes) - part(stage.activationBytes));
        hold(MemoryClass::Activations, end, -input);
        break;
    case ActionKind::WeightGrad: hold(kind, end, -part(stage.wgradBytes)); break;
    case ActionKind::Optimizer:
        weights.stepped = true;
        weights.gradientEnd = weights.reduced = kNever;
        hold(MemoryClass::Gradients, end, -std::exchange(weights.gradient, 0));
        break;
    default: break;
    }
    if (weights.old) holdVersions(end, weights.old->atEnd(work));
    if (work.kind != ActionKind::Backward && work.kind != ActionKind::WeightGrad) return;
    hold(MemoryClass::Gradients, begin, stage.gradientBytes - std::exchange(weights.gradient, stage.gradientBytes));
    weights.gradientBegin = begin;
    weights.gradientEnd = end;
}

} // namespace stagecraft::engine
