// SPDX-License-Identifier: GPL-3.0-or-later
//
// Time <-> x, as a pure value. Times stay int64; only the distance from the range's origin becomes double, so a view of
// nanoseconds is exact even a year away from zero.
//
//   TimeMapping map(TimeRange{.origin = 0, .begin = 0, .length = 1e6}, 150, 1000); // 1 ms on the pixels 150 .. 1150
//   map.x(500'000) == 650
#pragma once

#include "traces/base/units.h"

#include <cmath>

namespace stagecraft::ui {

// A visible stretch of time: [origin + begin, origin + begin + length).
struct TimeRange {
    traces::TimeNs origin = 0;
    double begin = 0;  // ns after origin
    double length = 0; // ns

    [[nodiscard]] double at(traces::TimeNs t) const { return static_cast<double>(t - origin) - begin; } // ns after the left end
    [[nodiscard]] traces::TimeNs first() const { return origin + static_cast<traces::TimeNs>(std::floor(begin)); }
    [[nodiscard]] traces::TimeNs last() const { return origin + static_cast<traces::TimeNs>(std::ceil(begin + length)); }
    bool operator==(const TimeRange&) const = default;
};

class TimeMapping {
public:
    TimeMapping() = default;
    TimeMapping(const TimeRange& range, double left, double width)
        : range_(range), left_(left), width_(width), pixelsPerNs_(range.length > 0 ? width / range.length : 0)
    {
    }

    [[nodiscard]] double x(traces::TimeNs t) const { return left_ + range_.at(t) * pixelsPerNs_; }
    [[nodiscard]] traces::TimeNs time(double x) const { return range_.origin + std::llround(nsAt(x)); }
    [[nodiscard]] double pixels(traces::TimeNs duration) const { return static_cast<double>(duration) * pixelsPerNs_; }
    [[nodiscard]] double nsPerPixel() const { return pixelsPerNs_ > 0 ? 1 / pixelsPerNs_ : 0; }
    // Nanoseconds after the range's origin.
    [[nodiscard]] double nsAt(double x) const { return range_.begin + (x - left_) * nsPerPixel(); }

    [[nodiscard]] const TimeRange& range() const { return range_; }
    [[nodiscard]] double left() const { return left_; }
    [[nodiscard]] double right() const { return left_ + width_; }
    [[nodiscard]] double width() const { return width_; }
    bool operator==(const TimeMapping&) const = default;

private:
    TimeRange range_;
    double left_ = 0;
    double width_ = 0;
    double pixelsPerNs_ = 0;
};

} // namespace stagecraft::ui
