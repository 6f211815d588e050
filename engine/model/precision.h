// SPDX-License-Identifier: Apache-2.0
//
// The type of a run's numbers: of weights, activations, what goes from stage to stage, and the gradients of a micro-batch. In bf16 the
// losses, the sums of gradients over micro-batches, the main copy of the weights that is updated and the moments of the optimizer are
// float32 nevertheless, as in Megatron-LM (18 bytes a weight with Adam: 2 + 4 + 4 + 8).
//
//   valueBytes(Precision::Bf16) == 2
#pragma once

#include <cstdint>

namespace stagecraft::engine {

enum class Precision : std::uint8_t {
    Fp32, // float32 throughout
    Bf16, // bfloat16: the exponent of a float32, and 7 bits of the 23 of its mantissa
};

// Of one value.
constexpr int valueBytes(Precision precision) { return precision == Precision::Bf16 ? 2 : 4; }
// Of one value of what is float32 in every precision: sums of gradients, and what the optimizer keeps.
inline constexpr int kMainBytes = 4;

} // namespace stagecraft::engine
