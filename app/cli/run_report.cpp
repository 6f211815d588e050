// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_report.h"

#include "app/cli/device_time.h"
#include "app/cli/durations.h"
#include "app/cli/figures_text.h"
#include "app/cli/gpu_memory.h"
#include "app/cli/throughput.h"
#include "traces/analysis/step_times.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::cli {

namespace {

std::string basisText(const LiveRun& run)
{
    const std::size_t steps = run.droppedSteps + run.trace.steps().size();
    const std::size_t leftOut = traces::stepsLeftOut(steps);
    return fmt::format("median of {}{}", steps - leftOut, leftOut > 0 ? ", the first left out" : "");
}

// What micro-batches keep for their backwards, where the run was asked to tell it.
void addActivations(Json& json, const engine::RunResult& result)
{
    if (result.stageActivations.empty()) return;
    Json stages = Json::array();
    for (std::size_t s = 0; s < result.stageActivations.size(); ++s) {
        const engine::StageActivations& stage = result.stageActivations[s];
        stages.push_back({{"stage", s}, {"saved_bytes", stage.saved}, {"wgrad_bytes", stage.forWeights}, {"allocator_bytes", stage.booked}});
    }
    Json ranks = Json::array();
    for (std::size_t r = 0; r < result.rankActivations.size(); ++r) {
        const engine::RankActivations& rank = result.rankActivations[r];
        ranks.push_back({{"rank", r}, {"peak_bytes", rank.peak}, {"predicted_bytes", rank.predicted ? Json(*rank.predicted) : Json(nullptr)}});
    }
    json["activations"] = {{"per_stage", std::move(stages)}, {"per_rank", std::move(ranks)}};
}

std::string activationsText(const engine::RunResult& result)
{
    if (result.stageActivations.empty()) return {};
    std::string text = "\nactivations of a micro-batch    saved by autograd    until its weight gradient    booked by the allocator\n";
    for (std::size_t s = 0; s < result.stageActivations.size(); ++s) {
        const engine::StageActivations& stage = result.stageActivations[s];
        text += fmt::format("  stage {:<23}  {:>17}  {:>27}  {:>23}\n", s, traces::formatSize(stage.saved), traces::formatSize(stage.forWeights),
                            traces::formatSize(stage.booked));
    }
    text += "in flight, at most              measured             by the schedule\n";
    for (std::size_t r = 0; r < result.rankActivations.size(); ++r) {
        const engine::RankActivations& rank = result.rankActivations[r];
        text += fmt::format("  rank {:<24}  {:>17}  {:>17}\n", r, traces::formatSize(rank.peak),
                            rank.predicted ? traces::formatSize(*rank.predicted) : "recomputed");
    }
    return text;
}

std::string lossText(const std::vector<double>& loss)
{
    if (loss.empty()) return "none";
    if (loss.size() == 1) return fmt::format("{:.6g}", loss.front());
    return fmt::format("{:.6g} → {:.6g} in {}", loss.front(), loss.back(), traces::counted(loss.size(), "step"));
}

// Every line; what a terminal would obey is shown instead.
std::string indented(std::string_view text)
{
    std::string lines = "  ";
    for (const char c : traces::harmless(text)) lines += c == '\n' ? std::string("\n  ") : std::string(1, c);
    return lines;
}

} // namespace

std::optional<traces::StepFigures> middleFigures(const traces::Trace& trace)
{
    const std::vector<traces::StepTime> counted = traces::countedSteps(trace.steps(), trace.pauses());
    if (counted.empty()) return std::nullopt;
    Expected<traces::StepFigures> figures = traces::stepFigures(trace, traces::middleStep(counted).step);
    if (!figures.ok()) return std::nullopt; // its events were lost
    return std::move(figures).value();
}

Json resultJson(const LiveRun& run, const std::optional<traces::StepFigures>& figures)
{
    const engine::RunResult& result = *run.result;
    Json json{{"mode", result.mode},
            {"device", result.device},
            {"steps", result.steps},
            {"step_ns", result.stepNs},
            {"predicted_step_ns", result.predictedStepNs},
            {"ideal_step_ns", result.idealStepNs},
            {"efficiency", result.efficiency},
            {"loss", result.loss},
            {"outputs", result.outputs},
            {"gradient_check", std::string(engine::gradientCheckText(result.gradientCheck))},
            {"gradient_max_abs_diff", result.gradientMaxAbsDiff},
            {"per_rank", figures ? ranksJson(run.trace, traces::StepIndex(run.trace), *figures) : Json::array()},
            {"notes", run.trace.notes()},
            {"information", run.trace.information()},
            {"clocks", clocksJson(run.trace)}};
    json["throughput"] = throughputJson(result.throughput);
    if (const auto deviceTimes = traces::deviceTimes(run.trace); !deviceTimes.empty()) json["device_time"] = deviceTimeJson(deviceTimes);
    if (!run.gpuPeaks.empty()) json["gpus"] = gpuMemoryJson(run.trace, run.gpuPeaks);
    if (const auto operations = traces::memoryOperations(run.trace); !operations.empty()) json["memory_operations"] = memoryOperationsJson(operations);
    json["measured"] = durationsJson(run.trace, traces::durationsOf(run.trace, kHistogramIntervals))["actions"];
    if (result.text) {
        json["token_entropy"] = result.text->entropy;
        json["sample"] = {{"before", result.text->before}, {"after", result.text->after}};
    }
    addActivations(json, result);
    return json;
}

std::string resultText(const LiveRun& run, const std::optional<traces::StepFigures>& figures)
{
    const engine::RunResult& result = *run.result;
    std::vector<std::string> shapes;
    for (const auto& shape : result.outputs) shapes.push_back(fmt::format("{}", fmt::join(shape, "×")));

    const char* virtualTime = result.mode == engine::runModeText(engine::RunMode::Emulated) ? ", virtual time" : "";
    std::string text = fmt::format("{}; {} on {}, {}\n\n", shapeText(run.trace.info), result.mode, result.device,
                                   labelText(run.trace.info.label));
    text += fmt::format("  step            {} ({}{})\n", traces::formatDuration(result.stepNs), basisText(run),
                        virtualTime);
    text += fmt::format("  predicted step  {} (simulated from this run's median costs)\n",
                        traces::formatDuration(result.predictedStepNs));
    text +=
        fmt::format("  ideal step      {} (the same without hand-off cost)\n", traces::formatDuration(result.idealStepNs));
    text += fmt::format("  efficiency      {:.3f} (ideal step / step)\n", result.efficiency);
    text += throughputText(result.throughput);
    text += fmt::format("  loss            {}\n", lossText(result.loss));
    if (result.text) text += fmt::format("  tokens alone    {:.6g} (loss of whoever knows only how often each comes)\n", result.text->entropy);
    text += fmt::format("  output          {}\n", fmt::join(shapes, ", "));
    text += fmt::format("  gradient check  {}, largest difference {:.3g}\n", engine::gradientCheckText(result.gradientCheck),
                        result.gradientMaxAbsDiff);
    for (const std::string& note : run.trace.notes()) text += fmt::format("  warning         {}\n", traces::harmless(note));
    for (const std::string& note : run.trace.information()) text += fmt::format("  note            {}\n", traces::harmless(note));
    text += clocksText(run.trace);
    if (result.text) text += fmt::format("\nthe model wrote before\n{}\n\nand after\n{}\n", indented(result.text->before), indented(result.text->after));
    text += activationsText(result);
    text += durationsText(run.trace, traces::durationsOf(run.trace, kHistogramIntervals));
    if (const auto deviceTimes = traces::deviceTimes(run.trace); !deviceTimes.empty()) text += deviceTimeText(deviceTimes);
    if (!run.gpuPeaks.empty()) text += gpuMemoryText(run.trace, run.gpuPeaks);
    if (const auto operations = traces::memoryOperations(run.trace); !operations.empty()) text += memoryOperationsText(operations);
    if (!figures) return text;
    const std::string among = run.droppedSteps > 0 ? fmt::format("last {}, which stayed in memory", traces::counted(run.trace.steps().size(), "step"))
                                                   : "trace";
    text += fmt::format("\nstep {} of the {}:\n{}", figures->step.value, among, figuresText(run.trace, traces::StepIndex(run.trace), *figures));
    return text;
}

} // namespace stagecraft::cli
