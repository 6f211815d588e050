// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_argument.h"
#include "app/cli/trace_notes.h"
#include "app/cli/verbs.h"
#include "traces/base/text.h"
#include "traces/format/trace_file.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

int convert(const std::vector<std::string>& files)
{
    if (files.size() < 2)
        return wrongUse(Error{"convert takes a trace and the file to write, such as: convert run.strace run.json"});
    if (files.size() > 2) {
        return wrongUse(Error{fmt::format(
            "{} traces at once: files are not joined to one yet; give one and the file to write", files.size() - 1)});
    }
    if (auto checked = checkTraceTarget(files[1]); !checked.ok()) return wrongUse(checked.error());
    const Expected<traces::Trace> trace = traces::loadTrace(files[0]);
    if (!trace.ok()) return failed(trace.error());
    sayNotes(trace.value(), files[0]);
    if (auto saved = traces::saveTrace(trace.value(), files[1]); !saved.ok()) return failed(saved.error());
    return print(fmt::format("{}: {} written\n", files[1], traces::counted(trace.value().sliceCount(), "event")));
}

} // namespace

void addConvert(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "convert", "Write a trace in another format, by the extension of OUT",
                             "stagecraft-cli convert run.strace run.json\n  stagecraft-cli convert run.strace actions.csv");
    const auto files = std::make_shared<std::vector<std::string>>();
    verb.add_option("FILES", *files, "Trace to read; file to write: .strace, .json, .json.gz, .csv")
        ->type_name("IN OUT")
        ->required();
    verb.callback([files, &work] { work = [files] { return convert(*files); }; });
}

} // namespace stagecraft::cli
