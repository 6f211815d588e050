// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_file.h"

#include "traces/format/chrome_json.h"
#include "traces/format/csv.h"
#include "traces/format/gzip.h"
#include "traces/format/journal.h"
#include "traces/format/output_file.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace stagecraft::traces {
namespace {

enum class Form { Journal, Json, JsonGzip, Csv, Unknown };

Form formOf(const std::filesystem::path& file)
{
    std::string name = file.filename().string();
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.ends_with(".strace")) return Form::Journal;
    if (name.ends_with(".json.gz")) return Form::JsonGzip;
    if (name.ends_with(".json")) return Form::Json;
    if (name.ends_with(".csv")) return Form::Csv;
    return Form::Unknown;
}

Expected<void> saveJson(const Trace& trace, const std::filesystem::path& file, Form form,
                        const ChromeJsonOptions& options = {})
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    OutputFile& output = created.value();
    const auto toFile = [&](std::string_view bytes) { output.write(bytes); };
    if (form == Form::JsonGzip) {
        GzipWriter gzip(toFile);
        writeChromeJson(
            trace, [&](std::string_view bytes) { gzip.write(bytes); }, options);
        gzip.finish();
    } else {
        writeChromeJson(trace, toFile, options);
    }
    return output.commit();
}

Expected<void> saveCsv(const Trace& trace, const std::filesystem::path& file)
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    writeCsv(trace, [&](std::string_view bytes) { created.value().write(bytes); });
    return created.value().commit();
}

Expected<Trace> loadJson(const std::filesystem::path& file)
{
    Expected<std::string> bytes = readMaybeGzip(file);
    if (!bytes.ok()) return bytes.error();
    Expected<Trace> trace = readChromeJson(bytes.value());
    if (!trace.ok()) return trace.error().in(file.string());
    return trace;
}

} // namespace

Expected<Trace> loadTrace(const std::filesystem::path& file)
{
    switch (formOf(file)) {
    case Form::Journal: return loadJournal(file);
    case Form::Json:
    case Form::JsonGzip: return loadJson(file);
    case Form::Csv:
        return Error{
            file.string() +
            ": CSV is written only; it lacks the edges between actions. Open the .strace or .json it was made from"};
    case Form::Unknown: break;
    }
    return Error{file.string() +
                 ": the extension does not tell what kind of trace this is; known are .strace, .json and .json.gz"};
}

Expected<void> saveTrace(const Trace& trace, const std::filesystem::path& file)
{
    switch (const Form form = formOf(file)) {
    case Form::Journal: return saveJournal(trace, file);
    case Form::Json:
    case Form::JsonGzip: return saveJson(trace, file, form);
    case Form::Csv: return saveCsv(trace, file);
    case Form::Unknown: break;
    }
    return Error{file.string() +
                 ": the extension does not tell how to write the trace; known are .strace, .json, .json.gz and .csv"};
}

Expected<void> saveRankFiles(const Trace& trace, const std::filesystem::path& folder)
{
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return writeError(folder, error.value());
    std::set<Rank> ranks;
    for (const Lane& lane : trace.lanes()) ranks.insert(lane.info().rank);
    for (const Rank rank : ranks) {
        const std::string name = "rank" + std::to_string(rank.value) + ".json.gz";
        if (auto saved = saveJson(trace, folder / name, Form::JsonGzip, {.rank = rank}); !saved.ok()) return saved;
    }
    return {};
}

} // namespace stagecraft::traces
