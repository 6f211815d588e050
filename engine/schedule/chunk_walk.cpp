// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/chunk_walk.h"

#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

int roundsOf(int m, int p)
{
    return std::max(1, m / p);
}

bool fits(int m, int p)
{
    return m >= 1 && m % roundsOf(m, p) == 0;
}

int nearestMicroBatches(int m, int p)
{
    for (int distance = 1;; ++distance) {
        if (fits(m - distance, p)) return m - distance;
        if (fits(m + distance, p)) return m + distance;
    }
}

} // namespace

int roundSize(const ScheduleRequest& request)
{
    return request.microbatches / roundsOf(request.microbatches, request.ranks);
}

Expected<void> roundsFit(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    if (fits(m, p)) return {};
    const int rounds = roundsOf(m, p);
    return Error{fmt::format("schedule {}: {} on {} are not allowed, they go in {} of equal size and {} is no multiple of {}; the "
                             "nearest number that fits is {}",
                             request.name, traces::counted(m, "micro-batch"), traces::counted(p, "rank"),
                             traces::counted(rounds, "round"), m, rounds, nearestMicroBatches(m, p))};
}

} // namespace stagecraft::engine
