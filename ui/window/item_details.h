// SPDX-License-Identifier: GPL-3.0-or-later
//
// What there is to say of a selected block or bubble, as lines to read.
#pragma once

#include "ui/timeline/timeline_scene.h"

#include <QString>

#include <vector>

namespace stagecraft::ui {

struct ItemDetails {
    QString title;
    std::vector<std::pair<QString, QString>> lines;
};

// An item that is gone, or none, has an empty title.
ItemDetails detailsOf(const TimelineScene& scene, const TimelineItem& item);

} // namespace stagecraft::ui
