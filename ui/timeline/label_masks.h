// SPDX-License-Identifier: GPL-3.0-or-later
//
// Small texts as masks of coverage, drawn once and blended many times: thousands of block labels fit into a frame.
#pragma once

#include "traces/base/action.h"

#include <QFont>
#include <QHash>
#include <QImage>
#include <QString>

#include <cstdint>
#include <vector>

namespace stagecraft::ui {

struct LabelMask {
    int width = 0;
    int height = 0;
    std::vector<std::uint8_t> cover;
};

class LabelMasks {
public:
    // Size in device pixels; forgets all masks when the font changes.
    void setFont(const QFont& font, int pixelSize);

    const LabelMask& number(int value);
    const LabelMask& text(const QString& text);

    // Blends a mask into an RGB32 image, cut to it.
    static void blend(QImage& image, int x, int y, const LabelMask& mask, QRgb ink);

private:
    [[nodiscard]] LabelMask render(const QString& text) const;

    QFont font_;
    std::vector<LabelMask> numbers_;
    QHash<QString, LabelMask> texts_;
};

} // namespace stagecraft::ui
