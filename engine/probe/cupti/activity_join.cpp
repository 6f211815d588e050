// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_join.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace stagecraft::runtime {

using traces::Interval;
using traces::TimeNs;

namespace {

template <class Activity>
constexpr bool kIsDeviceWork = std::is_same_v<Activity, KernelActivity> || std::is_same_v<Activity, CopyActivity> ||
                               std::is_same_v<Activity, PeerCopyActivity> || std::is_same_v<Activity, MemsetActivity>;

// What belongs to a call of the host, and waits for it.
template <class Activity>
constexpr bool kIsJoined = kIsDeviceWork<Activity> || std::is_same_v<Activity, MemoryActivity>;

bool isDeviceWork(const DeviceActivity& activity)
{
    return std::visit([](const auto& each) { return kIsDeviceWork<std::decay_t<decltype(each)>>; }, activity);
}
bool isJoined(const DeviceActivity& activity)
{
    return std::visit([](const auto& each) { return kIsJoined<std::decay_t<decltype(each)>>; }, activity);
}

bool overlap(const Interval& a, const Interval& b) { return a.begin <= b.end && b.begin <= a.end; }

} // namespace

void ActivityJoin::add(const DeviceActivity& activity, std::vector<JoinedActivity>& out)
{
    std::visit([&](const auto& each) { addToLaunch(each, out); }, activity);
}

template <class Activity>
void ActivityJoin::addToLaunch(const Activity& activity, std::vector<JoinedActivity>& out)
{
    if constexpr (std::is_same_v<Activity, CorrelationActivity>) {
        Launch& launch = launchOf(activity.correlation, out);
        if (launch.work != kNoWork && launch.work != activity.id) {
            // The number has come round: what still waits under it belongs to the launch before.
            for (const DeviceActivity& each : std::exchange(launch.waiting, {})) handOn(each, launch, out);
            launch.call.reset();
            moveTo(Wait::Queued, activity.correlation, launch);
        }
        launch.work = activity.id;
        settle(activity.correlation, launch, out);
    } else if constexpr (std::is_same_v<Activity, ApiActivity>) {
        Launch& launch = launchOf(activity.correlation, out);
        // A call of the driver lies within the one of the runtime that made it. One that lies elsewhere is a later launch.
        if (launch.call && overlap(*launch.call, activity.span)) {
            launch.call = Interval{std::min(launch.call->begin, activity.span.begin), std::max(launch.call->end, activity.span.end)};
        } else {
            launch.call = activity.span;
        }
        settle(activity.correlation, launch, out); // what waited for the call
        handOnOrKeep(activity, launch, out);
    } else if constexpr (kIsJoined<Activity>) {
        handOnOrKeep(activity, launchOf(activity.correlation, out), out);
    } else {
        out.push_back({.activity = activity, .work = kNoWork, .call = std::nullopt});
    }
}

template <class Activity>
void ActivityJoin::handOnOrKeep(const Activity& activity, Launch& launch, std::vector<JoinedActivity>& out)
{
    if (!isComplete(kIsJoined<Activity>, launch)) {
        launch.waiting.emplace_back(activity);
        if (launch.wait != Wait::Kernel) moveTo(Wait::Kernel, activity.correlation, launch);
        return;
    }
    handOn(activity, launch, out);
    if constexpr (kIsDeviceWork<Activity>) {
        if (launch.wait == Wait::Queued && !activity.ofGraph) moveTo(Wait::Served, activity.correlation, launch);
    }
}

ActivityJoin::Launch& ActivityJoin::launchOf(std::uint32_t correlation, std::vector<JoinedActivity>& out)
{
    if (const auto known = launches_.find(correlation); known != launches_.end()) return known->second;
    while (launches_.size() >= std::max<std::size_t>(options_.most, 1)) giveUpOldest(out);
    Launch& launch = launches_[correlation];
    moveTo(Wait::Queued, correlation, launch);
    return launch;
}

bool ActivityJoin::isComplete(bool needsCall, const Launch& launch) const
{
    return launch.work != kNoWork && (launch.call || !options_.calls || !needsCall);
}

void ActivityJoin::settle(std::uint32_t correlation, Launch& launch, std::vector<JoinedActivity>& out)
{
    if (launch.waiting.empty()) return;
    bool served = false;
    std::size_t kept = 0;
    for (DeviceActivity& each : launch.waiting) {
        if (!isComplete(isJoined(each), launch)) {
            launch.waiting[kept++] = std::move(each);
            continue;
        }
        handOn(each, launch, out);
        // Of a graph's launch there are more to come, nobody knows how many.
        served = served || std::visit(
                               [](const auto& work) {
                                   if constexpr (kIsDeviceWork<std::decay_t<decltype(work)>>) return !work.ofGraph;
                                   return false;
                               },
                               each);
    }
    launch.waiting.resize(kept);
    const Wait wait = kept > 0 ? Wait::Kernel : served ? Wait::Served : Wait::Queued;
    if (wait != launch.wait) moveTo(wait, correlation, launch);
}

void ActivityJoin::moveTo(Wait wait, std::uint32_t correlation, Launch& launch)
{
    launch.wait = wait;
    launch.stamp = ++stamp_;
    duesOf(wait).push_back({.correlation = correlation, .stamp = launch.stamp, .since = now_, .flush = flush_});
}

void ActivityJoin::handOn(const DeviceActivity& activity, const Launch& launch, std::vector<JoinedActivity>& out)
{
    const auto* call = std::get_if<ApiActivity>(&activity);
    if (isDeviceWork(activity) && launch.work == kNoWork) ++unattributed_;
    out.push_back({.activity = activity, .work = launch.work, .call = call != nullptr ? std::optional(call->span) : launch.call});
}

void ActivityJoin::giveUp(Launches::iterator launch, std::vector<JoinedActivity>& out)
{
    for (const DeviceActivity& each : launch->second.waiting) handOn(each, launch->second, out);
    launches_.erase(launch);
}

bool ActivityJoin::isVoid(const Due& due) const
{
    const auto launch = launches_.find(due.correlation);
    return launch == launches_.end() || launch->second.stamp != due.stamp;
}

void ActivityJoin::giveUpOldest(std::vector<JoinedActivity>& out)
{
    // What has had its kernel first, then what waits for one.
    for (const Wait wait : {Wait::Served, Wait::Queued, Wait::Kernel}) {
        std::deque<Due>& dues = duesOf(wait);
        while (!dues.empty() && isVoid(dues.front())) dues.pop_front();
        if (dues.empty()) continue;
        giveUp(launches_.find(dues.front().correlation), out);
        dues.pop_front();
        return;
    }
}

template <class IsOver>
void ActivityJoin::expire(Wait wait, IsOver&& isOver, std::vector<JoinedActivity>& out)
{
    std::deque<Due>& dues = duesOf(wait);
    // What has moved on since is void. Behind one that waits long, that would pile up.
    if (dues.size() > 2 * launches_.size() + 1024) std::erase_if(dues, [this](const Due& due) { return isVoid(due); });
    for (; !dues.empty(); dues.pop_front()) {
        if (isVoid(dues.front())) continue;
        if (!isOver(dues.front())) return;
        giveUp(launches_.find(dues.front().correlation), out);
    }
}

void ActivityJoin::flushed(TimeNs now, std::vector<JoinedActivity>& out)
{
    if (flush_ == 0) { // nobody has told the time before
        for (std::deque<Due>& dues : dues_) {
            for (Due& due : dues) due.since = now;
        }
    }
    now_ = now;
    ++flush_;
    const auto impatient = [this](const Due& due) {
        return now_ - due.since >= options_.patience && flush_ - due.flush >= options_.patienceFlushes;
    };
    expire(Wait::Kernel, impatient, out);
    expire(Wait::Served, impatient, out);
    expire(Wait::Queued, [this](const Due& due) { return now_ - due.since >= options_.queued; }, out);
}

void ActivityJoin::finish(std::vector<JoinedActivity>& out)
{
    expire(Wait::Kernel, [](const Due&) { return true; }, out);
    launches_.clear();
    for (std::deque<Due>& dues : dues_) dues.clear();
}

} // namespace stagecraft::runtime
