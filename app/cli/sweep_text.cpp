// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sweep_text.h"

#include "app/cli/table.h"
#include "engine/explain/sweep_figures.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::cli {

namespace {

using engine::Sweep;
using engine::SweepFigure;
using engine::SweepPoint;
using engine::SweepSeries;

struct Shown {
    SweepFigure figure;
    std::string title;
    bool form = false; // a column for the formula beside it
};

bool anyForm(const SweepSeries& series, SweepFigure figure)
{
    return std::ranges::any_of(series.points, [&](const SweepPoint& point) { return engine::formValue(point, figure).has_value(); });
}

std::vector<Shown> shownFigures(const Sweep& sweep, const SweepSeries& series)
{
    std::vector<Shown> shown{{SweepFigure::StepTime, "step", true},
                             {SweepFigure::BubbleMakespan, "bubble_makespan", true},
                             {SweepFigure::BubbleSpan, "bubble_span", false},
                             {SweepFigure::BubbleOverIdeal, "bubble_over_ideal", false},
                             {SweepFigure::PeakActivations, "peak activations", true},
                             {SweepFigure::PeakMemory, "peak memory", false},
                             {SweepFigure::Throughput, sweep.throughputUnit, false}};
    if (sweep.scaling != engine::Scaling::None) {
        shown.push_back({SweepFigure::Speedup, "speed-up", true});
        shown.push_back({SweepFigure::Efficiency, "efficiency", false});
    }
    std::erase_if(shown, [&](const Shown& column) {
        return column.figure == SweepFigure::PeakMemory &&
               std::ranges::all_of(series.points, [](const SweepPoint& point) { return point.peakMemory == 0; });
    });
    for (Shown& column : shown) column.form = column.form && anyForm(series, column.figure);
    return shown;
}

std::string_view lawName(const Sweep& sweep) { return sweep.scaling == engine::Scaling::Strong ? "Amdahl" : "Gustafson"; }

// The formulas of a series once where all points have the same.
std::string formulasText(const SweepSeries& series, const std::vector<Shown>& shown)
{
    std::string text;
    for (const Shown& column : shown) {
        if (!column.form || column.figure == SweepFigure::Speedup) continue;
        std::vector<std::string_view> texts;
        for (const SweepPoint& point : series.points)
            if (const std::string_view form = engine::formText(point, column.figure);
                !form.empty() && std::ranges::find(texts, form) == texts.end())
                texts.push_back(form);
        text += fmt::format("  {} by formula: {}\n", column.title, fmt::join(texts, "; "));
    }
    return text;
}

std::string bestText(const Sweep& sweep, const SweepSeries& series)
{
    if (sweep.axis.quantity != engine::SweepQuantity::MicrobatchSize) return {};
    const SweepPoint* best = engine::fastest(series);
    std::string text = best ? fmt::format("  fastest: b = {:.0f}, {:.4g} {}", best->value, best->throughput, sweep.throughputUnit) : std::string();
    if (series.bestSize) text += fmt::format("; by formula b* = {} = {:.4g}", series.bestSize->text, series.bestSize->value);
    return text.empty() ? text : text + "\n";
}

constexpr std::size_t kMostNamed = 8; // values that are left out

// Reasons name the value, so that the first stands for all; --json has each.
std::string leftOutText(const Sweep& sweep, const SweepSeries& series)
{
    if (series.leftOut.empty()) return {};
    std::vector<std::string> values;
    for (const engine::LeftOut& left : series.leftOut) values.push_back(engine::sweepValueText(sweep.axis.quantity, left.value));
    if (values.size() > kMostNamed) {
        const std::size_t more = values.size() - kMostNamed;
        values.resize(kMostNamed);
        values.push_back(fmt::format("and {} more", more));
    }
    return fmt::format("  left out: {}; {} because: {}\n", fmt::join(values, ", "), values.front(), series.leftOut.front().reason);
}

std::string seriesText(const Sweep& sweep, const SweepSeries& series)
{
    std::string text = fmt::format("{} ({})\n", series.title, series.schedule);
    const std::vector<Shown> shown = shownFigures(sweep, series);
    if (!series.points.empty()) {
        std::vector<Column> columns{{std::string(infoOf(sweep.axis.quantity).key), Align::Right}};
        for (const Shown& column : shown) {
            columns.push_back({column.title, Align::Right});
            if (column.form) columns.push_back({column.figure == SweepFigure::Speedup ? std::string(lawName(sweep)) : "formula", Align::Right});
        }
        Table table(std::move(columns));
        for (const SweepPoint& point : series.points) {
            std::vector<std::string> cells{engine::sweepValueText(sweep.axis.quantity, point.value)};
            for (const Shown& column : shown) {
                cells.push_back(engine::figureText(column.figure, engine::simulatedValue(point, column.figure)));
                if (!column.form) continue;
                const std::optional<double> form = engine::formValue(point, column.figure);
                cells.push_back(form ? engine::figureText(column.figure, *form) : std::string());
            }
            table.add(std::move(cells));
        }
        text += table.text();
    }
    if (sweep.scaling != engine::Scaling::None && !series.points.empty())
        text += series.serialShare ? fmt::format("  {}'s line with a serial share of {}\n", lawName(sweep), traces::formatPercent(*series.serialShare))
                                   : fmt::format("  no line of {}'s: no formula tells this schedule's serial share; --serial-share gives one\n", lawName(sweep));
    return text + formulasText(series, shown) + bestText(sweep, series) + leftOutText(sweep, series);
}

} // namespace

std::string sweepText(const Sweep& sweep)
{
    std::string text = fmt::format("{} varies{}; simulated\n", infoOf(sweep.axis.quantity).title, sweep.fixed.empty() ? "" : ", " + sweep.fixed);
    for (const std::string& note : sweep.notes) text += note + "\n";
    for (const SweepSeries& series : sweep.series) text += "\n" + seriesText(sweep, series);
    return text;
}

} // namespace stagecraft::cli
