// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_layout.h"

#include "traces/analysis/stream_lanes.h"

#include <algorithm>
#include <map>

namespace stagecraft::ui {
namespace {

using traces::LaneId;
using traces::LaneKind;
using traces::Rank;

// Lanes of one source by rank; compute lanes first, then transfers, streams, copies and collectives.
std::map<Rank, std::vector<LaneId>> lanesByRank(const traces::Trace& trace)
{
    std::map<Rank, std::vector<LaneId>> ranks;
    for (std::size_t i = 0; i < trace.laneCount(); ++i) ranks[trace.lanes()[i].info().rank].push_back(LaneId{i});
    for (auto& [rank, lanes] : ranks)
        std::stable_sort(lanes.begin(), lanes.end(), [&](LaneId a, LaneId b) {
            const traces::LaneInfo& ia = trace.lane(a).info();
            const traces::LaneInfo& ib = trace.lane(b).info();
            return std::tie(ia.kind, ia.depth) < std::tie(ib.kind, ib.depth);
        });
    return ranks;
}

// The lane of gaps that goes with a stream's; the lanes are those of its rank.
std::optional<LaneId> gapsOf(const traces::Trace& trace, const std::vector<LaneId>& lanes, LaneId stream)
{
    const traces::LaneInfo& own = trace.lane(stream).info();
    if (!holdsKernels(own) && !holdsNccl(own)) return std::nullopt;
    const auto gaps = std::find_if(lanes.begin(), lanes.end(), [&](LaneId each) {
        if (!holdsGaps(trace.lane(each).info())) return false;
        const std::string_view stream = streamName(trace.lane(each).info());
        return own.name == stream || own.name == traces::ncclLaneName(stream);
    });
    return gaps != lanes.end() ? std::optional(*gaps) : std::nullopt;
}

} // namespace

LaneLayout::LaneLayout(const TimelineScene& scene, const LayoutOptions& options, const FoldedRanks& folded)
{
    const bool headers = options.headerHeight > 0;
    const auto place = [&](double computeHeight) {
        rows_.clear();
        groups_.clear();
        double y = headers ? 0 : options.rankSpacing;
        for (int source = 0; source < scene.sourceCount(); ++source) {
            const traces::Trace& trace = scene.trace(source);
            if (scene.drawnAsOutline(source)) continue;
            if (!rows_.empty()) y += options.sourceSpacing;
            if (headers) {
                Row header;
                header.kind = Row::Kind::SourceHeader;
                header.source = source;
                header.y = y;
                header.height = options.headerHeight;
                rows_.push_back(header);
                y += options.headerHeight + options.rankSpacing / 2;
            }
            for (const auto& [rank, lanes] : lanesByRank(trace)) {
                RankGroup group{source, rank, y, 0, false, folded.contains({scene.role(source), rank})};
                const LaneKind first = trace.lane(lanes.front()).info().kind;
                for (std::size_t i = 0; i < lanes.size(); ++i) {
                    const LaneKind kind = trace.lane(lanes[i]).info().kind;
                    if (holdsGaps(trace.lane(lanes[i]).info())) continue; // it is drawn on its stream's row
                    // The first lane stays when a rank is folded, whatever it is.
                    const bool thin = kind != first || (kind != LaneKind::Compute && i > 0);
                    group.foldable |= thin;
                    if (thin && group.folded) continue;
                    Row row;
                    row.source = source;
                    row.rank = rank;
                    row.lane = lanes[i];
                    row.laneKind = kind;
                    row.gaps = gapsOf(trace, lanes, lanes[i]);
                    row.y = i == 0 ? y : y + 2;
                    row.height = kind == LaneKind::Compute    ? computeHeight
                                 : kind == LaneKind::Stream   ? options.streamHeight
                                 : kind == LaneKind::Transfer ? options.transferHeight
                                                              : options.asideHeight;
                    rows_.push_back(row);
                    y = row.bottom();
                }
                group.height = y - group.y;
                groups_.push_back(group);
                y += options.rankSpacing;
            }
        }
        height_ = rows_.empty() ? 0 : rows_.back().bottom() + options.rankSpacing;
    };
    place(options.leastCompute);
    const auto computing = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) {
        return row.kind == Row::Kind::Lane && row.laneKind == LaneKind::Compute;
    });
    const double spare = options.fitHeight - height_;
    if (computing > 0 && spare > 0) {
        const double grown = options.leastCompute + std::floor(spare / static_cast<double>(computing));
        place(std::min(options.mostCompute, grown));
    }

    if (scene.arrangement() != Arrangement::Overlaid) return;
    for (int source = 0; source < scene.sourceCount(); ++source) {
        if (!scene.drawnAsOutline(source)) continue;
        for (Row& row : rows_) {
            if (row.kind != Row::Kind::Lane) continue;
            const traces::LaneInfo& info = scene.trace(row.source).lane(row.lane).info();
            row.ghost = scene.trace(source).findLane(info.rank, info.kind, info.depth);
            if (row.ghost) row.ghostSource = source;
        }
    }
}

const Row* LaneLayout::rowAt(double y) const
{
    const auto after = std::upper_bound(rows_.begin(), rows_.end(), y, [](double at, const Row& row) { return at < row.y; });
    if (after == rows_.begin()) return nullptr;
    const Row& row = *(after - 1);
    return y < row.bottom() ? &row : nullptr;
}

const RankGroup* LaneLayout::groupAt(double y) const
{
    const auto after =
        std::upper_bound(groups_.begin(), groups_.end(), y, [](double at, const RankGroup& group) { return at < group.y; });
    if (after == groups_.begin()) return nullptr;
    const RankGroup& group = *(after - 1);
    return y < group.bottom() ? &group : nullptr;
}

const Row* LaneLayout::rowOf(int source, LaneId lane) const
{
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
        return r.kind == Row::Kind::Lane && r.source == source && (r.lane == lane || r.gaps == lane);
    });
    return row == rows_.end() ? nullptr : &*row;
}

LaneLayout::Sticky LaneLayout::stickyHeader(double scroll) const
{
    Sticky sticky;
    for (const Row& row : rows_) {
        if (row.kind != Row::Kind::SourceHeader) continue;
        if (row.y <= scroll) sticky = {&row, 0};
        else if (sticky.header) {
            sticky.y = std::min(0.0, row.y - scroll - sticky.header->height);
            break;
        }
    }
    return sticky;
}

} // namespace stagecraft::ui
