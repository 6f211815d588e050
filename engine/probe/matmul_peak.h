// SPDX-License-Identifier: Apache-2.0
//
// What one thread of this machine reaches in a matrix product of floats, LibTorch's own: the most that a layer can hope for, and the
// measure of utilisation. Another machine, or one that is busy, has another. Any thread may ask.
//
//   const double peak = matmulPeak(); // FLOP/s, 2 for a multiply-add
#pragma once

namespace stagecraft::runtime {

// Measured by the first call of the process, in about 30 ms: the best of some products of 384 x 384.
double matmulPeak();

} // namespace stagecraft::runtime
