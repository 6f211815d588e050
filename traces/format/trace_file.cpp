// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_file.h"

#include "traces/base/text.h"
#include "traces/format/chrome_json.h"
#include "traces/format/csv.h"
#include "traces/format/gzip.h"
#include "traces/format/journal.h"
#include "traces/format/output_file.h"

#include <algorithm>
#include <set>
#include <string>

namespace stagecraft::traces {
namespace {

// Both text forms have a line for each thing they tell.
std::uint64_t linesOf(std::string_view text) { return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')); }

std::uint64_t jsonLines(const Trace& trace)
{
    std::uint64_t lines = trace.sliceCount() + 2 * trace.edgeCount(); // an arrow has a line at each end
    for (const MemorySeries& series : trace.memory()) lines += series.time.size();
    return lines;
}

Expected<void> saveJson(const Trace& trace, const std::filesystem::path& file, TraceForm form,
                        const ChromeJsonOptions& options = {}, const FileWatch& watch = {})
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    OutputFile& output = created.value();
    WatchedWork work(watch, jsonLines(trace));
    std::optional<GzipWriter> gzip;
    if (form == TraceForm::JsonGzip) gzip.emplace([&](std::string_view bytes) { output.write(bytes); });
    const auto write = [&](std::string_view bytes) {
        if (gzip) gzip->write(bytes);
        else output.write(bytes);
        work.advance(linesOf(bytes));
    };
    writeChromeJson(trace, write, options);
    if (gzip) gzip->finish();
    return output.commit();
}

Expected<void> saveCsv(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch)
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    WatchedWork work(watch, trace.sliceCount());
    writeCsv(trace, [&](std::string_view bytes) {
        created.value().write(bytes);
        work.advance(linesOf(bytes));
    });
    return created.value().commit();
}

Expected<Trace> loadJson(const std::filesystem::path& file, const FileWatch& watch)
{
    Expected<std::string> bytes = readMaybeGzip(file);
    if (!bytes.ok()) return bytes.error();
    Expected<Trace> trace = readChromeJson(bytes.value(), watch);
    if (!trace.ok()) return trace.error().in(file.string());
    return trace;
}

} // namespace

std::optional<TraceForm> traceFormOf(const std::filesystem::path& file)
{
    const std::string name = lowered(file.filename().string());
    for (std::size_t i = 0; i < kTraceExtensions.size(); ++i)
        if (name.size() > kTraceExtensions[i].size() && name.ends_with(kTraceExtensions[i])) return static_cast<TraceForm>(i);
    return std::nullopt;
}

namespace {

Expected<Trace> load(const std::filesystem::path& file, const FileWatch& watch)
{
    const std::optional<TraceForm> form = traceFormOf(file);
    if (!form)
        return Error{"\"" + file.string() +
                     "\": the extension does not tell what kind of trace this is; known are .strace, .json and .json.gz"};
    switch (*form) {
    case TraceForm::Journal: return loadJournal(file, watch);
    case TraceForm::Json:
    case TraceForm::JsonGzip: return loadJson(file, watch);
    case TraceForm::Csv: break;
    }
    return Error{file.string() +
                 ": CSV is written only; it lacks the edges between actions. Open the .strace or .json it was made from"};
}

Expected<void> save(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch)
{
    const std::optional<TraceForm> form = traceFormOf(file);
    if (!form)
        return Error{"\"" + file.string() +
                     "\": the extension does not tell how to write the trace; known are .strace, .json, .json.gz and .csv"};
    switch (*form) {
    case TraceForm::Journal: return saveJournal(trace, file, watch);
    case TraceForm::Json:
    case TraceForm::JsonGzip: return saveJson(trace, file, *form, {}, watch);
    case TraceForm::Csv: break;
    }
    return saveCsv(trace, file, watch);
}

} // namespace

Expected<Trace> loadTrace(const std::filesystem::path& file, const FileWatch& watch)
{
    try {
        return load(file, watch);
    } catch (const WatchedWork::GivenUp&) {
        return Error{"reading was cancelled"}.in(file.string());
    }
}

Expected<void> saveTrace(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch)
{
    try {
        return save(trace, file, watch);
    } catch (const WatchedWork::GivenUp&) {
        return Error{"writing was cancelled; no file was made"}.in(file.string());
    }
}

Expected<std::size_t> saveRankFiles(const Trace& trace, const std::filesystem::path& folder)
{
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error || !std::filesystem::is_directory(folder)) {
        std::error_code ignored;
        if (std::filesystem::exists(folder, ignored))
            return Error{"cannot write into " + folder.string() + ": it is a file, not a folder; choose another name"};
        return writeError(folder, error.value());
    }
    std::set<Rank> ranks;
    for (const Lane& lane : trace.lanes()) ranks.insert(lane.info().rank);
    for (const Rank rank : ranks) {
        const std::string name = "rank" + std::to_string(rank.value) + ".json.gz";
        if (auto saved = saveJson(trace, folder / name, TraceForm::JsonGzip, {.rank = rank}); !saved.ok()) return saved.error();
    }
    if (ranks.empty()) return Error{"the trace has no lanes, so there is no rank to write a file for"};
    return ranks.size();
}

} // namespace stagecraft::traces
