// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stagecraft::engine {

// best[k][i]: the smallest possible largest sum when the first i layers go to k stages; O(stages * layers^2), for layers in
// the hundreds well below a millisecond. Among equal solutions the one with the earlier cuts: later stages get more layers.
Expected<Partition> balancedPartition(const std::vector<double>& weight, int stages)
{
    const auto layers = static_cast<int>(weight.size());
    if (stages < 1 || stages > layers)
        return Error{fmt::format("{} stages cannot be made of {} layers; every stage needs one, so at most {} stages", stages,
                                 layers, layers)};
    const auto n = static_cast<std::size_t>(layers);
    const auto k = static_cast<std::size_t>(stages);
    std::vector<double> sum(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + weight[i];
    constexpr double kNone = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> best(k + 1, std::vector<double>(n + 1, kNone));
    std::vector<std::vector<std::size_t>> cut(k + 1, std::vector<std::size_t>(n + 1, 0));
    best[0][0] = 0;
    for (std::size_t s = 1; s <= k; ++s)
        for (std::size_t end = s; end <= n; ++end)
            for (std::size_t begin = s - 1; begin < end; ++begin) {
                const double largest = std::max(best[s - 1][begin], sum[end] - sum[begin]);
                if (largest < best[s][end]) {
                    best[s][end] = largest;
                    cut[s][end] = begin;
                }
            }
    Partition partition(k, 0);
    std::size_t end = n;
    for (std::size_t s = k; s > 0; --s) {
        partition[s - 1] = static_cast<int>(end - cut[s][end]);
        end = cut[s][end];
    }
    return partition;
}

} // namespace stagecraft::engine
