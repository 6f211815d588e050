// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_file.h"

#include "traces/base/text.h"
#include "traces/format/chrome_json.h"
#include "traces/format/csv.h"
#include "traces/format/gzip.h"
#include "traces/format/journal.h"
#include "traces/format/output_file.h"

#include <algorithm>
#include <array>
#include <fstream>
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

// By how the bytes of a file begin; nothing where no form of ours does so.
std::optional<TraceForm> formOf(std::string_view bytes)
{
    if (bytes.starts_with("STRACE1")) return TraceForm::Journal;
    if (bytes.starts_with("\x1f\x8b")) return TraceForm::JsonGzip;
    if (bytes.starts_with("step,rank,lane,")) return TraceForm::Csv;
    if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3); // a byte order mark
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first != bytes.npos && (bytes[first] == '{' || bytes[first] == '[')) return TraceForm::Json;
    return std::nullopt;
}

// Of a pipe nothing is known before it is read, and then nobody can read it again.
std::optional<TraceForm> formByContent(const std::filesystem::path& file)
{
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
    std::array<char, 64> begin{};
    std::ifstream input(file, std::ios::binary);
    input.read(begin.data(), begin.size());
    return formOf(std::string_view(begin.data(), static_cast<std::size_t>(input.gcount())));
}

Expected<Trace> loadJson(const std::filesystem::path& file, const FileWatch& watch)
{
    Expected<std::string> bytes = readMaybeGzip(file);
    if (!bytes.ok()) return bytes.error();
    if (formOf(bytes.value()) == TraceForm::Journal) return readJournal(bytes.value(), file.string()); // that somebody has packed
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
    const std::optional<TraceForm> content = formByContent(file);
    const std::optional<TraceForm> form = content ? content : traceFormOf(file);
    if (!form)
        return Error{"\"" + file.string() +
                     "\": neither the content nor the extension tells what kind of trace this is; known are .strace, .json and .json.gz"};
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
