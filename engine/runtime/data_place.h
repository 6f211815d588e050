// SPDX-License-Identifier: Apache-2.0
//
// Where in a run and its data a forward is. All that it draws at random follows from that and the layer's place in the model: it is the
// same for every pipeline of the model, whoever computes it, and when it is computed again. Private to the runtime.
//
//   layer.forward(x, nullptr, {.seed = run.seed, .step = 3, .microbatch = 7});
#pragma once

#include <cstdint>

namespace stagecraft::runtime {

struct DataPlace {
    std::uint64_t seed = 0;  // of the run
    std::int64_t step = 0;
    std::int64_t microbatch = 0; // among those of all replicas and directions
    // Of the micro-batch, what is here: rows from this one on, of so many; positions likewise. 0: all of them are.
    std::int64_t firstRow = 0;
    std::int64_t rows = 0;
    std::int64_t firstPosition = 0;
    std::int64_t positions = 0;
    bool training = true;
};

// The seed of what the layer draws for the whole micro-batch.
[[nodiscard]] std::uint64_t drawSeed(const DataPlace& at, std::uint64_t layer);

} // namespace stagecraft::runtime
