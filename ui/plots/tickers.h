// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ticks of the plots: times at the same places as the timeline's, sizes at round numbers of KiB, MiB or GiB, durations with one unit.
#pragma once

#include <qcustomplot.h>

namespace stagecraft::ui {

// Keys are nanoseconds of shown time.
class TimeTicker : public QCPAxisTicker {
public:
    void setWidth(double pixels) { pixels_ = pixels; }

protected:
    QVector<double> createTickVector(double tickStep, const QCPRange& range) override;
    QString getTickLabel(double, const QLocale&, QChar, int) override { return {}; }

private:
    double pixels_ = 0;
};

// Values are bytes.
class ByteTicker : public QCPAxisTicker {
protected:
    double getTickStep(const QCPRange& range) override;
    QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;
    int getSubTickCount(double) override { return 0; }
};

// Values are durations in nanoseconds: all in the unit of the longest, with as many digits as tell them apart.
class DurationTicker : public QCPAxisTicker {
protected:
    QVector<double> createTickVector(double tickStep, const QCPRange& range) override;
    QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;
    int getSubTickCount(double) override { return 0; }

private:
    double step_ = 1;
    double longest_ = 1;
};

} // namespace stagecraft::ui
