// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep.h"
#include "app/cli/draw_sweep.h"
#include "app/cli/overrides.h"
#include "app/cli/plan_argument.h"
#include "app/cli/sweep_text.h"
#include "app/cli/verbs.h"
#include "engine/explain/sweep_figures.h"
#include "engine/explain/sweep_files.h"
#include "traces/base/units.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

using engine::Sweep;
using engine::SweepRequest;

struct Options {
    std::string plan;
    Overrides overrides;
    std::string over;
    std::vector<std::string> schedules;
    std::string batch;
    std::string fixedCost;
    std::string scaling;
    std::string serialShare;
    std::string csv;
    SweepDrawing drawing;
    bool json = false;
};

// Overrides that only some schedules take are read as changes to a plan with one that does.
Overrides forTheSchedules(Overrides given, const std::vector<std::string>& schedules)
{
    if (schedules.empty() || given.schedule) return given;
    given.schedule = schedules.front();
    for (const std::string& name : schedules) {
        const engine::ScheduleFamily* family = engine::findFamily(name);
        if (family && ((given.memoryLimit && family->plansByCosts) || (given.group && family->goesInGroups))) given.schedule = name;
    }
    return given;
}

// An override that the sweep varies itself would count for nothing, and so would the splitting of a backward that is varied.
Expected<void> checkVaried(const Options& options, const engine::SweepAxis& axis)
{
    const Overrides& given = options.overrides;
    struct Clash {
        engine::SweepQuantity varied;
        const char* option;
        const Overrides::Text* text;
    };
    using enum engine::SweepQuantity;
    const Clash clashes[] = {{Microbatches, "--microbatches", &given.microbatches},
                             {Ranks, "--ranks", &given.ranks},
                             {Chunks, "--chunks", &given.chunks},
                             {Slices, "--slices", &given.slices},
                             {Group, "--group", &given.group},
                             {Forward, "--forward", &given.forward},
                             {Backward, "--backward", &given.backward},
                             {Backward, "--input-grad", &given.inputGrad},
                             {Backward, "--weight-grad", &given.weightGrad},
                             {Latency, "--latency", &given.latency},
                             {Bandwidth, "--bandwidth", &given.bandwidth},
                             {BoundaryBytes, "--boundary-bytes", &given.boundaryBytes},
                             {ActivationBytes, "--activation-bytes", &given.activationBytes},
                             {MemoryLimit, "--memory-limit", &given.memoryLimit},
                             {RanksPerNode, "--ranks-per-node", &given.ranksPerNode},
                             {NodeLatency, "--node-latency", &given.nodeLatency},
                             {NodeBandwidth, "--node-bandwidth", &given.nodeBandwidth},
                             {Replicas, "--replicas", &given.replicas},
                             {Offload, "--offload", &given.offload},
                             {Jitter, "--jitter", &given.jitter}};
    for (const Clash& clash : clashes)
        if (axis.quantity == clash.varied && *clash.text)
            return Error{fmt::format("{} {}: --over varies the {}; leave it out", clash.option, **clash.text, engine::infoOf(axis.quantity).title)};
    if (axis.quantity == MicrobatchSize && given.microbatches && !options.batch.empty())
        return Error{fmt::format("--microbatches {}: with --batch their number follows from their size; leave it out", *given.microbatches)};
    return {};
}

// So would options of a picture that is not drawn, and figures that the sweep does not have.
Expected<void> checkDrawn(const Options& options)
{
    if (options.drawing.out.empty()) {
        if (!options.drawing.theme.empty()) return Error{"--theme is of the picture; give --out FILE too"};
        if (!options.drawing.figures.empty()) return Error{"--figure is of the picture; give --out FILE too"};
        return {};
    }
    for (const engine::SweepFigureInfo& info : engine::sweepFigures())
        if (info.scalingOnly && options.scaling.empty() && std::ranges::find(options.drawing.figures, info.key) != options.drawing.figures.end())
            return Error{fmt::format("--figure {} is of a sweep over ranks that keeps the model or lets it grow; give --scaling strong or weak too",
                                     info.key)};
    return checkDrawing(options.drawing);
}

// Everything on the command line that can be wrong use.
Expected<SweepRequest> requestOf(const Options& options, engine::Plan plan)
{
    Expected<engine::SweepAxis> axis = engine::parseSweepAxis(options.over);
    if (!axis.ok()) return axis.error().in("--over");
    if (auto clear = checkVaried(options, axis.value()); !clear.ok()) return clear.error();
    if (options.overrides.schedule && !options.schedules.empty())
        return Error{fmt::format("--schedule {} and --schedules {}: both say what to simulate; give one of them", *options.overrides.schedule,
                                 fmt::join(options.schedules, ","))};
    SweepRequest request{.plan = std::move(plan), .schedules = options.schedules, .axis = std::move(axis).value()};
    for (const std::string& name : options.schedules)
        if (!engine::findFamily(name))
            return Error{fmt::format("--schedules {}: no such schedule; stagecraft-cli list schedules names them (for a file take --schedule FILE)", name)};
    if (!options.batch.empty()) {
        const Expected<long long> batch = parseWhole("--batch", options.batch, 1, engine::kMaxActions / 2);
        if (!batch.ok()) return batch.error();
        request.batch = batch.value();
    }
    if (!options.fixedCost.empty()) {
        const Expected<traces::TimeNs> fixed = traces::parseDuration(options.fixedCost);
        if (!fixed.ok()) return fixed.error().in("--fixed-cost");
        request.fixedPerAction = fixed.value();
    }
    if (!options.serialShare.empty()) {
        const Expected<double> share = traces::parseFraction(options.serialShare);
        if (!share.ok()) return share.error().in("--serial-share");
        if (!(share.value() >= 0 && share.value() <= 1)) return Error{fmt::format("--serial-share {} is not allowed; 0% to 100%", options.serialShare)};
        request.serialShare = share.value();
    }
    request.scaling = options.scaling == "strong" ? engine::Scaling::Strong
                      : options.scaling == "weak" ? engine::Scaling::Weak
                                                  : engine::Scaling::None;
    const bool sizes = request.axis.quantity == engine::SweepQuantity::MicrobatchSize;
    if (request.scaling != engine::Scaling::None && request.axis.quantity != engine::SweepQuantity::Ranks)
        return Error{"--scaling is over ranks; take --over ranks=..., or leave it out"};
    if (request.serialShare && request.scaling == engine::Scaling::None)
        return Error{"--serial-share is of Amdahl's and Gustafson's line; give --scaling strong or weak too"};
    if (request.batch > 0 && !sizes) return Error{"--batch is for --over microbatch-size=...; the number of micro-batches is --microbatches"};
    return request;
}

// A line that is written over as the sweep goes on; only for a person who looks.
class ProgressLine {
public:
    void show(const engine::SweepProgress& progress) const
    {
        if (!shown_) return;
        if (progress.schedule.empty()) std::fputs("\r\x1b[K", stderr);
        else std::fputs(fmt::format("\r\x1b[K{}/{} {}", progress.done + 1, progress.total, progress.schedule).c_str(), stderr);
    }

private:
    bool shown_ = ::isatty(STDERR_FILENO) == 1;
};

// The first point of a sweep that has none left: wrong use where no plan may hold any of its values.
std::optional<engine::LeftOut> nothingLeft(const Sweep& sweep)
{
    std::optional<engine::LeftOut> first;
    for (const engine::SweepSeries& series : sweep.series) {
        if (!series.points.empty()) return std::nullopt;
        for (const engine::LeftOut& left : series.leftOut)
            if (!first || (left.legal && !first->legal)) first = left;
    }
    return first;
}

int sweep(const Options& options)
{
    if (auto checked = checkDrawn(options); !checked.ok()) return wrongUse(checked.error());
    const Overrides overrides = forTheSchedules(options.overrides, options.schedules);
    const Expected<engine::Plan> opened = openPlan(options.plan, overrides);
    if (!opened.ok()) return failed(opened.error());
    Expected<engine::Plan> plan = withOverrides(opened.value(), overrides);
    if (!plan.ok()) return wrongUse(plan.error());
    const Expected<SweepRequest> request = requestOf(options, std::move(plan).value());
    if (!request.ok()) return wrongUse(request.error());

    const ProgressLine line;
    const Expected<Sweep> swept = engine::runSweep(request.value(), [&](const engine::SweepProgress& progress) { line.show(progress); });
    if (!swept.ok()) return wrongUse(swept.error()); // what was asked for cannot be swept
    if (const std::optional<engine::LeftOut> left = nothingLeft(swept.value())) {
        const Error reason{"no point of the sweep can be simulated: " + left->reason};
        return left->legal ? failed(reason) : wrongUse(reason);
    }
    if (!options.csv.empty())
        if (auto saved = traces::writeWholeFile(options.csv, engine::sweepCsv(swept.value())); !saved.ok()) return failed(saved.error());
    if (!options.drawing.out.empty())
        if (auto drawn = drawSweep(engine::sweepJson(swept.value()), options.drawing); !drawn.ok()) return failed(drawn.error());
    return print(options.json ? engine::sweepJson(swept.value()) : sweepText(swept.value()));
}

std::string quantityNames()
{
    std::vector<std::string_view> names;
    for (const engine::SweepQuantityInfo& info : engine::sweepQuantities()) names.push_back(info.key);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> figureNames()
{
    std::vector<std::string> names;
    for (const engine::SweepFigureInfo& info : engine::sweepFigures()) names.emplace_back(info.key);
    return names;
}

} // namespace

void addSweep(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "sweep", "Vary one quantity of a plan and print the figures of each step, with formulas beside",
                             "stagecraft-cli sweep --over microbatches=4..64*2 --schedules gpipe,1f1b,zb-h1 --ranks 4 --out bubble.svg\n"
                             "  stagecraft-cli sweep --over latency=0us..500us+100us --microbatches 8 --csv latency.csv\n"
                             "  stagecraft-cli sweep --over microbatch-size=1..64*2 --batch 64 --fixed-cost 500us\n"
                             "  stagecraft-cli sweep gpt-small --over ranks=1,2,4,8 --scaling strong");
    const auto options = std::make_shared<Options>();
    verb.add_option("PLAN", options->plan, "Plan file or preset; without it: 1f1b, 4 ranks, 8 micro-batches, forward 1 ms, backward 2 ms");
    verb.add_option("--over", options->over,
                    "What to vary and its values: NAME=1..64, NAME=4,8,16, NAME=1..1024*2 or NAME=0us..500us+50us. Names: " + quantityNames() +
                        ". microbatch-size keeps the batch: m = B/b")
        ->type_name("NAME=VALUES")
        ->required();
    verb.add_option("--schedules", options->schedules, "One or more schedules to compare; the plan's own unless given")
        ->type_name("NAME,...")
        ->delimiter(',');
    verb.add_option("--batch", options->batch, "Samples of a step, for microbatch-size; the plan's own unless given")->type_name("B");
    verb.add_option("--fixed-cost", options->fixedCost, "What every action costs beside its time (launches, a call's overhead)")->type_name("T");
    verb.add_option("--scaling", options->scaling,
                    "Of ranks: strong keeps the model, weak lets it grow with the ranks; adds speed-up, efficiency and the line of Amdahl or Gustafson")
        ->check(CLI::IsMember({"strong", "weak"}));
    verb.add_option("--serial-share", options->serialShare, "Share of the work that one rank does alone, of that line; by the schedule's formula unless given")
        ->type_name("5%");
    verb.add_option("--csv", options->csv, "Write the points into this file too, as CSV")->type_name("FILE");
    verb.add_option("--out", options->drawing.out, "Draw the curves into this file too: .png, .svg or .pdf; needs no display")->type_name("FILE");
    verb.add_option("--figure", options->drawing.figures, "What the picture shows; a bubble, the step, a peak and the throughput unless given")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->check(CLI::IsMember(figureNames()));
    verb.add_option("--theme", options->drawing.theme, "Of the picture of --out: light or dark")->check(CLI::IsMember({"light", "dark"}));
    addJsonFlag(verb, options->json);
    addOverrides(verb, options->overrides);
    verb.callback([options, &work] { work = [options] { return sweep(*options); }; });
}

} // namespace stagecraft::cli
