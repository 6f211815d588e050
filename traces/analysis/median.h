// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stagecraft::traces {

// The middle of the values, of an even number the mean of both middles (rounded down for whole numbers). Not for an empty
// list.
template <class Value>
Value medianOf(std::vector<Value> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    const Value below = *std::max_element(values.begin(), middle);
    return below + (*middle - below) / 2;
}

} // namespace stagecraft::traces
