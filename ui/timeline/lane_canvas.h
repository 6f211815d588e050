// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lanes as pixels: every lane is worked out as one row and copied down its height; corners, hatches and labels are blended
// in afterwards. Much cheaper than a shape per block through QPainter.
#pragma once

#include "ui/timeline/label_masks.h"
#include "ui/timeline/lane_picture.h"

#include "ui/theme/theme.h"

#include <QFont>
#include <QImage>
#include <QRect>

#include <vector>

namespace stagecraft::ui {

class LaneCanvas {
public:
    void setFont(const QFont& font) { font_ = font; }

    // `grid`: columns of grid lines; `upper`: the line of all lanes that this image begins at. Pictures are painted from the
    // top down; finish() fills what they leave with the ground.
    void begin(QSize pixels, int upper, double deviceRatio, const Theme& theme, std::vector<int> grid);
    void paint(const LanePicture& picture);
    const QImage& finish();

    // The colours of a lane's columns.
    static std::vector<QRgb> composeRow(const LaneSweep& sweep, const LaneStyle& style, QRgb ground);

private:
    struct Corner {
        int cells = 0; // a side
        std::vector<double> outside;
    };

    void fillGround(int until);
    const Corner& corner(double radius);
    static void compose(std::vector<QRgb>& row, const LaneSweep& sweep, const LaneStyle& style, double ratio);
    void roundCorners(const LanePicture& picture, QRgb ground);
    // Slanted strokes: they lie where x + slant * y is about a multiple of the period.
    void stroke(const QRect& area, int slant, int phase, QRgb colour);
    void hatchBubbles(const LanePicture& picture);
    void hatchBlocks(const LanePicture& picture);
    void label(const LanePicture& picture);
    void labelBubbles(const LanePicture& picture, QRgb ground);
    void outlineGhost(const LanePicture& picture);
    [[nodiscard]] QRgb* line(int y) { return reinterpret_cast<QRgb*>(image_.scanLine(y)); }

    QFont font_;
    QImage image_;
    int upper_ = 0;
    double ratio_ = 1;
    Theme theme_;
    std::vector<int> grid_;
    std::vector<QRgb> row_;
    int filled_ = 0; // lines done
    std::vector<Corner> corners_; // by twice the radius
    LabelMasks blockMasks_;
    LabelMasks bubbleMasks_;
};

} // namespace stagecraft::ui
