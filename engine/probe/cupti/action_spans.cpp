// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/action_spans.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace stagecraft::runtime {

using traces::Interval;

ActionSpans::Growing& ActionSpans::growing(const Attribution& whose, Interval first)
{
    const auto isOf = [&](const ActionSpan& span) {
        return span.step == whose.work->step && span.rank == whose.rank && span.work == whose.work->work;
    };
    if (last_ == nullptr || !isOf(last_->span)) {
        const Key key{whose.work->step, whose.rank, whose.work->work};
        const auto [at, isNew] = actions_.try_emplace(key);
        if (isNew) at->second.span = {.rank = whose.rank, .step = whose.work->step, .work = whose.work->work, .device = first};
        last_ = &at->second;
    }
    if (!std::exchange(last_->changed, true)) changed_.emplace_back(whose.work->step, whose.rank, whose.work->work);
    return *last_;
}

void ActionSpans::add(const JoinedActivity& joined)
{
    std::visit(
        [&](const auto& activity) {
            if constexpr (requires { activity.place; activity.span; }) {
                const Attribution whose = ranks_.of(joined);
                if (!whose.work) return;
                ActionSpan& span = growing(whose, activity.span).span;
                span.device = {std::min(span.device.begin, activity.span.begin), std::max(span.device.end, activity.span.end)};
                if (joined.call) span.firstCall = std::min(span.firstCall.value_or(joined.call->begin), joined.call->begin);
                if constexpr (requires { activity.bytes; }) {
                    ++span.copies;
                    span.copyTime += activity.span.length();
                    span.copied += activity.bytes;
                } else {
                    ++span.kernels;
                    span.kernelTime += activity.span.length();
                }
            }
        },
        joined.activity);
}

std::vector<ActionSpan> ActionSpans::takeChanged()
{
    std::vector<ActionSpan> out;
    std::sort(changed_.begin(), changed_.end());
    for (const Key& key : std::exchange(changed_, {})) {
        const auto at = actions_.find(key);
        if (at == actions_.end()) continue; // forgotten
        at->second.changed = false;
        out.push_back(at->second.span);
    }
    return out;
}

std::optional<ActionSpan> ActionSpans::find(traces::Step step, traces::Rank rank, const traces::Work& work) const
{
    const auto at = actions_.find({step, rank, work});
    return at == actions_.end() ? std::nullopt : std::optional(at->second.span);
}

void ActionSpans::forgetBefore(traces::Step step)
{
    constexpr traces::Rank kFirst{std::numeric_limits<std::int32_t>::min()};
    actions_.erase(actions_.begin(), actions_.lower_bound({step, kFirst, traces::Work{}}));
    last_ = nullptr;
}

} // namespace stagecraft::runtime
