// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a rank holds over time, as a step function that grows with its trace: only what came since the last update is looked
// at, unless it lies before something already summed.
#pragma once

#include "traces/store/trace.h"

#include <cstdint>
#include <vector>

namespace stagecraft::ui {

struct RankPoint {
    traces::TimeNs time = 0;
    std::int64_t value = 0; // from `time` on

    bool operator==(const RankPoint&) const = default;
};

class RankCurve {
public:
    explicit RankCurve(traces::Rank rank) : rank_(rank) {}
    virtual ~RankCurve() = default;

    // Number of points from the front that are still as they were before.
    virtual std::size_t update(const traces::Trace& trace) = 0;

    [[nodiscard]] traces::Rank rank() const { return rank_; }
    [[nodiscard]] const std::vector<RankPoint>& points() const { return points_; }
    [[nodiscard]] std::int64_t at(traces::TimeNs t) const; // 0 before the first point
    [[nodiscard]] RankPoint highest() const; // the first of the points with the most; 0 where there is none

protected:
    void clear();
    // `kept`: points that stay as they are, lowered where the last one is replaced.
    void add(RankPoint point, std::size_t& kept);
    void findHighest(std::size_t kept);

private:
    traces::Rank rank_;
    std::vector<RankPoint> points_;
    std::size_t highest_ = 0;
};

} // namespace stagecraft::ui
