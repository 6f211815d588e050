// SPDX-License-Identifier: Apache-2.0
//
// Writes what the readers in tests/judges get to see:
//
//   judge_input TRACE|- FOLDER
//
// merged.json and ranks/rankN.json.gz as exported, and figures.json with the figures of each step as this program counts
// them. "-" takes a trace with some of everything instead of a file.
#include "tests/traces/sample_trace.h"
#include "traces/analysis/figures.h"
#include "traces/format/trace_file.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>

namespace {

using namespace stagecraft::traces;

// The sample beside things that are awkward to write: names to escape, steps that overlap, slices without length.
Trace awkward()
{
    Trace trace = test::sample();
    trace.info.title = "quote \" backslash \\ control \x01 \xff";
    const LaneId lane = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Stream, .depth = 3, .name = "nul \x01"});
    trace.append(lane, {.begin = 7, .end = 7, .action = {}, .step = {}, .text = trace.intern("<\"kernel\">\n")});
    trace.append(lane, {.begin = 7, .end = 1009, .action = {}, .step = {}, .text = trace.intern("\xf0\x9f\x98\x80")});
    trace.addStep({.step = Step{1}, .span = {3000, 9001}, .loss = std::nullopt});
    return trace;
}

nlohmann::json figuresOf(const Trace& trace)
{
    nlohmann::json steps = nlohmann::json::array();
    for (const Step step : stepsOf(trace)) {
        const StepFigures figures = stepFigures(trace, step).value();
        nlohmann::json ranks = nlohmann::json::array();
        for (const RankFigures& rank : figures.ranks)
            ranks.push_back({{"rank", rank.rank.value},
                             {"busy_ns", rank.busy},
                             {"first_start_ns", rank.firstStart},
                             {"last_end_ns", rank.lastEnd},
                             {"peak_memory_bytes", rank.peakMemory}});
        steps.push_back({{"step", step.value}, {"makespan_ns", figures.makespan}, {"per_rank", ranks}});
    }
    return {{"ranks", trace.info.ranks}, {"slices", trace.sliceCount()}, {"edges", trace.edgeCount()}, {"steps", steps}};
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::cerr << "usage: judge_input TRACE|- FOLDER\n";
        return 2;
    }
    const std::string source = argv[1];
    const std::filesystem::path folder = argv[2];
    const Expected<Trace> trace = source == "-" ? Expected<Trace>(awkward()) : loadTrace(source);
    if (!trace.ok()) {
        std::cerr << trace.error().message << '\n';
        return 1;
    }
    const Expected<std::size_t> ranks = saveRankFiles(trace.value(), folder / "ranks");
    const Expected<void> merged = saveTrace(trace.value(), folder / "merged.json");
    if (!ranks.ok() || !merged.ok()) {
        std::cerr << (ranks.ok() ? merged.error() : ranks.error()).message << '\n';
        return 1;
    }
    std::ofstream(folder / "figures.json") << figuresOf(trace.value()).dump(1) << '\n';
    return 0;
}
