// SPDX-License-Identifier: Apache-2.0
//
// The gradients of a stage in buckets that are summed at a time: in the order in which the backward makes them, the last parameter
// first, a bucket is full once it has so many bytes (as in PyTorch's DistributedDataParallel, arXiv 2006.15704 sec. 3.2.3). Parameters
// are not cut. A bucket is ready with the first of the stage's layers that it has a parameter of, for that one's gradients come last.
// Pure. Private to the runtime.
//
//   gradientBuckets({{100, 10}, {50, 5}}, 256)   // {3, 2} of layer 1, and {1, 0} of layer 0
#pragma once

#include "traces/base/units.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft::runtime {

struct GradientBucket {
    std::vector<std::size_t> parameters; // of the stage, from its last to its first
    int layer = 0;                       // of the stage, with which the bucket is ready
    traces::Bytes bytes = 0;
    bool operator==(const GradientBucket&) const = default;
};

// `values`: of each parameter, by layer. `limit`: bytes, at least 1.
std::vector<GradientBucket> gradientBuckets(const std::vector<std::vector<std::int64_t>>& values, traces::Bytes limit);

} // namespace stagecraft::runtime
