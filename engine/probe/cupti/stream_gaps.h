// SPDX-License-Identifier: Apache-2.0
//
// Why a stream stood still between two pieces of work, and how much of the copying went on behind computing. Pure.
//
//      ____________                      __________
//     |  kernel a  |                    |  kernel b  |         the stream
//     |____________|                    |____________|
//          ^call a   ........ ^call b
//                  | host     | launch  |                      the host asked for b only after a had ended
//
// The parts of a gap add up to it: the host (until it called), a wait for an event (where the stream was told to wait between
// the two calls), else the launch (from the call to the begin), else the device (b was there in time and did not begin).
//
//   StreamGaps gaps;                                          // of a stream, while its works come
//   if (const std::optional<StreamGap> gap = gaps.before(work)) for (const GapPart& part : partsOf(*gap)) draw(part);
//   for (const StreamGap& gap : gapsOf(works, waits)) total += gap.byHost;
//   overlapOf(kernels, copies).hidden                        // of copies.length
#pragma once

#include "engine/probe/cupti/activity_join.h"
#include "traces/analysis/stream_lanes.h"

#include <optional>
#include <span>
#include <vector>

namespace stagecraft::runtime {

// A kernel, copy or memset of one stream.
struct StreamWork {
    traces::Interval span;
    std::optional<traces::Interval> call; // on the host, where calls are recorded
};

struct StreamGap {
    traces::Interval gap;
    traces::TimeNs byHost = 0;
    traces::TimeNs byWait = 0;
    traces::TimeNs byLaunch = 0;
    traces::TimeNs byDevice = 0;
    traces::TimeNs notKnown = 0; // all of it where the call is not

    bool operator==(const StreamGap&) const = default;
};

// Of at most two, in the order of time, that last: what is not known is none.
struct GapPart {
    traces::Interval span;
    traces::StreamGapCause cause{};

    bool operator==(const GapPart&) const = default;
};
std::vector<GapPart> partsOf(const StreamGap& gap);

// The same while works come.
class StreamGaps {
public:
    void wait(traces::TimeNs told) { waits_.push_back(told); } // before the work that waits
    // Works come in the order of their begins; one that does not has no gap before it.
    std::optional<StreamGap> before(const StreamWork& work);

private:
    std::vector<traces::TimeNs> waits_; // since the last call, and some before
    std::optional<traces::TimeNs> end_; // of all works so far
    std::optional<traces::TimeNs> lastCall_;
};

// `works` of one stream, in any order; `waits`: when the host told that stream to wait for an event.
std::vector<StreamGap> gapsOf(std::vector<StreamWork> works, std::vector<traces::TimeNs> waits = {});

// The works of one stream, and what it was told to wait for.
std::vector<StreamWork> worksOf(std::span<const JoinedActivity> joined, const DevicePlace& place);
std::vector<traces::TimeNs> waitsOf(std::span<const JoinedActivity> joined, const DevicePlace& place);

struct CopyOverlap {
    traces::TimeNs compute = 0; // time with a kernel at work; several at once count once
    traces::TimeNs copy = 0;    // time with a copy at work
    traces::TimeNs hidden = 0;  // of that, with a kernel at work as well

    bool operator==(const CopyOverlap&) const = default;
};
CopyOverlap overlapOf(std::vector<traces::Interval> kernels, std::vector<traces::Interval> copies);

// Over all streams of one device. A copy between devices is of both.
CopyOverlap overlapOn(std::span<const JoinedActivity> joined, std::uint32_t device);

} // namespace stagecraft::runtime
