// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which row lies where. Rows are stacked from 0 down: per source a header (where there are several), per rank its compute
// lane and, unless folded, thin lanes of transfers, streams, copies and collectives. Pure: no painting, no widget.
//
//   LaneLayout layout(scene, {.fitHeight = 600});
//   for (const Row& row : layout.rows()) paint(row, top + row.y - scroll);
#pragma once

#include "ui/timeline/timeline_scene.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace stagecraft::ui {

struct Row {
    enum class Kind : std::uint8_t { SourceHeader, Lane };

    Kind kind = Kind::Lane;
    int source = 0;
    double y = 0;
    double height = 0;
    traces::Rank rank{};
    traces::LaneId lane{};
    traces::LaneKind laneKind = traces::LaneKind::Compute;
    std::optional<traces::LaneId> ghost; // Overlaid: the same lane of the simulated source
    int ghostSource = -1;
    std::optional<traces::LaneId> gaps; // of a device's stream: why it stands still, drawn between its kernels

    [[nodiscard]] double bottom() const { return y + height; }
};

// The rows of one rank of one source.
struct RankGroup {
    int source = 0;
    traces::Rank rank{};
    double y = 0;
    double height = 0;
    bool foldable = false; // has thin lanes
    bool folded = false;

    [[nodiscard]] double bottom() const { return y + height; }
};

using FoldedRanks = std::set<std::pair<SourceRole, traces::Rank>>;

struct LayoutOptions {
    double fitHeight = 0;      // compute lanes grow, within bounds, until this is filled; 0: the smallest rows
    double leastCompute = 22;  // height of a lane that computes
    double mostCompute = 76;
    double transferHeight = 9;
    double streamHeight = 18;
    double asideHeight = 14;   // copies and collectives: high enough for a name
    double headerHeight = 26;
    double rankSpacing = 6;    // between ranks
    double sourceSpacing = 10; // between sources
};

class LaneLayout {
public:
    LaneLayout() = default;
    LaneLayout(const TimelineScene& scene, const LayoutOptions& options, const FoldedRanks& folded = {});

    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
    [[nodiscard]] const std::vector<RankGroup>& groups() const { return groups_; }
    [[nodiscard]] double height() const { return height_; }

    [[nodiscard]] const Row* rowAt(double y) const; // null between rows
    [[nodiscard]] const RankGroup* groupAt(double y) const;
    [[nodiscard]] const Row* rowOf(int source, traces::LaneId lane) const; // null when folded away
    // The source header that sticks to the top edge when scrolled to `scroll`, and how far it is pushed up by the next one.
    struct Sticky {
        const Row* header = nullptr;
        double y = 0; // in the view, 0 or negative
    };
    [[nodiscard]] Sticky stickyHeader(double scroll) const;

private:
    std::vector<Row> rows_;
    std::vector<RankGroup> groups_;
    double height_ = 0;
};

} // namespace stagecraft::ui
