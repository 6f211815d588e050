// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_argument.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace stagecraft::cli {

namespace {

struct Options {
    std::vector<std::string> files; // the last one is written, but for --per-rank
    std::string perRank;            // a folder
};

int convert(const Options& options)
{
    const std::vector<std::string>& files = options.files;
    const std::size_t written = options.perRank.empty() ? 1 : 0;
    if (files.size() <= written)
        return wrongUse(Error{"convert takes a trace and the file to write, such as: convert run.strace run.json"});
    const std::size_t read = files.size() - written;
    if (written == 1) {
        if (auto checked = checkTraceTarget(files.back()); !checked.ok()) return wrongUse(checked.error());
    }
    if (written == 0 && read > 1 && !std::filesystem::exists(files.back()))
        return wrongUse(Error{fmt::format("--per-rank {}: with it only what is to be read is given, and there is no {}", options.perRank, files.back())});
    const std::vector<std::string> inputs(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(read));
    const Expected<traces::Trace> trace = loadTraces(inputs);
    if (!trace.ok()) return failed(trace.error());
    sayNotes(trace.value(), fmt::format("{}", fmt::join(inputs, ", ")));
    if (written == 0) {
        const Expected<std::size_t> ranks = traces::saveRankFiles(trace.value(), options.perRank);
        if (!ranks.ok()) return failed(ranks.error());
        return print(fmt::format("{}: {} written, one per rank\n", options.perRank, traces::counted(ranks.value(), "file")));
    }
    if (auto saved = traces::saveTrace(trace.value(), files.back()); !saved.ok()) return failed(saved.error());
    return print(fmt::format("{}: {} written\n", files.back(), traces::counted(trace.value().sliceCount(), "event")));
}

} // namespace

void addConvert(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "convert", "Write a trace in another format, by the extension of OUT",
                             "stagecraft-cli convert run.strace run.json\n  stagecraft-cli convert run.strace actions.csv\n"
                             "  stagecraft-cli convert run.strace --per-rank ranks\n  stagecraft-cli convert run.rank0.strace run.rank1.strace run.strace");
    const auto options = std::make_shared<Options>();
    verb.add_option("FILES", options->files, "Trace to read, or the parts of a run's ranks; file to write: .strace, .json, .json.gz, .csv")
        ->type_name("IN... OUT")
        ->required();
    verb.add_option("--per-rank", options->perRank,
                    "Instead of OUT: a file for each rank, rank0.json.gz and so on, in this folder, as "
                    "HolisticTraceAnalysis reads a distributed run; arrows between ranks have no place there")
        ->type_name("DIR");
    verb.callback([options, &work] { work = [options] { return convert(*options); }; });
}

} // namespace stagecraft::cli
