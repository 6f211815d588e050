// SPDX-License-Identifier: GPL-3.0-or-later
//
// The selected item: its outline, and the edges that lead to it and from it.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/lane_layout.h"

#include <QRectF>

#include <memory>
#include <vector>

class QPainter;

namespace stagecraft::ui {

// The edges of the selected slice. Looking for those that leave it goes through all edges, so they are kept while neither
// the selection nor the trace changes.
class SelectedEdges {
public:
    const std::vector<traces::Edge>& of(const TimelineScene& scene, const TimelineItem& item);

private:
    TimelineItem item_;
    std::weak_ptr<const traces::Trace> trace_; // not its address: the next trace may get the same
    std::size_t edgeCount_ = 0;
    std::vector<traces::Edge> edges_;
};

struct ArrowAreas {
    QRectF lanes;
    double scroll = 0;
    TimeMapping map; // over `lanes`
};

// Where an item is, within the lanes; empty when it is out of sight or folded away.
QRectF itemRect(const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas, const TimelineItem& item);

void paintSelection(QPainter& painter, const TimelineScene& scene, const LaneLayout& layout, const ArrowAreas& areas,
                    const TimelineItem& item, const std::vector<traces::Edge>& edges, const Theme& theme);

} // namespace stagecraft::ui
