// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gradient_buckets.h"

namespace stagecraft::runtime {

std::vector<GradientBucket> gradientBuckets(const std::vector<std::vector<std::int64_t>>& values, traces::Bytes limit)
{
    std::size_t next = 0; // behind the parameter to come
    for (const auto& layer : values) next += layer.size();
    std::vector<GradientBucket> buckets;
    bool full = true;
    for (std::size_t layer = values.size(); layer-- > 0;)
        for (std::size_t i = values[layer].size(); i-- > 0;) {
            if (full) buckets.emplace_back();
            GradientBucket& bucket = buckets.back();
            bucket.parameters.push_back(--next);
            bucket.layer = static_cast<int>(layer);
            bucket.bytes += values[layer][i] * static_cast<traces::Bytes>(sizeof(float));
            full = bucket.bytes >= limit;
        }
    return buckets;
}

} // namespace stagecraft::runtime
