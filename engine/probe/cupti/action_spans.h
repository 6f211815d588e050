// SPDX-License-Identifier: Apache-2.0
//
// When the device did an action, which is not when the host asked for it: from the begin of its first kernel or copy to the
// end of its last. For the block of an action on the timeline, and for how far the host was ahead. One thread.
//
//   ActionSpans spans(ranks);
//   for (const JoinedActivity& each : joined) spans.add(each);
//   for (const ActionSpan& each : spans.takeChanged()) draw(each.rank, each.work, each.device);   // after every batch
//   spans.forgetBefore(step);                                                                      // nothing more comes of them
#pragma once

#include "engine/probe/cupti/device_place_ranks.h"

#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

struct ActionSpan {
    traces::Rank rank{};
    traces::Step step{};
    traces::Work work{};
    traces::Interval device;                  // first begin to last end
    traces::TimeNs kernelTime = 0;            // sum over its kernels; those that ran side by side count each
    traces::TimeNs copyTime = 0;              // likewise, with memsets
    std::int64_t kernels = 0;
    std::int64_t copies = 0;                  // with memsets
    traces::Bytes copied = 0;
    std::optional<traces::TimeNs> firstCall{}; // when the host began to launch it; none where calls are not recorded

    // From the host's first call to the device's begin: how far the host is ahead, or what a launch costs where it is not.
    [[nodiscard]] std::optional<traces::TimeNs> launchDelay() const
    {
        return firstCall ? std::optional(device.begin - *firstCall) : std::nullopt;
    }
    bool operator==(const ActionSpan&) const = default;
};

class ActionSpans {
public:
    explicit ActionSpans(DevicePlaceRanks& ranks) : ranks_(ranks) {} // stays where it is

    void add(const JoinedActivity& joined);
    // Those that have grown since the last time, by step, rank and work, as they are now.
    std::vector<ActionSpan> takeChanged();
    [[nodiscard]] std::optional<ActionSpan> find(traces::Step step, traces::Rank rank, const traces::Work& work) const;
    void forgetBefore(traces::Step step);

private:
    struct Growing {
        ActionSpan span;
        bool changed = false; // since takeChanged()
    };
    using Key = std::tuple<traces::Step, traces::Rank, traces::Work>; // of replicas, the ranks differ

    Growing& growing(const Attribution& whose, traces::Interval first);

    DevicePlaceRanks& ranks_;
    std::map<Key, Growing> actions_;
    std::vector<Key> changed_;
    Growing* last_ = nullptr; // most activities are of the action of the one before
};

} // namespace stagecraft::runtime
