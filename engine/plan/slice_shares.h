// SPDX-License-Identifier: Apache-2.0
//
// What each slice of a sequence takes and holds. Causal attention reads all positions before its own, so that a later slice of the
// same length takes longer. With a share a of the forward in attention, the first part x of a sequence takes
//
//   T(x) = (1-a) x + a x^2     of the whole (arXiv 2406.03488 sec. 3.3 balances by the same FLOPs)
//
// equal:     K slices of length 1/K; slice k takes (1-a)/K + a (2k+1)/K^2 and keeps 1/K
// balanced:  cut where T is k/K, so that all take 1/K; the first is the longest and keeps the most
//
//   sliceShares(2, 0.5, Slicing::Equal).time == {0.75, 1.25}
#pragma once

#include "engine/plan/plan.h"

#include <vector>

namespace stagecraft::engine {

struct SliceShares {
    std::vector<double> time; // by slice, of the mean slice
    std::vector<double> size;
};

// 0 <= attention <= 1.
SliceShares sliceShares(int slices, double attention, Slicing slicing);

} // namespace stagecraft::engine
