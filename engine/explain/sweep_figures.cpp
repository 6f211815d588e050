// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep_figures.h"

#include "traces/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stagecraft::engine {
namespace {

constexpr std::array<SweepFigureInfo, 9> kFigures{{
    {SweepFigure::BubbleMakespan, "bubble_makespan", "bubble of the makespan", "1 − work/makespan", FigureUnit::Share},
    {SweepFigure::BubbleSpan, "bubble_span", "bubble of the span", "1 − work/longest span of a rank", FigureUnit::Share},
    {SweepFigure::BubbleOverIdeal, "bubble_over_ideal", "bubble over ideal", "makespan/work − 1", FigureUnit::Share},
    {SweepFigure::StepTime, "makespan_ns", "step time", "first start to last end over all ranks", FigureUnit::Time},
    {SweepFigure::PeakActivations, "peak_activations", "peak activations", "micro-batches that the fullest rank holds", FigureUnit::Number},
    {SweepFigure::PeakMemory, "peak_memory_bytes", "peak memory", "bytes that the fullest rank holds", FigureUnit::Size},
    {SweepFigure::Throughput, "throughput_per_s", "throughput", "work done in a second", FigureUnit::PerSecond},
    {SweepFigure::Speedup, "speedup", "speed-up", "time of one rank alone/makespan", FigureUnit::Number, true},
    {SweepFigure::Efficiency, "efficiency", "efficiency", "speed-up/p", FigureUnit::Share, true},
}};

// Four digits, and no power of ten where those do not suffice.
std::string numberText(double value) { return std::abs(value) < 9999.5 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value); }

const std::optional<ClosedForm>* formOf(const SweepPoint& point, SweepFigure figure)
{
    switch (figure) {
    case SweepFigure::BubbleMakespan: return &point.forms.bubbleMakespan;
    case SweepFigure::BubbleSpan: return &point.forms.bubbleSpan;
    case SweepFigure::BubbleOverIdeal: return &point.forms.bubbleOverIdeal;
    case SweepFigure::StepTime:
    case SweepFigure::Throughput: return &point.forms.makespan;
    case SweepFigure::PeakActivations: return &point.forms.peakActivations;
    case SweepFigure::PeakMemory:
    case SweepFigure::Speedup:
    case SweepFigure::Efficiency: break;
    }
    return nullptr;
}

} // namespace

std::span<const SweepFigureInfo> sweepFigures() { return kFigures; }

const SweepFigureInfo& infoOf(SweepFigure figure) { return *std::ranges::find(kFigures, figure, &SweepFigureInfo::figure); }

double simulatedValue(const SweepPoint& point, SweepFigure figure)
{
    switch (figure) {
    case SweepFigure::BubbleMakespan: return point.bubbleMakespan;
    case SweepFigure::BubbleSpan: return point.bubbleSpan;
    case SweepFigure::BubbleOverIdeal: return point.bubbleOverIdeal;
    case SweepFigure::StepTime: return static_cast<double>(point.makespan);
    case SweepFigure::PeakActivations: return point.peakActivations;
    case SweepFigure::PeakMemory: return static_cast<double>(point.peakMemory);
    case SweepFigure::Throughput: return point.throughput;
    case SweepFigure::Speedup: return point.speedup;
    case SweepFigure::Efficiency: return point.efficiency;
    }
    return 0;
}

std::optional<double> formValue(const SweepPoint& point, SweepFigure figure)
{
    if (figure == SweepFigure::Speedup && point.law > 0) return point.law;
    if (figure == SweepFigure::Efficiency && point.law > 0) return point.law / point.value;
    const std::optional<ClosedForm>* form = formOf(point, figure);
    if (!form || !*form) return std::nullopt;
    if (figure != SweepFigure::Throughput) return (*form)->value;
    if ((*form)->value <= 0) return std::nullopt;
    return point.throughput * static_cast<double>(point.makespan) / (*form)->value;
}

std::string_view formText(const SweepPoint& point, SweepFigure figure)
{
    const std::optional<ClosedForm>* form = figure == SweepFigure::Throughput ? nullptr : formOf(point, figure);
    return form && *form ? std::string_view((*form)->text) : std::string_view{};
}

std::string figureText(SweepFigure figure, double value)
{
    switch (infoOf(figure).unit) {
    case FigureUnit::Share: return traces::formatPercent(value);
    case FigureUnit::Time: return traces::formatDuration(std::llround(value));
    case FigureUnit::Number: return numberText(value);
    case FigureUnit::Size: return traces::formatSize(std::llround(value));
    case FigureUnit::PerSecond: return numberText(value);
    }
    return {};
}

} // namespace stagecraft::engine
