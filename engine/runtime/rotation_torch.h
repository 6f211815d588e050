// SPDX-License-Identifier: Apache-2.0
//
// Rotary positions (Su et al., arXiv 2104.09864 eq. 34): of each head's values, pair i at position p turns by p * 10000^(-2 i / n) for n
// values. A query times a key then depends on how far apart they stand alone. What it keeps for its backward is the first position:
// a gradient turns back. Private to the runtime.
//
//   Tensor q = turnedByPosition(queries, slice.firstPosition); // (rows, heads, positions, values)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stagecraft::runtime {

at::Tensor turnedByPosition(const at::Tensor& x, std::int64_t firstPosition);

} // namespace stagecraft::runtime
