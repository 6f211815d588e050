// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/rank_curve.h"

#include <algorithm>

namespace stagecraft::ui {

std::int64_t RankCurve::at(traces::TimeNs t) const
{
    const auto after = std::upper_bound(points_.begin(), points_.end(), t,
                                        [](traces::TimeNs time, const RankPoint& point) { return time < point.time; });
    return after == points_.begin() ? 0 : (after - 1)->value;
}

RankPoint RankCurve::highest() const { return points_.empty() ? RankPoint{} : points_[highest_]; }

void RankCurve::clear()
{
    points_.clear();
    highest_ = 0;
}

void RankCurve::add(RankPoint point, std::size_t& kept)
{
    if (!points_.empty() && points_.back().time == point.time) {
        points_.back().value = point.value;
        kept = std::min(kept, points_.size() - 1);
    } else {
        points_.push_back(point);
    }
}

void RankCurve::findHighest(std::size_t kept)
{
    if (kept <= highest_) highest_ = 0;
    for (std::size_t i = highest_ == 0 ? 0 : kept; i < points_.size(); ++i)
        if (points_[i].value > points_[highest_].value) highest_ = i;
}

} // namespace stagecraft::ui
