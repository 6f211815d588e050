// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sum of several memory series of a rank, as a step function that grows with them: only points that came since the
// last update are looked at, unless one lies before points already summed.
#pragma once

#include "traces/store/trace.h"

#include <array>
#include <vector>

namespace stagecraft::ui {

struct MemoryPoint {
    traces::TimeNs time = 0;
    traces::Bytes bytes = 0; // from `time` on

    bool operator==(const MemoryPoint&) const = default;
};

class MemoryCurve {
public:
    // Sums the classes whose bit is set in `classes` (bit = MemoryClass).
    MemoryCurve(traces::Rank rank, unsigned classes) : rank_(rank), classes_(classes) {}
    static constexpr unsigned kAllClasses = (1U << traces::kMemoryClassCount) - 1;

    // Number of points from the front that are still as they were before.
    std::size_t update(const traces::Trace& trace);

    [[nodiscard]] traces::Rank rank() const { return rank_; }
    [[nodiscard]] const std::vector<MemoryPoint>& points() const { return points_; }
    [[nodiscard]] traces::Bytes at(traces::TimeNs t) const; // 0 before the first point
    [[nodiscard]] MemoryPoint highest() const; // the first of the points with the most bytes; 0 bytes where there is none

private:
    traces::Rank rank_;
    unsigned classes_;
    std::array<std::size_t, traces::kMemoryClassCount> read_{};
    std::array<traces::Bytes, traces::kMemoryClassCount> current_{};
    std::vector<MemoryPoint> points_;
    std::size_t highest_ = 0;
};

} // namespace stagecraft::ui
