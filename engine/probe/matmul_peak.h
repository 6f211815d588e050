// SPDX-License-Identifier: Apache-2.0
//
// What one thread of this machine reaches in a matrix product of such numbers, LibTorch's own: the most that a layer can hope for, and the
// measure of utilisation. Another machine, or one that is busy, has another. Any thread may ask.
//
//   const double peak = matmulPeak(engine::Precision::Fp32); // FLOP/s, 2 for a multiply-add
#pragma once

#include "engine/model/precision.h"

namespace stagecraft::runtime {

// Measured by the first call of the process for a precision, in about 30 ms: the best of some products of 384 x 384.
double matmulPeak(engine::Precision precision);

} // namespace stagecraft::runtime
