// SPDX-License-Identifier: Apache-2.0
//
// Clipping by the norm of all gradients of a model together, as PyTorch's clip_grad_norm_ does it (Pascanu et al., arXiv 1211.5063). The
// norm is summed up layer by layer in the model's order, whichever ranks the layers are on, so that it is the same to the bit in every
// partition, schedule and mode.
//
//   gradient *= clipFactor({9, 16}, 1) // the norm is 5, the gradients shrink to a fifth
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace stagecraft::runtime {

// `squares`: of the norm of each layer's gradients. At most 1; no number where a square is none.
inline double clipFactor(const std::vector<double>& squares, double mostNorm)
{
    double sum = 0;
    for (const double square : squares) sum += square;
    const double factor = mostNorm / (std::sqrt(sum) + 1e-6);
    return factor > 1 ? 1 : factor;
}

// The first layer whose norm is no finite number; -1: none.
inline int firstDiverged(const std::vector<double>& squares)
{
    const auto found = std::find_if(squares.begin(), squares.end(), [](double square) { return !std::isfinite(square); });
    return found == squares.end() ? -1 : static_cast<int>(found - squares.begin());
}

} // namespace stagecraft::runtime
