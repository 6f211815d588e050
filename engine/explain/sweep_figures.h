// SPDX-License-Identifier: Apache-2.0
//
// The figures of a sweep's points by name, for tables, files and plots: simulated and by the closed form.
//
//   for (const SweepFigureInfo& figure : sweepFigures()) figure.key, simulatedValue(point, figure.figure), formValue(point, figure.figure)
#pragma once

#include "engine/explain/sweep.h"

#include <optional>
#include <span>
#include <string_view>

namespace stagecraft::engine {

enum class SweepFigure : std::uint8_t {
    BubbleMakespan,
    BubbleSpan,
    BubbleOverIdeal,
    StepTime,
    PeakActivations,
    PeakMemory,
    Throughput,
    Speedup,
    Efficiency,
};

enum class FigureUnit : std::uint8_t { Share, Time, Number, Size, PerSecond };

struct SweepFigureInfo {
    SweepFigure figure;
    std::string_view key;     // "bubble_makespan": of JSON, CSV and the command line
    std::string_view title;   // "bubble of the makespan", for an axis
    std::string_view meaning; // "1 − work/makespan"
    FigureUnit unit;
    bool scalingOnly = false;
};

std::span<const SweepFigureInfo> sweepFigures();
const SweepFigureInfo& infoOf(SweepFigure figure);

double simulatedValue(const SweepPoint& point, SweepFigure figure); // ns, bytes, shares; throughput as the sweep's unit says
// By the closed form, Amdahl's or Gustafson's law for the speed-up; nothing where there is none.
std::optional<double> formValue(const SweepPoint& point, SweepFigure figure);
std::string_view formText(const SweepPoint& point, SweepFigure figure); // empty where there is none

// "37.5 %", "24 ms"; the unit of a throughput is the sweep's.
std::string figureText(SweepFigure figure, double value);

} // namespace stagecraft::engine
