// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {

using traces::counted;

// best[k][i] is the smallest possible largest sum when the first i layers go to k stages, the last of them from layer cut[k][i]
// on. As a cut moves right, what lies before it grows and the last stage shrinks: the best cut is where they meet, and it
// moves right with i. So a row takes O(layers), and the whole O(stages * layers).
Expected<Partition> balancedPartition(const std::vector<double>& weight, int stages)
{
    const auto layers = static_cast<int>(weight.size());
    if (stages < 1 || stages > layers)
        return Error{fmt::format("{} cannot be made of {}; every stage needs one, so at most {}", counted(stages, "stage"),
                                 counted(layers, "layer"), counted(layers, "stage"))};
    const auto n = static_cast<std::size_t>(layers);
    const auto k = static_cast<std::size_t>(stages);
    std::vector<double> sum(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + weight[i];
    std::vector<double> before(sum); // best of one stage fewer, by end
    std::vector<double> best(n + 1, 0);
    std::vector<std::vector<int>> cuts(k + 1, std::vector<int>(n + 1, 0));
    for (std::size_t s = 2; s <= k; ++s) {
        std::size_t meet = s - 1;
        for (std::size_t end = s; end <= n; ++end) {
            const auto last = [&](std::size_t cut) { return sum[end] - sum[cut]; };
            while (meet + 1 < end && before[meet] < last(meet)) ++meet;
            std::size_t cut = meet;
            if (meet > s - 1 && last(meet - 1) <= std::max(before[meet], last(meet))) --cut;
            best[end] = std::max(before[cut], last(cut));
            // layers without weight, and what the stages before have to spare, go to the later stage
            while (cut > s - 1 && std::max(before[cut - 1], last(cut - 1)) <= best[end]) --cut;
            cuts[s][end] = static_cast<int>(cut);
        }
        std::swap(before, best);
    }
    Partition partition(k, 0);
    std::size_t end = n;
    for (std::size_t s = k; s > 0; --s) {
        const auto cut = static_cast<std::size_t>(cuts[s][end]);
        partition[s - 1] = static_cast<int>(end - cut);
        end = cut;
    }
    return partition;
}

} // namespace stagecraft::engine
