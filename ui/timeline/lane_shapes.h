// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lanes as shapes, for SVG and PDF: what LaneCanvas does with pixels, in rectangles, lines and real text, all cut to the
// area by hand.
#pragma once

#include "ui/timeline/lane_picture.h"

#include "ui/theme/theme.h"

#include <QFont>
#include <QRectF>

#include <vector>

class QPainter;

namespace stagecraft::ui {

class LaneShapes {
public:
    // `area` is where the lanes are; a picture's columns are its units.
    LaneShapes(QPainter& painter, const QRectF& area, const Theme& theme, const QFont& font, std::vector<int> grid);
    void paint(const LanePicture& picture);

private:
    void fillColumns(const LanePicture& picture, const QRectF& row, const QColor& ground);
    void hatch(const Bubble& bubble, const QRectF& row);
    void labelBubble(const Bubble& bubble, const LanePicture& picture, const QRectF& row, const QColor& ground);
    [[nodiscard]] QRectF boxOf(const SweepBlock& block, const QRectF& row) const; // as far as it is in sight
    void block(const SweepBlock& block, const LanePicture& picture, const QRectF& row);
    void labelBlock(const SweepBlock& block, const LanePicture& picture, const QRectF& row);

    QPainter& painter_;
    QRectF area_;
    const Theme& theme_;
    QFont font_;
    std::vector<int> grid_;
};

} // namespace stagecraft::ui
