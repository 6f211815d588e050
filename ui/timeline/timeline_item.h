// SPDX-License-Identifier: GPL-3.0-or-later
//
// What lies under the mouse or is selected: a slice or a gap of one source.
#pragma once

#include "traces/analysis/figures.h"
#include "traces/store/trace.h"

#include <QMetaType>

namespace stagecraft::ui {

struct TimelineItem {
    enum class Kind : std::uint8_t { None, Slice, Gap };

    Kind kind = Kind::None;
    int source = 0;           // index into TimelineScene::sources()
    int segment = 0;          // which showing of the trace's times, see Segment
    traces::SliceRef slice{}; // Slice
    traces::Gap gap{};        // Gap; its times are the trace's

    [[nodiscard]] bool none() const { return kind == Kind::None; }
    bool operator==(const TimelineItem&) const = default;
};

} // namespace stagecraft::ui

Q_DECLARE_METATYPE(stagecraft::ui::TimelineItem)
