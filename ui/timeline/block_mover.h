// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who knows what it means to move a block within its lane; the timeline only drags it about. GUI thread.
#pragma once

#include "ui/timeline/timeline_item.h"

#include <QString>

#include <cstdint>

namespace stagecraft::ui {

class BlockMover {
public:
    struct Verdict {
        bool legal = true;
        bool taken = true; // dropped there it would stay, legal or not
        QString message;   // what is said of it while it is held there

        bool operator==(const Verdict&) const = default;
    };

    virtual ~BlockMover() = default;
    [[nodiscard]] virtual bool mayMove(const TimelineItem& block) const = 0;
    // `before` is the slice of its lane in front of which the block would stand; the lane's size: behind all.
    [[nodiscard]] virtual Verdict judge(const TimelineItem& block, std::uint32_t before) = 0;
    virtual void move(const TimelineItem& block, std::uint32_t before) = 0;
};

} // namespace stagecraft::ui
