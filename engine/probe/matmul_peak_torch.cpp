// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/matmul_peak.h"

#include "engine/probe/clock.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <limits>

namespace stagecraft::runtime {

namespace {

double measure(at::ScalarType type)
{
    constexpr std::int64_t kSide = 384; // three matrices of it fit into a core's cache of the second level
    constexpr int kProducts = 8;        // the first one meets cold caches
    const at::NoGradGuard noGrad;
    const at::Tensor a = at::ones({kSide, kSide}, type);
    at::Tensor product = at::empty({kSide, kSide}, type);
    traces::TimeNs best = std::numeric_limits<traces::TimeNs>::max();
    for (int i = 0; i < kProducts; ++i) {
        const traces::TimeNs begin = monotonicClock().now();
        at::mm_out(product, a, a);
        best = std::min(best, monotonicClock().now() - begin);
    }
    return 2.0 * kSide * kSide * kSide * 1e9 / static_cast<double>(std::max<traces::TimeNs>(best, 1));
}

} // namespace

// The caller computes on one thread, as every rank does.
double matmulPeak(engine::Precision precision)
{
    if (precision == engine::Precision::Bf16) {
        static const double coarse = measure(at::kBFloat16);
        return coarse;
    }
    static const double fine = measure(at::kFloat);
    return fine;
}

} // namespace stagecraft::runtime
