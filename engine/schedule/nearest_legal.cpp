// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/nearest_legal.h"

#include <algorithm>
#include <limits>

namespace stagecraft::engine {
namespace {

bool possible(const ScheduleRequest& request) { return checkRequest(request).ok(); }

std::optional<int> nearest(ScheduleRequest request, int ScheduleRequest::*number, int reach)
{
    const long long wanted = request.*number;
    for (int distance = 1; distance <= reach; ++distance) {
        for (const long long value : {wanted + distance, wanted - distance}) {
            if (value < 1 || value > std::numeric_limits<int>::max()) continue;
            request.*number = static_cast<int>(value);
            if (possible(request)) return request.*number;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<LegalChange> nearestLegal(const ScheduleRequest& request)
{
    const ScheduleFamily* family = findFamily(request.name);
    if (!family || possible(request)) return std::nullopt;
    ScheduleRequest clamped = request;
    clamped.chunks = std::clamp(request.chunks, family->minChunks, std::max(family->minChunks, family->maxChunks));
    if (clamped.chunks != request.chunks && possible(clamped))
        return LegalChange{LegalChange::Number::Chunks, clamped.chunks};
    ScheduleRequest whole = request;
    whole.slices = 1;
    if (request.slices != 1 && possible(whole)) return LegalChange{LegalChange::Number::Slices, 1};
    if (const auto m = nearest(request, &ScheduleRequest::microbatches, 2 * std::min(request.ranks, 64)))
        return LegalChange{LegalChange::Number::MicroBatches, *m};
    if (const auto v = nearest(request, &ScheduleRequest::chunks, 1)) return LegalChange{LegalChange::Number::Chunks, *v};
    if (const auto p = nearest(request, &ScheduleRequest::ranks, 8)) return LegalChange{LegalChange::Number::Ranks, *p};
    return std::nullopt;
}

} // namespace stagecraft::engine
