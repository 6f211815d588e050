// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/slice_shares.h"

#include <cmath>

namespace stagecraft::engine {
namespace {

// The part of a sequence that takes so much of its time: T(x) = time.
double lengthOf(double time, double attention)
{
    const double linear = 1 - attention;
    if (attention < 1e-9) return time;
    return (std::sqrt(linear * linear + 4 * attention * time) - linear) / (2 * attention);
}

} // namespace

SliceShares sliceShares(int slices, double attention, Slicing slicing)
{
    const auto count = static_cast<std::size_t>(slices);
    SliceShares shares{std::vector<double>(count, 1), std::vector<double>(count, 1)};
    for (int k = 0; k < slices; ++k) {
        const auto at = static_cast<std::size_t>(k);
        if (slicing == Slicing::Equal) shares.time[at] = 1 - attention + attention * (2 * k + 1) / slices;
        else shares.size[at] = slices * (lengthOf((k + 1.0) / slices, attention) - lengthOf(static_cast<double>(k) / slices, attention));
    }
    return shares;
}

} // namespace stagecraft::engine
