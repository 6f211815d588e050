// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/weight_lag.h"

#include "engine/schedule/chunk_walk.h"

namespace stagecraft::engine {

void appendWithWeightLag(std::vector<Action>& list, const WeightLag& rule)
{
    const int total = rule.chunks * rule.microbatches;
    const auto walk = [&](ChunkWalk::Way way) { return ChunkWalk(rule.chunks, rule.microbatches, rule.group, way); };
    ChunkWalk forwards = walk(ChunkWalk::Way::Ahead);
    ChunkWalk inputs = walk(ChunkWalk::Way::Back);
    ChunkWalk weights = walk(ChunkWalk::Way::Back);
    const auto append = [&](ActionKind kind, ChunkWalk& from) {
        const auto [chunk, microbatch] = from.next();
        list.push_back(traces::makeAction(kind, Stage{chunk * rule.ranks + rule.rank}, microbatch));
    };

    for (int k = 0; k < rule.warmup; ++k) append(ActionKind::Forward, forwards);
    int due = 0;
    for (int k = 0; k < total; ++k) {
        if (rule.warmup + k < total) append(ActionKind::Forward, forwards);
        append(ActionKind::InputGrad, inputs);
        if (++due <= rule.lag) continue;
        append(ActionKind::WeightGrad, weights);
        --due;
    }
    for (; due > 0; --due) append(ActionKind::WeightGrad, weights);
}

} // namespace stagecraft::engine
