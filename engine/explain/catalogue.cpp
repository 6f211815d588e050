// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/catalogue.h"

#include "engine/explain/schedule_picture.h"
#include "engine/explain/survey.h"
#include "traces/analysis/steady_state.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

constexpr TimeNs kForward = 1'000'000; // I and W take as long

// The figures' own unit: the time of a forward of a rank.
std::string slots(double ns) { return fmt::format("{:.4g}", ns / static_cast<double>(kForward)); }

// A table's cells are ended by a bar.
std::string cell(std::string text)
{
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
    return text;
}

std::string formula(const std::optional<ClosedForm>& form) { return form ? cell(form->text) : std::string(); }

std::string shapeText(const PipelineSpec& pipeline)
{
    std::string text = fmt::format("p={}, m={}", pipeline.ranks, pipeline.microbatches);
    if (pipeline.chunks > 1) text += fmt::format(", v={}", pipeline.chunks);
    if (pipeline.slices > 1) text += fmt::format(", k={}", pipeline.slices);
    return text;
}

std::string introduction(const CatalogueOptions& options)
{
    return fmt::format(
        "# Schedules\n\n"
        "Every schedule that Stagecraft knows, with a picture that its simulator drew. This page is made by\n"
        "`stagecraft-cli catalogue docs/schedules.md` (`scripts/schedules.sh`) from the program's own descriptions and figures.\n\n"
        "p is the number of ranks, m of micro-batches, v of chunks (stages) per rank, k of slices of a sequence. F, I and W are the times\n"
        "of a forward, an input gradient and a weight gradient of one rank for one micro-batch, B = I + W a whole backward, F&B a forward\n"
        "and a backward together, c a hop between two ranks. The examples have p={}, m={} and F = I = W = 1; their times are in units of F.\n"
        "A picture has a row per rank and time to the right; blue is a forward, yellow a whole backward, orange an input gradient, green a\n"
        "weight gradient, violet a pair; a second chunk or direction is paler. Numbers are micro-batches.\n\n"
        "Papers mean three different things by a bubble, so each is named: *of the makespan* is 1 − work/makespan, from the first start to\n"
        "the last end over all ranks; *of the span* is 1 − work/longest span of one rank (the Zero-Bubble papers'); *over ideal* is\n"
        "makespan/work − 1 (Megatron-LM's). Work is the mean computing time of a rank. Formulas hold for equal stages and free transfers.\n"
        "Peak activations count micro-batches of a whole rank, on the fullest one. Hand-offs are tensors that go from rank to rank.\n\n",
        options.ranks, options.microbatches);
}

std::string peakText(const SurveyEntry& entry) { return fmt::format("{:.4g}", entry.peakActivations); }

std::string summary(const std::vector<SurveyEntry>& entries)
{
    std::string text = "| schedule | name | bubble of the makespan | of the span | peak activations | hand-offs | copies of the weights |\n"
                       "|---|---|---|---|---|---|---|\n";
    for (const SurveyEntry& entry : entries) {
        const ScheduleFamily& family = *entry.family;
        if (!entry.refusal.empty()) {
            text += fmt::format("| {} | `{}` | | | | | |\n", cell(family.title), family.name);
            continue;
        }
        text += fmt::format("| {} | `{}` | {} | {} | {} | {} | {} |\n", cell(family.title), family.name,
                            traces::formatPercent(entry.figures.bubbleMakespan), traces::formatPercent(entry.figures.bubbleSpan),
                            peakText(entry), entry.handOffs, entry.weightCopies);
    }
    return text + "\n";
}

std::string figuresTable(const SurveyEntry& entry)
{
    const traces::StepFigures& figures = entry.figures;
    const ClosedForms& forms = entry.forms;
    std::string text = fmt::format("| | {} | formula |\n|---|---|---|\n", shapeText(entry.plan.pipeline));
    const auto row = [&](std::string_view what, const std::string& value, const std::string& form) {
        text += fmt::format("| {} | {} | {} |\n", what, value, form);
    };
    row("step", slots(static_cast<double>(figures.makespan)), formula(forms.makespan));
    row("bubble of the makespan", traces::formatPercent(figures.bubbleMakespan), formula(forms.bubbleMakespan));
    row("bubble of the span", traces::formatPercent(figures.bubbleSpan), formula(forms.bubbleSpan));
    row("bubble over ideal", traces::formatPercent(figures.bubbleOverIdeal), formula(forms.bubbleOverIdeal));
    if (entry.family->asynchronous)
        if (const auto steady = traces::steadyState(*entry.trace, traces::Step{0}))
            row("bubble of the steady state", traces::formatPercent(steady->bubble), "");
    row("peak activations", peakText(entry), formula(forms.peakActivations));
    row("hand-offs", fmt::format("{}", entry.handOffs), "");
    if (entry.copies > 0) row("activations sent away and fetched back", fmt::format("{}", entry.copies), "");
    row("copies of the weights", fmt::format("{}", entry.weightCopies), "");
    return text;
}

std::string section(const SurveyEntry& entry, const CatalogueOptions& options)
{
    const ScheduleFamily& family = *entry.family;
    std::string text = fmt::format("## {}\n\n`{}`", family.title, family.name);
    for (const ForeignName& name : family.elsewhere) text += fmt::format(" · {}: {}", name.where, name.name);
    text += fmt::format("\n\n{}\n\n", family.idea);
    if (entry.refusal.empty())
        text += fmt::format("![{}]({}/{}.svg)\n\n{}\n", family.title, options.pictures, family.name, figuresTable(entry));
    text += fmt::format("- Takes: {}\n- Source: {}\n", family.conditions, family.source);
    return text + "\n";
}

} // namespace

Catalogue makeCatalogue(const CatalogueOptions& options)
{
    Plan plan;
    plan.pipeline.ranks = options.ranks;
    plan.pipeline.microbatches = options.microbatches;
    plan.pipeline.chunks = 2; // for those that take several
    plan.pipeline.slices = 2; // for those that cut sequences
    plan.costs.forward = kForward;
    plan.costs.backward = 2 * kForward;
    std::vector<SurveyEntry> entries;
    for (const ScheduleFamily& family : scheduleFamilies()) entries.push_back(survey(plan, family));

    Catalogue catalogue{.page = introduction(options) + summary(entries), .pictures = {}};
    for (const SurveyEntry& entry : entries) {
        catalogue.page += section(entry, options);
        if (!entry.refusal.empty()) continue;
        const std::string title = fmt::format("{}, {}", entry.family->title, shapeText(entry.plan.pipeline));
        catalogue.pictures.push_back({entry.family->name + ".svg", pictureSvg(pictureOf(*entry.trace), {.title = title})});
    }
    while (catalogue.page.ends_with("\n\n")) catalogue.page.pop_back();
    return catalogue;
}

} // namespace stagecraft::engine
