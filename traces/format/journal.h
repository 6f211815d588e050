// SPDX-License-Identifier: Apache-2.0
//
// The journal (*.strace): records one after another, each with a length, so that a file or a pipe that breaks off loses at
// most its last record. It is the program's own trace file, and what a worker writes to its standard output.
//
//   JournalWriter writer([&](std::string_view bytes) { file.write(bytes); });
//   writer.write(InfoRecord{info});
//
//   JournalReader reader;
//   std::vector<Record> records;
//   while (read(pipe, buffer)) if (auto fed = reader.feed(buffer, records); !fed.ok()) return fed.error();
//
// Form (little endian): the 8 bytes "STRACE1\n"; then per record: type (1 byte), payload length (LEB128), payload. Readers
// skip types that they do not know.
#pragma once

#include "traces/format/file_watch.h"
#include "traces/format/journal_payload.h"
#include "traces/store/record.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

class JournalWriter {
public:
    using Sink = std::function<void(std::string_view bytes)>;
    explicit JournalWriter(Sink sink);              // the sink gets the magic bytes at once
    void write(const Record& record);               // one call of the sink per record
    void write(const std::vector<Record>& records); // one call of the sink for all

private:
    void append(const Record& record);

    Sink sink_;
    std::string buffer_;
    std::string payload_;
    JournalDeltas deltas_;
};

class JournalReader {
public:
    // Takes any split of the stream; appends the records that are complete. An error means that this is no journal or that
    // it is damaged; records read before it stay in `out`.
    Expected<void> feed(std::string_view bytes, std::vector<Record>& out);
    [[nodiscard]] std::size_t pendingBytes() const { return pending_.size() - consumed_; } // of an incomplete record
    [[nodiscard]] bool begun() const { return magicSeen_; } // the first 8 bytes came and were right

private:
    Expected<void> parse(std::vector<Record>& out);
    [[nodiscard]] Error damaged(const std::string& what) const;

    std::string pending_;
    std::size_t consumed_ = 0;   // of pending_
    std::uint64_t position_ = 0; // of pending_ in the stream
    bool magicSeen_ = false;
    std::optional<Error> failure_; // a damaged stream stays damaged
    JournalDeltas deltas_;
};

// The records that make this trace, in an order that apply() takes (traces/format/trace_records.h).
std::vector<Record> recordsOf(const Trace& trace);

// A watch that gives up throws WatchedWork::GivenUp here; trace_file.h makes an error of it.
Expected<void> saveJournal(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch = {});
// A file that was cut off is read as far as it goes, and a note in the trace says so. Of several runs in one file (what a
// worker sent) it is the last.
Expected<Trace> loadJournal(const std::filesystem::path& file, const FileWatch& watch = {});
// The same of bytes in memory; `name` is what an error calls them.
Expected<Trace> readJournal(std::string_view bytes, const std::string& name);

} // namespace stagecraft::traces
