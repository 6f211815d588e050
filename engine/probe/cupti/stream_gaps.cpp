// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/stream_gaps.h"

#include <algorithm>
#include <type_traits>

namespace stagecraft::runtime {

using traces::Interval;
using traces::TimeNs;

namespace {

bool earlier(const Interval& a, const Interval& b) { return a.begin < b.begin; }

// In order and apart from each other; what takes no time is left out.
std::vector<Interval> merged(std::vector<Interval> intervals)
{
    std::sort(intervals.begin(), intervals.end(), earlier);
    std::vector<Interval> out;
    for (const Interval& each : intervals) {
        if (each.end <= each.begin) continue;
        if (!out.empty() && each.begin <= out.back().end) out.back().end = std::max(out.back().end, each.end);
        else out.push_back(each);
    }
    return out;
}

TimeNs lengthOf(const std::vector<Interval>& apart)
{
    TimeNs sum = 0;
    for (const Interval& each : apart) sum += each.length();
    return sum;
}

template <class Activity>
constexpr bool kIsCopy = std::is_same_v<Activity, CopyActivity> || std::is_same_v<Activity, PeerCopyActivity>;

} // namespace

std::vector<StreamGap> gapsOf(std::vector<StreamWork> works, std::vector<TimeNs> waits)
{
    std::sort(works.begin(), works.end(), [](const StreamWork& a, const StreamWork& b) { return earlier(a.span, b.span); });
    std::sort(waits.begin(), waits.end());
    std::vector<StreamGap> out;
    TimeNs end = 0; // of all works so far
    std::optional<TimeNs> lastCall;
    for (std::size_t i = 0; i < works.size(); ++i) {
        const StreamWork& work = works[i];
        if (i > 0 && work.span.begin > end) {
            StreamGap gap{.gap = {end, work.span.begin}};
            const TimeNs called = work.call ? std::clamp(work.call->begin, gap.gap.begin, gap.gap.end) : gap.gap.begin;
            gap.byHost = called - gap.gap.begin;
            const TimeNs rest = gap.gap.end - called;
            const auto wait = lastCall ? std::upper_bound(waits.begin(), waits.end(), *lastCall) : waits.begin();
            const bool waited = work.call && wait != waits.end() && *wait <= work.call->begin;
            const bool hostWasLate = work.call && work.call->begin > gap.gap.begin;
            (waited ? gap.byWait : hostWasLate ? gap.byLaunch : gap.byDevice) += rest;
            out.push_back(gap);
        }
        end = i == 0 ? work.span.end : std::max(end, work.span.end);
        if (work.call) lastCall = work.call->begin;
    }
    return out;
}

std::vector<StreamWork> worksOf(std::span<const JoinedActivity> joined, const DevicePlace& place)
{
    std::vector<StreamWork> out;
    for (const JoinedActivity& each : joined) {
        std::visit(
            [&](const auto& activity) {
                if constexpr (requires { activity.place; activity.span; }) {
                    if (activity.place == place) out.push_back({.span = activity.span, .call = each.call});
                }
            },
            each.activity);
    }
    return out;
}

std::vector<TimeNs> waitsOf(std::span<const JoinedActivity> joined, const DevicePlace& place)
{
    std::vector<TimeNs> out;
    for (const JoinedActivity& each : joined) {
        const auto* sync = std::get_if<SyncActivity>(&each.activity);
        if (sync != nullptr && sync->sync == SyncKind::StreamWait && sync->context == place.context && sync->stream == place.stream) {
            out.push_back(sync->span.begin);
        }
    }
    return out;
}

CopyOverlap overlapOf(std::vector<Interval> kernels, std::vector<Interval> copies)
{
    const std::vector<Interval> computing = merged(std::move(kernels));
    const std::vector<Interval> copying = merged(std::move(copies));
    CopyOverlap out{.compute = lengthOf(computing), .copy = lengthOf(copying), .hidden = 0};
    for (auto a = computing.begin(), b = copying.begin(); a != computing.end() && b != copying.end();) {
        out.hidden += std::max<TimeNs>(std::min(a->end, b->end) - std::max(a->begin, b->begin), 0);
        a->end < b->end ? ++a : ++b;
    }
    return out;
}

CopyOverlap overlapOn(std::span<const JoinedActivity> joined, std::uint32_t device)
{
    std::vector<Interval> kernels;
    std::vector<Interval> copies;
    for (const JoinedActivity& each : joined) {
        std::visit(
            [&](const auto& activity) {
                using Activity = std::decay_t<decltype(activity)>;
                if constexpr (std::is_same_v<Activity, KernelActivity>) {
                    if (activity.place.device == device) kernels.push_back(activity.span);
                } else if constexpr (std::is_same_v<Activity, PeerCopyActivity>) {
                    if (activity.from == device || activity.to == device) copies.push_back(activity.span);
                } else if constexpr (kIsCopy<Activity>) {
                    if (activity.place.device == device) copies.push_back(activity.span);
                }
            },
            each.activity);
    }
    return overlapOf(std::move(kernels), std::move(copies));
}

} // namespace stagecraft::runtime
