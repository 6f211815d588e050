// SPDX-License-Identifier: Apache-2.0
#include "app/cli/durations.h"

#include "app/cli/table.h"
#include "traces/base/text.h"
#include "traces/base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace stagecraft::cli {

using traces::formatDuration;

namespace {

// "0" is a stage; in two-direction schedules each direction has stages of its own.
std::string flowText(traces::Flow flow) { return flow == traces::Flow::Down ? "d" : flow == traces::Flow::Up ? "u" : ""; }

Json outliersJson(const traces::Trace& trace, const std::vector<traces::SliceRef>& outliers)
{
    Json json = Json::array();
    for (const traces::SliceRef& ref : outliers) {
        const traces::Slice slice = trace.slice(ref);
        json.push_back({{"slice", trace.sliceName(ref)},
                        {"rank", trace.lane(ref.lane).info().rank.value},
                        {"step", slice.step.value},
                        {"begin_ns", slice.begin},
                        {"end_ns", slice.end}});
    }
    return json;
}

// A bar per interval, in eighths of the highest.
std::string shapeOf(const traces::Histogram& histogram)
{
    constexpr std::array<std::string_view, 9> kBars{"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
    std::string shape;
    for (const std::size_t count : histogram.counts) shape += kBars[(count * 8 + most - 1) / most];
    return shape;
}

} // namespace

Json durationsJson(const traces::Trace& trace, const traces::Durations& durations)
{
    Json actions = Json::array();
    for (const auto& [s, histogram, total, share, place] : durations.rows)
        actions.push_back({{"stage", s.stage.value},
                           {"rank", place ? Json(place->rank.value) : Json()},
                           {"chunk", place ? Json(place->chunk) : Json()},
                           {"direction", flowText(s.flow)},
                           {"kind", std::string(kindName(s.kind))},
                           {"count", s.count},
                           {"median_ns", s.median},
                           {"lower_quartile_ns", s.lowerQuartile},
                           {"upper_quartile_ns", s.upperQuartile},
                           {"p95_ns", s.p95},
                           {"min_ns", s.least},
                           {"max_ns", s.most},
                           {"total_ns", total},
                           {"share", share ? Json(*share) : Json()},
                           {"outliers", outliersJson(trace, s.outliers)},
                           {"histogram", {{"from_ns", histogram.from}, {"width_ns", histogram.width}, {"counts", histogram.counts}}}});
    return {{"actions", std::move(actions)}, {"hand_off_median_ns", durations.handOff ? Json(*durations.handOff) : Json()}};
}

std::string durationsText(const traces::Trace& trace, const traces::Durations& durations)
{
    Table table({{"stage", Align::Right},
                 {"kind", Align::Left},
                 {"count", Align::Right},
                 {"median", Align::Right},
                 {"middle half", Align::Right},
                 {"p95", Align::Right},
                 {"shortest", Align::Right},
                 {"longest", Align::Right},
                 {"of busy", Align::Right},
                 {"far out", Align::Right},
                 {"shortest to longest", Align::Left}});
    for (const auto& [s, histogram, total, share, place] : durations.rows)
        table.add({flowText(s.flow) + fmt::format("{}", s.stage.value), std::string(kindName(s.kind)),
                   fmt::format("{}", s.count), formatDuration(s.median),
                   fmt::format("{} – {}", formatDuration(s.lowerQuartile), formatDuration(s.upperQuartile)), formatDuration(s.p95),
                   formatDuration(s.least), formatDuration(s.most), share ? traces::formatPercent(*share) : "", s.outliers.empty() ? "" : fmt::format("{}", s.outliers.size()),
                   shapeOf(histogram)});
    std::string text = fmt::format("\ndurations of actions{}\n{}",
                                   durations.firstLeftOut ? ", the first step left out" : "", table.text());
    std::vector<std::string> outliers;
    for (const traces::DurationRow& row : durations.rows) {
        for (const traces::SliceRef& ref : row.statistics.outliers) {
            const traces::Slice slice = trace.slice(ref);
            outliers.push_back(fmt::format("{} of step {} ({})", trace.sliceName(ref), slice.step.value, formatDuration(slice.end - slice.begin)));
        }
    }
    if (!outliers.empty()) {
        constexpr std::size_t kShown = 8;
        const std::size_t left = outliers.size() > kShown ? outliers.size() - kShown : 0;
        outliers.resize(outliers.size() - left);
        text += fmt::format("  far out, longer than the middle half by three times its width: {}{}\n", fmt::join(outliers, ", "),
                            left > 0 ? fmt::format(", and {} more", left) : "");
    }
    if (durations.handOff)
        text += fmt::format("  hand-off between ranks: {} (median)\n", formatDuration(*durations.handOff));
    return text;
}

} // namespace stagecraft::cli
