// SPDX-License-Identifier: GPL-3.0-or-later
//
// What there is to say of a block or bubble: in the selection panel, in tooltips, to a screen reader.
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

// As rich text with the title above the lines; empty where there is nothing to say.
QString detailsHtml(const ItemDetails& details);

} // namespace stagecraft::ui
