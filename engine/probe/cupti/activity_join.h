// SPDX-License-Identifier: Apache-2.0
//
// Puts together what CUPTI records of one launch in several records: the id that stood on the thread, the call on the host, and
// the kernels or copies that it began. They share a correlation number, of 32 bits that wrap, and lie in buffers that come in
// any order. So whatever comes first waits for the others:
//
//   id ─────┐                      a kernel waits for its id, and for its call where calls are recorded
//   call ───┼── correlation 17 ──> an id waits for its kernel: that may run much later than it was launched
//   kernel ─┘                      what has waited long enough is handed on as it is
//
// An allocation is put together with its id and call as a kernel is. Waits for the host (SyncActivity) and overhead are handed on at once,
// without an id. One thread.
//
//   ActivityJoin join({.calls = true});
//   for (const DeviceActivity& each : batch.activities) join.add(each, joined);
//   join.flushed(batch.at, joined);
#pragma once

#include "engine/probe/cupti/device_activity.h"
#include "engine/probe/cupti/work_id.h"

#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace stagecraft::runtime {

struct JoinedActivity {
    DeviceActivity activity; // never a CorrelationActivity
    WorkId work = kNoWork;
    std::optional<traces::Interval> call; // that launched it, on the host; an ApiActivity is its own

    bool operator==(const JoinedActivity&) const = default;
};

struct JoinOptions {
    bool calls = true; // are recorded, so that they are waited for
    // A kernel that misses its id or call waits until both are over.
    traces::TimeNs patience = 1'000'000'000;
    std::uint32_t patienceFlushes = 4;
    // An id without a kernel: the host may be that far ahead of the device.
    traces::TimeNs queued = 60'000'000'000;
    // Correlation numbers; the oldest is given up for one more. CUDA lets the host get about a thousand launches ahead of a stream.
    std::size_t most = std::size_t{1} << 16;
};

class ActivityJoin {
public:
    explicit ActivityJoin(const JoinOptions& options = {}) : options_(options) {}

    void add(const DeviceActivity& activity, std::vector<JoinedActivity>& out);
    // All that was there has been added: what has waited too long is given up.
    void flushed(traces::TimeNs now, std::vector<JoinedActivity>& out);
    // Nothing more will come.
    void finish(std::vector<JoinedActivity>& out);

    // Kernels, copies and memsets that were handed on without an id.
    [[nodiscard]] std::int64_t unattributed() const { return unattributed_; }
    [[nodiscard]] std::size_t waiting() const { return launches_.size(); } // correlation numbers

private:
    enum class Wait : std::uint8_t {
        Kernel, // has activities that miss something
        Queued, // nothing has run yet
        Served, // the one kernel of the launch has been handed on
    };
    struct Launch {
        WorkId work = kNoWork;
        std::optional<traces::Interval> call;
        std::vector<DeviceActivity> waiting;
        Wait wait = Wait::Queued;
        std::uint32_t stamp = 0; // of its newest Due; older ones are void
    };
    struct Due {
        std::uint32_t correlation = 0;
        std::uint32_t stamp = 0;
        traces::TimeNs since = 0;
        std::uint32_t flush = 0;
    };
    using Launches = std::unordered_map<std::uint32_t, Launch>;

    template <class Activity>
    void addToLaunch(const Activity& activity, std::vector<JoinedActivity>& out);
    template <class Activity>
    void handOnOrKeep(const Activity& activity, Launch& launch, std::vector<JoinedActivity>& out);
    Launch& launchOf(std::uint32_t correlation, std::vector<JoinedActivity>& out);
    void settle(std::uint32_t correlation, Launch& launch, std::vector<JoinedActivity>& out);
    void moveTo(Wait wait, std::uint32_t correlation, Launch& launch);
    [[nodiscard]] bool isComplete(bool needsCall, const Launch& launch) const;
    void handOn(const DeviceActivity& activity, const Launch& launch, std::vector<JoinedActivity>& out);
    void giveUp(Launches::iterator launch, std::vector<JoinedActivity>& out);
    void giveUpOldest(std::vector<JoinedActivity>& out);
    template <class IsOver>
    void expire(Wait wait, IsOver&& isOver, std::vector<JoinedActivity>& out);
    [[nodiscard]] bool isVoid(const Due& due) const;
    [[nodiscard]] std::deque<Due>& duesOf(Wait wait) { return dues_[static_cast<std::size_t>(wait)]; }

    JoinOptions options_;
    Launches launches_; // by correlation number
    std::array<std::deque<Due>, 3> dues_; // by Wait, the oldest first
    traces::TimeNs now_ = 0;
    std::uint32_t flush_ = 0;
    std::uint32_t stamp_ = 0;
    std::int64_t unattributed_ = 0;
};

} // namespace stagecraft::runtime
