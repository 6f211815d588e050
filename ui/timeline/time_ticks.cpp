// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_ticks.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace stagecraft::ui {
namespace {

using traces::TimeNs;

struct Unit {
    TimeNs ns;
    const char* name;
};
constexpr std::array<Unit, 4> kUnits{{{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "\u00b5s"}, {1, "ns"}}};
constexpr int kMostDecimals = 3;

TimeNs niceStep(double least)
{
    TimeNs power = 1;
    while (static_cast<double>(power) * 10 <= least) power *= 10;
    for (const TimeNs factor : {1, 2, 5, 10})
        if (static_cast<double>(power * factor) >= least) return power * factor;
    return power * 10;
}

const Unit& unitFor(TimeNs largest)
{
    for (const Unit& unit : kUnits)
        if (largest >= unit.ns) return unit;
    return kUnits.back();
}

int decimalsFor(TimeNs step, const Unit& unit)
{
    int decimals = 0;
    for (TimeNs place = unit.ns; place > step && place > 1; place /= 10) ++decimals;
    return decimals;
}

// Exact decimal text of an integer number of nanoseconds.
QString inUnit(TimeNs t, const Unit& unit, int decimals)
{
    const TimeNs size = std::abs(t);
    QString text = t < 0 ? QStringLiteral("\u2212") : QString();
    text += QString::number(size / unit.ns);
    if (decimals > 0) {
        QString fraction = QString::number(size % unit.ns);
        int digits = 0;
        for (TimeNs place = unit.ns; place > 1; place /= 10) ++digits;
        text += QLatin1Char('.') + fraction.rightJustified(digits, QLatin1Char('0')).left(decimals);
    }
    return text + QLatin1Char(' ') + QString::fromUtf8(unit.name);
}

TimeNs floorTo(TimeNs t, TimeNs step)
{
    const TimeNs rest = t % step;
    return rest < 0 ? t - rest - step : t - rest;
}

} // namespace

TimeTicks timeTicks(const TimeMapping& map, double leastPixels)
{
    TimeTicks result;
    result.step = niceStep(std::max(1.0, leastPixels * map.nsPerPixel()));
    const TimeNs first = floorTo(map.time(map.left()), result.step);
    const TimeNs last = map.time(map.right());

    const TimeNs largest = std::max(std::abs(first), std::abs(last));
    const Unit* unit = &unitFor(largest);
    TimeNs base = 0;
    if (decimalsFor(result.step, *unit) > kMostDecimals) {
        const TimeNs round = niceStep(static_cast<double>(last - first)) * 10;
        base = floorTo(first, round);
        result.base = inUnit(base, *unit, decimalsFor(round, *unit));
        unit = &unitFor(last - base);
    }
    const int decimals = decimalsFor(result.step, *unit);
    for (TimeNs t = first; t <= last; t += result.step) {
        if (map.x(t) < map.left() - 0.5) continue;
        QString label = t - base == 0 ? QStringLiteral("0") : inUnit(t - base, *unit, decimals);
        if (!result.base.isEmpty()) label.prepend(QLatin1Char('+'));
        result.ticks.push_back({t, std::move(label)});
    }
    return result;
}

QString durationText(TimeNs ns)
{
    QString text = QString::fromStdString(traces::formatDuration(ns));
    if (text.endsWith(QLatin1String(" us"))) text.replace(text.size() - 2, 1, QChar(0x00b5));
    return text;
}

} // namespace stagecraft::ui
