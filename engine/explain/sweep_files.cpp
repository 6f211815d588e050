// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep_files.h"

#include "engine/explain/sweep_figures.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace stagecraft::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLineEnd = "\r\n";

// Whole numbers as such, others with what reads back exactly.
std::string numberText(double value)
{
    if (std::abs(value) < 9e15 && std::floor(value) == value) return fmt::format("{:.0f}", value);
    return fmt::format("{}", value);
}

std::string_view unitWord(SweepUnit unit)
{
    switch (unit) {
    case SweepUnit::Count: return "count";
    case SweepUnit::Time: return "ns";
    case SweepUnit::Size: return "bytes";
    case SweepUnit::Rate: return "bytes_per_s";
    case SweepUnit::Share: return "share";
    }
    return "";
}

constexpr std::array<std::pair<std::string_view, Scaling>, 3> kScalings{
    {{"none", Scaling::None}, {"strong", Scaling::Strong}, {"weak", Scaling::Weak}}};

bool hasForms(const Sweep& sweep, SweepFigure figure)
{
    return std::ranges::any_of(sweep.series, [&](const SweepSeries& series) {
        return std::ranges::any_of(series.points, [&](const SweepPoint& point) { return formValue(point, figure).has_value(); });
    });
}

Json number(double value)
{
    if (std::abs(value) < 9e15 && std::floor(value) == value) return static_cast<std::int64_t>(value);
    return value;
}

Json formJson(const std::optional<ClosedForm>& form)
{
    if (!form) return nullptr;
    return {{"formula", form->text}, {"value", number(form->value)}};
}

// The forms of a point by the keys of their figures; the span's has no figure of its own.
template <class Visit>
void forEachForm(Visit&& visit)
{
    visit("makespan_ns", &ClosedForms::makespan);
    visit("span_ns", &ClosedForms::span);
    visit("bubble_makespan", &ClosedForms::bubbleMakespan);
    visit("bubble_span", &ClosedForms::bubbleSpan);
    visit("bubble_over_ideal", &ClosedForms::bubbleOverIdeal);
    visit("peak_activations", &ClosedForms::peakActivations);
}

Json pointJson(const SweepPoint& point, bool scaling)
{
    Json json{{"value", number(point.value)}};
    for (const SweepFigureInfo& figure : sweepFigures())
        if (scaling || !figure.scalingOnly) json[std::string(figure.key)] = number(simulatedValue(point, figure.figure));
    json["span_ns"] = point.span;
    json["work_ns"] = number(point.work);
    if (scaling) json["law"] = number(point.law);
    Json forms = Json::object();
    forEachForm([&](const char* key, std::optional<ClosedForm> ClosedForms::*form) {
        if (point.forms.*form) forms[key] = formJson(point.forms.*form);
    });
    json["formulas"] = std::move(forms);
    return json;
}

std::optional<ClosedForm> formOf(const Json& json)
{
    if (!json.is_object()) return std::nullopt;
    return ClosedForm{json.at("formula").get<std::string>(), json.at("value").get<double>()};
}

SweepPoint pointOf(const Json& json)
{
    SweepPoint point{.value = json.at("value").get<double>(),
                     .makespan = json.at("makespan_ns").get<TimeNs>(),
                     .span = json.at("span_ns").get<TimeNs>(),
                     .work = json.at("work_ns").get<double>(),
                     .bubbleMakespan = json.at("bubble_makespan").get<double>(),
                     .bubbleSpan = json.at("bubble_span").get<double>(),
                     .bubbleOverIdeal = json.at("bubble_over_ideal").get<double>(),
                     .peakActivations = json.at("peak_activations").get<double>(),
                     .peakMemory = json.at("peak_memory_bytes").get<Bytes>(),
                     .throughput = json.at("throughput_per_s").get<double>(),
                     .speedup = json.value("speedup", 0.0),
                     .efficiency = json.value("efficiency", 0.0),
                     .law = json.value("law", 0.0)};
    forEachForm([&](const char* key, std::optional<ClosedForm> ClosedForms::*form) {
        if (const auto found = json.at("formulas").find(key); found != json.at("formulas").end()) point.forms.*form = formOf(*found);
    });
    return point;
}

Sweep sweepOf(const Json& json)
{
    Sweep sweep;
    const auto key = json.at("quantity").get<std::string>();
    const auto quantity = std::ranges::find(sweepQuantities(), std::string_view(key), &SweepQuantityInfo::key);
    if (quantity == sweepQuantities().end()) throw std::runtime_error("\"" + key + "\" is no quantity of a sweep");
    sweep.axis.quantity = quantity->quantity;
    sweep.axis.geometric = json.at("geometric").get<bool>();
    sweep.axis.values = json.at("values").get<std::vector<double>>();
    const auto scaling = json.at("scaling").get<std::string>();
    const auto known = std::ranges::find(kScalings, std::string_view(scaling), &decltype(kScalings)::value_type::first);
    if (known == kScalings.end()) throw std::runtime_error("\"" + scaling + "\" is no scaling");
    sweep.scaling = known->second;
    sweep.fixed = json.at("fixed").get<std::string>();
    sweep.throughputUnit = json.at("throughput_unit").get<std::string>();
    sweep.notes = json.at("notes").get<std::vector<std::string>>();
    for (const Json& entry : json.at("series")) {
        SweepSeries series;
        series.schedule = entry.at("schedule").get<std::string>();
        series.title = entry.at("title").get<std::string>();
        if (const Json& share = entry.at("serial_share"); !share.is_null()) series.serialShare = share.get<double>();
        series.bestSize = formOf(entry.at("best_size"));
        for (const Json& point : entry.at("points")) series.points.push_back(pointOf(point));
        for (const Json& left : entry.at("left_out"))
            series.leftOut.push_back({left.at("value").get<double>(), left.at("reason").get<std::string>(), left.value("legal", false)});
        sweep.series.push_back(std::move(series));
    }
    return sweep;
}

} // namespace

std::string sweepCsv(const Sweep& sweep)
{
    const bool scaling = sweep.scaling != Scaling::None;
    std::vector<SweepFigure> simulated;
    std::vector<SweepFigure> formulas;
    std::string text = "schedule," + std::string(infoOf(sweep.axis.quantity).key);
    for (const SweepFigureInfo& figure : sweepFigures()) {
        if (figure.scalingOnly && !scaling) continue;
        simulated.push_back(figure.figure);
        text += "," + std::string(figure.key);
    }
    text += ",span_ns,work_ns";
    for (const SweepFigure figure : simulated)
        if (hasForms(sweep, figure)) {
            formulas.push_back(figure);
            text += ",formula_" + std::string(infoOf(figure).key);
        }
    text += kLineEnd;
    for (const SweepSeries& series : sweep.series)
        for (const SweepPoint& point : series.points) {
            text += series.schedule + "," + numberText(point.value);
            for (const SweepFigure figure : simulated) text += "," + numberText(simulatedValue(point, figure));
            text += "," + numberText(static_cast<double>(point.span)) + "," + numberText(point.work);
            for (const SweepFigure figure : formulas) {
                const std::optional<double> form = formValue(point, figure);
                text += "," + (form ? numberText(*form) : std::string());
            }
            text += kLineEnd;
        }
    return text;
}

std::string sweepJson(const Sweep& sweep)
{
    Json json{{"quantity", infoOf(sweep.axis.quantity).key},
              {"unit", unitWord(infoOf(sweep.axis.quantity).unit)},
              {"geometric", sweep.axis.geometric},
              {"values", Json::array()}};
    for (const double value : sweep.axis.values) json["values"].push_back(number(value));
    json["scaling"] = std::ranges::find(kScalings, sweep.scaling, &decltype(kScalings)::value_type::second)->first;
    json["fixed"] = sweep.fixed;
    json["throughput_unit"] = sweep.throughputUnit;
    json["notes"] = sweep.notes;
    json["series"] = Json::array();
    for (const SweepSeries& series : sweep.series) {
        Json points = Json::array();
        for (const SweepPoint& point : series.points) points.push_back(pointJson(point, sweep.scaling != Scaling::None));
        Json leftOut = Json::array();
        for (const LeftOut& left : series.leftOut) leftOut.push_back({{"value", number(left.value)}, {"reason", left.reason}, {"legal", left.legal}});
        json["series"].push_back({{"schedule", series.schedule},
                                  {"title", series.title},
                                  {"serial_share", series.serialShare ? Json(*series.serialShare) : Json()},
                                  {"best_size", formJson(series.bestSize)},
                                  {"points", std::move(points)},
                                  {"left_out", std::move(leftOut)}});
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Expected<Sweep> readSweep(std::string_view text)
{
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return Error{"this is no JSON; a sweep is written by stagecraft-cli sweep --json"};
    try {
        return sweepOf(json);
    } catch (const std::exception& wrong) {
        return Error{fmt::format("this is no sweep, as stagecraft-cli sweep --json writes one: {}", wrong.what())};
    }
}

} // namespace stagecraft::engine
