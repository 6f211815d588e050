// SPDX-License-Identifier: Apache-2.0
//
// The order of one rank that the hand-made zero-bubble schedules share: `warmup` forwards; then a forward, while there are any, and
// an input gradient in turn; once more than `lag` weight gradients are due, one follows each input gradient, in the order of
// the input gradients; the rest of them at the end. Lag 1, warm-up 2, four micro-batches:
//
//   F0 F1 | F2 I0 | F3 I1 W0 | I2 W1 | I3 W2 | W3
//
//   appendWithWeightLag(list, {.rank = r, .ranks = p, .chunks = 1, .microbatches = m, .group = m, .warmup = 2, .lag = 1});
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

struct WeightLag {
    int rank = 0;
    int ranks = 1;
    int chunks = 1; // laid in a loop
    int microbatches = 1;
    int group = 1; // of the walk through the chunks, see chunk_walk.h
    int warmup = 0;
    int lag = 0;
};

void appendWithWeightLag(std::vector<Action>& list, const WeightLag& rule);

} // namespace stagecraft::engine
