// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/tickers.h"

#include "ui/timeline/time_ticks.h"
#include "ui/timeline/timeline_painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace stagecraft::ui {

QVector<double> TimeTicker::createTickVector(double, const QCPRange& range)
{
    QVector<double> ticks;
    const TimeMapping map({0, range.lower, range.size()}, 0, pixels_);
    for (const TimeTick& tick : timeTicks(map, kTickPixels).ticks) ticks << static_cast<double>(tick.time);
    return ticks;
}

double ByteTicker::getTickStep(const QCPRange& range)
{
    // 1, 2, 5, 10, ... of a binary unit: "200 MiB" reads better than "256 MiB".
    const double wanted = range.size() / std::max(1, tickCount());
    double unit = 1;
    while (unit * 1024 <= wanted) unit *= 1024;
    for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0})
        if (unit * factor >= wanted) return unit * factor;
    return unit * 1024;
}

QString ByteTicker::getTickLabel(double tick, const QLocale&, QChar, int)
{
    return tick <= 0 ? QStringLiteral("0") : QString::fromStdString(traces::formatSize(std::llround(tick)));
}

QVector<double> DurationTicker::createTickVector(double tickStep, const QCPRange& range)
{
    step_ = tickStep;
    longest_ = range.upper;
    return QCPAxisTicker::createTickVector(tickStep, range);
}

QString DurationTicker::getTickLabel(double tick, const QLocale&, QChar, int)
{
    constexpr std::array<std::pair<double, const char*>, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
    for (const auto& [size, unit] : kUnits) {
        if (longest_ < size && size > 1) continue;
        int digits = 0; // that a step takes: steps of 2.5 have one more than their size
        for (double step = step_ / size; digits < 6 && std::abs(step - std::round(step)) > 1e-6 * step; step *= 10) ++digits;
        return QStringLiteral("%1 %2").arg(tick / size, 0, 'f', digits).arg(QString::fromUtf8(unit));
    }
    return {};
}

} // namespace stagecraft::ui
