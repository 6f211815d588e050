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

// The next lower multiple of the rounds fits always; more must be within the limits of a request.
int nearestMicroBatches(ScheduleRequest request)
{
    const int m = request.microbatches;
    for (int distance = 1;; ++distance) {
        if (fits(m - distance, request.ranks)) return m - distance;
        request.microbatches = m + distance;
        if (fits(m + distance, request.ranks) && checkRequest(request).ok()) return m + distance;
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
                             traces::counted(rounds, "round"), m, rounds, nearestMicroBatches(request))};
}

} // namespace stagecraft::engine
