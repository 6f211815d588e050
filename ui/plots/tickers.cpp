// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/tickers.h"

#include "ui/timeline/time_ticks.h"
#include "ui/timeline/timeline_painter.h"

#include <cmath>

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

} // namespace stagecraft::ui
