// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/label_masks.h"

#include <QFontMetrics>
#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr int kMostNumbers = 100'000;
constexpr int kMostTexts = 4096;

int blendChannel(int under, int over, int cover) { return under + ((over - under) * cover + 127) / 255; }

} // namespace

void LabelMasks::setFont(const QFont& font, int pixelSize)
{
    QFont sized = font;
    sized.setPixelSize(pixelSize);
    if (sized == font_) return;
    font_ = sized;
    numbers_.clear();
    texts_.clear();
}

const LabelMask& LabelMasks::number(int value)
{
    if (value < 0 || value >= kMostNumbers) return text(QString::number(value));
    const auto at = static_cast<std::size_t>(value);
    if (numbers_.size() <= at) numbers_.resize(at + 1);
    if (numbers_[at].width == 0) numbers_[at] = render(QString::number(value));
    return numbers_[at];
}

const LabelMask& LabelMasks::text(const QString& text)
{
    const auto known = texts_.constFind(text);
    if (known != texts_.constEnd()) return *known;
    if (texts_.size() >= kMostTexts) texts_.clear();
    return *texts_.insert(text, render(text));
}

LabelMask LabelMasks::render(const QString& text) const
{
    const QFontMetrics metrics(font_);
    LabelMask mask;
    mask.width = std::max(1, metrics.horizontalAdvance(text));
    mask.height = metrics.height();
    QImage image(mask.width, mask.height, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.setFont(font_);
    painter.setPen(Qt::white);
    painter.drawText(0, metrics.ascent(), text);
    painter.end();
    mask.cover.reserve(static_cast<std::size_t>(mask.width) * static_cast<std::size_t>(mask.height));
    for (int y = 0; y < mask.height; ++y) {
        const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
        for (int x = 0; x < mask.width; ++x) mask.cover.push_back(static_cast<std::uint8_t>(qAlpha(line[x])));
    }
    return mask;
}

void LabelMasks::blend(QImage& image, int x, int y, const LabelMask& mask, QRgb ink)
{
    const int firstX = std::max(0, -x);
    const int lastX = std::min(mask.width, image.width() - x);
    const int firstY = std::max(0, -y);
    const int lastY = std::min(mask.height, image.height() - y);
    for (int row = firstY; row < lastY; ++row) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y + row)) + x;
        const std::uint8_t* cover = mask.cover.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(mask.width);
        for (int column = firstX; column < lastX; ++column) {
            const int c = cover[column];
            if (c == 0) continue;
            const QRgb under = line[column];
            line[column] = qRgb(blendChannel(qRed(under), qRed(ink), c), blendChannel(qGreen(under), qGreen(ink), c),
                                blendChannel(qBlue(under), qBlue(ink), c));
        }
    }
}

} // namespace stagecraft::ui
