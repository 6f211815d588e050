// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an item is, apart from its place: by it a selected block or bubble is found again when the sources or their order
// change, a plan is simulated anew, or a run goes on.
//
//   ItemIdentity chosen(scene, item);
//   ...                                       // the sources change
//   const TimelineItem again = chosen.find(scene);   // none where the scene has no such block any more
#pragma once

#include "ui/timeline/timeline_scene.h"

#include <memory>

namespace stagecraft::ui {

class ItemIdentity {
public:
    ItemIdentity() = default;
    ItemIdentity(const TimelineScene& scene, const TimelineItem& item);

    [[nodiscard]] TimelineItem find(const TimelineScene& scene) const;
    [[nodiscard]] bool isBubble() const { return item_.kind == TimelineItem::Kind::Gap; }

private:
    [[nodiscard]] std::optional<traces::SliceRef> findSlice(const traces::Trace& trace, bool sameTrace) const;

    TimelineItem item_;
    SourceRole role_ = SourceRole::Simulation;
    std::weak_ptr<const traces::Trace> trace_;
    traces::LaneInfo lane_;
    traces::Action action_; // of the slice, or of the one that bounds the gap
    traces::Step step_{};
};

// The showing of a moment of a source: `preferred` where that holds it, else the first that does; nullopt where none does.
std::optional<int> segmentHolding(const TimelineScene& scene, int source, traces::TimeNs time, int preferred);

} // namespace stagecraft::ui
