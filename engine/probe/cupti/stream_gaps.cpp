// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/stream_gaps.h"

#include "traces/analysis/interval_set.h"

#include <algorithm>
#include <type_traits>

namespace stagecraft::runtime {

using traces::Interval;
using traces::TimeNs;

namespace {

template <class Activity>
constexpr bool kIsCopy = std::is_same_v<Activity, CopyActivity> || std::is_same_v<Activity, PeerCopyActivity>;

} // namespace

std::optional<StreamGap> StreamGaps::before(const StreamWork& work)
{
    std::optional<StreamGap> out;
    if (end_ && work.span.begin > *end_) {
        StreamGap gap{.gap = {*end_, work.span.begin}};
        if (work.call) {
            const TimeNs called = std::clamp(work.call->begin, gap.gap.begin, gap.gap.end);
            gap.byHost = called - gap.gap.begin;
            const auto told = [&](TimeNs each) { return (!lastCall_ || each > *lastCall_) && each <= work.call->begin; };
            const bool waited = std::any_of(waits_.begin(), waits_.end(), told);
            const bool hostWasLate = work.call->begin > gap.gap.begin;
            (waited ? gap.byWait : hostWasLate ? gap.byLaunch : gap.byDevice) = gap.gap.end - called;
        } else {
            gap.notKnown = gap.gap.length();
        }
        out = gap;
    }
    end_ = std::max(end_.value_or(work.span.end), work.span.end);
    if (work.call) {
        lastCall_ = work.call->begin;
        std::erase_if(waits_, [&](TimeNs each) { return each <= *lastCall_; });
    }
    return out;
}

std::vector<GapPart> partsOf(const StreamGap& gap)
{
    std::vector<GapPart> out;
    TimeNs at = gap.gap.begin;
    const auto add = [&](TimeNs length, traces::StreamGapCause cause) {
        if (length <= 0) return;
        out.push_back({{at, at + length}, cause});
        at += length;
    };
    add(gap.byHost, traces::StreamGapCause::Host);
    add(gap.byWait, traces::StreamGapCause::Event);
    add(gap.byLaunch, traces::StreamGapCause::Launch);
    add(gap.byDevice, traces::StreamGapCause::Device);
    return out;
}

std::vector<StreamGap> gapsOf(std::vector<StreamWork> works, std::vector<TimeNs> waits)
{
    std::sort(works.begin(), works.end(), [](const StreamWork& a, const StreamWork& b) { return a.span.begin < b.span.begin; });
    StreamGaps gaps;
    for (const TimeNs told : waits) gaps.wait(told);
    std::vector<StreamGap> out;
    for (const StreamWork& work : works)
        if (const std::optional<StreamGap> gap = gaps.before(work)) out.push_back(*gap);
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
    const traces::IntervalSet computing = traces::unionOf(std::move(kernels));
    const traces::IntervalSet copying = traces::unionOf(std::move(copies));
    return {.compute = traces::lengthOf(computing), .copy = traces::lengthOf(copying), .hidden = traces::lengthOf(traces::intersectionOf(computing, copying))};
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
