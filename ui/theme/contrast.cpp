// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/contrast.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

double linear(double channel) { return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4); }

double luminance(const QColor& c)
{
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

} // namespace

double contrastRatio(const QColor& a, const QColor& b)
{
    const double la = luminance(a);
    const double lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

QColor readableInk(const QColor& ground, const QColor& dark, const QColor& light)
{
    return contrastRatio(ground, dark) >= contrastRatio(ground, light) ? dark : light;
}

QColor mixed(const QColor& from, const QColor& to, double share)
{
    const auto blend = [share](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * share)); };
    return {blend(from.red(), to.red()), blend(from.green(), to.green()), blend(from.blue(), to.blue())};
}

} // namespace stagecraft::ui
