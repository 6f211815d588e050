// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_axis.h"

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr std::size_t kLongestHistory = 100;
constexpr double kFollowPlace = 0.92; // of the width: where the newest moment is kept

// Whole nanoseconds belong to the origin, so that `begin` keeps its precision wherever the view goes.
TimeRange normalised(TimeRange range)
{
    const double whole = std::floor(range.begin);
    range.origin += static_cast<traces::TimeNs>(whole);
    range.begin -= whole;
    return range;
}

} // namespace

TimeAxis::TimeAxis(QObject* parent) : QObject(parent), range_(fitted(limits_)) {}

TimeRange TimeAxis::fitted(traces::Interval interval) const
{
    const double length = std::max(static_cast<double>(interval.length()), kShortest / (1 + 2 * kFitMargin));
    return normalised({interval.begin, -kFitMargin * length, length * (1 + 2 * kFitMargin)});
}

TimeRange TimeAxis::clamped(TimeRange range) const
{
    const TimeRange all = fitted(limits_);
    const double length = std::clamp(range.length, kShortest, all.length);
    // The middle of the view stays within the limits: one can look past the ends, but not lose the data.
    const double low = all.at(limits_.begin) - length / 2;
    const double high = all.at(limits_.end) - length / 2;
    const double begin = static_cast<double>(range.origin - all.origin) + range.begin - all.begin;
    return normalised({all.origin, all.begin + std::clamp(begin, low, std::max(low, high)), length});
}

void TimeAxis::show(TimeRange range, bool showsAll)
{
    showsAll_ = showsAll;
    if (range == range_) return;
    range_ = range;
    emit rangeChanged();
}

void TimeAxis::remember(Gesture gesture)
{
    const bool sameGesture = gesture == Gesture::Continuous && gesture_ == Gesture::Continuous;
    gesture_ = gesture;
    if (sameGesture) return;
    past_.push_back({range_, showsAll_});
    if (past_.size() > kLongestHistory) past_.erase(past_.begin());
    future_.clear();
    emit historyChanged();
}

void TimeAxis::setLimits(traces::Interval limits)
{
    if (limits.length() <= 0) limits.end = limits.begin + 1;
    if (limits == limits_) return;
    limits_ = limits;
    show(showsAll_ ? fitted(limits_) : clamped(range_), showsAll_);
}

void TimeAxis::showAll()
{
    past_.clear();
    future_.clear();
    gesture_ = Gesture::None;
    emit historyChanged();
    show(fitted(limits_), true);
}

void TimeAxis::fitAll()
{
    emit moved();
    if (showsAll_) return;
    remember(Gesture::None);
    show(fitted(limits_), true);
}

void TimeAxis::fit(traces::Interval interval)
{
    emit moved();
    remember(Gesture::None);
    show(clamped(fitted(interval)), false);
}

void TimeAxis::setRange(traces::Interval interval)
{
    emit moved();
    remember(Gesture::None);
    show(clamped({interval.begin, 0, static_cast<double>(interval.length())}), false);
}

void TimeAxis::zoom(double factor, traces::TimeNs anchor)
{
    const double full = fitted(limits_).length;
    const double length = std::clamp(range_.length * factor, kShortest, full);
    if (length == range_.length) return;
    remember(Gesture::Continuous);
    if (length >= full) {
        show(fitted(limits_), true);
        return;
    }
    const double place = range_.at(anchor) / range_.length;
    TimeRange next = range_;
    next.begin += place * (range_.length - length);
    next.length = length;
    show(clamped(next), false);
}

void TimeAxis::pan(double ns)
{
    emit moved();
    TimeRange next = range_;
    next.begin += ns;
    next = clamped(next);
    if (next == range_) return;
    remember(Gesture::Continuous);
    show(next, false);
}

void TimeAxis::follow(traces::TimeNs newest, double length)
{
    show(clamped({newest, -kFollowPlace * length, length}), false);
}

void TimeAxis::back()
{
    if (past_.empty()) return;
    emit moved();
    future_.push_back({range_, showsAll_});
    const View view = past_.back();
    past_.pop_back();
    gesture_ = Gesture::None;
    show(view.showsAll ? fitted(limits_) : clamped(view.range), view.showsAll);
    emit historyChanged();
}

void TimeAxis::forward()
{
    if (future_.empty()) return;
    emit moved();
    past_.push_back({range_, showsAll_});
    const View view = future_.back();
    future_.pop_back();
    gesture_ = Gesture::None;
    show(view.showsAll ? fitted(limits_) : clamped(view.range), view.showsAll);
    emit historyChanged();
}

} // namespace stagecraft::ui
