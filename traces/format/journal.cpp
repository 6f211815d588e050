// SPDX-License-Identifier: Apache-2.0
#include "traces/format/journal.h"

#include "traces/base/text.h"
#include "traces/format/output_file.h"
#include "traces/format/trace_records.h"
#include "traces/format/varint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>

namespace stagecraft::traces {
namespace {

constexpr std::string_view kMagic = "STRACE1\n";

// No record is near this; a length beyond it is damage, and would make a reader wait for bytes that never come.
constexpr std::size_t kMaxPayload = std::size_t{64} << 20;

constexpr std::size_t kReadBytes = 256 << 10;
constexpr std::size_t kHeadBytes = 11; // type and the longest length

bool shifted(const std::set<LaneId>& lanes, const Record& record)
{
    const auto* edge = std::get_if<EdgeRecord>(&record);
    return edge != nullptr && !lanes.empty() && (lanes.contains(edge->edge.from.lane) || lanes.contains(edge->edge.to.lane));
}

} // namespace

JournalWriter::JournalWriter(Sink sink) : sink_(std::move(sink)) { sink_(kMagic); }

void JournalWriter::append(const Record& record)
{
    payload_.clear();
    appendPayload(payload_, record, deltas_);
    if (payload_.size() > kMaxPayload) {
        append(NoteRecord{"a record of " + counted(payload_.size(), "byte") +
                          " is too long for a journal and was left out"});
        return;
    }
    appendByte(buffer_, journalType(record));
    appendVarint(buffer_, payload_.size());
    buffer_.append(payload_);
}

void JournalWriter::write(const Record& record)
{
    buffer_.clear();
    append(record);
    sink_(buffer_);
}

void JournalWriter::write(const std::vector<Record>& records)
{
    if (records.empty()) return;
    buffer_.clear();
    for (const Record& record : records) append(record);
    sink_(buffer_);
}

Expected<void> JournalReader::feed(std::string_view bytes, std::vector<Record>& out)
{
    if (failure_) return *failure_;
    pending_.append(bytes);
    Expected<void> parsed = parse(out);
    if (!parsed.ok()) failure_ = parsed.error();
    position_ += consumed_;
    pending_.erase(0, consumed_);
    consumed_ = 0;
    return parsed;
}

Expected<void> JournalReader::parse(std::vector<Record>& out)
{
    if (!magicSeen_) {
        const std::string_view start = std::string_view(pending_).substr(0, kMagic.size());
        if (start != kMagic.substr(0, start.size()))
            return Error{"this is no Stagecraft trace: it does not begin with STRACE1"};
        if (start.size() < kMagic.size()) return {};
        consumed_ = kMagic.size();
        magicSeen_ = true;
    }
    for (;;) {
        const std::string_view rest = std::string_view(pending_).substr(consumed_);
        if (rest.empty()) return {};
        ByteReader head(rest.substr(0, kHeadBytes));
        const unsigned type = head.byte();
        // a file system that lost the end of a file may fill it with zeros
        if (type == 0) return damaged(rest.find_first_not_of('\0') == rest.npos ? "zeros instead of a record" : "a record of type 0, which there is none of");
        const std::uint64_t length = head.varint();
        if (head.failed()) {
            if (rest.size() < kHeadBytes) return {};
            return damaged("a record without a length");
        }
        if (length > kMaxPayload) return damaged("a record of " + counted(length, "byte"));
        const std::size_t start = std::min(rest.size(), kHeadBytes) - head.remaining();
        if (rest.size() - start < length) return {};
        Expected<std::optional<Record>> record =
            readPayload(type, rest.substr(start, static_cast<std::size_t>(length)), deltas_);
        if (!record.ok()) return damaged(record.error().message);
        if (record.value()) out.push_back(std::move(*record.value()));
        consumed_ += start + static_cast<std::size_t>(length);
    }
}

Error JournalReader::damaged(const std::string& what) const
{
    return Error{"the journal is damaged at byte " + std::to_string(position_ + consumed_) + ": " + what};
}

std::vector<Record> recordsOf(const Trace& trace)
{
    std::vector<Record> records;
    forEachRecord(trace, [&](const Record& record) { records.push_back(record); });
    return records;
}

Expected<void> saveJournal(const Trace& trace, const std::filesystem::path& file, const FileWatch& watch)
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    OutputFile& output = created.value();
    JournalWriter writer([&](std::string_view bytes) { output.write(bytes); });
    WatchedWork work(watch, trace.sliceCount() + trace.edgeCount());
    forEachRecord(trace, [&](const Record& record) {
        writer.write(record);
        work.advance(1);
    });
    return output.commit();
}

namespace {

// From bytes to a trace with notes of what is wrong with them.
class Reading {
public:
    explicit Reading(std::string name) : name_(std::move(name)) {}

    // An error where nothing of it can be read.
    Expected<void> take(std::string_view bytes)
    {
        records_.clear();
        const Expected<void> fed = reader_.feed(bytes, records_);
        any_ = any_ || !records_.empty();
        for (const Record& record : records_) add(record);
        if (fed.ok()) return {};
        if (!any_) return fed.error().in(name_);
        damage_ = fed.error().message;
        return {};
    }
    [[nodiscard]] bool damaged() const { return !damage_.empty(); }

    Expected<Trace> finish()
    {
        if (!reader_.begun()) return Error{name_ + ": this is no Stagecraft trace: it ends within its first 8 bytes"};
        if (runs_ > 1) trace_.addNote("the file holds " + std::to_string(runs_) + " runs one after another; this is the last");
        if (damaged()) trace_.addNote(damage_ + "; what follows is missing");
        else if (reader_.pendingBytes() > 0)
            trace_.addNote("the file was cut off: its end, " + counted(reader_.pendingBytes(), "byte") +
                           ", is the beginning of a record and was left out");
        if (misfits_ > 0)
            trace_.addNote(counted(misfits_, "record") + " of the file did not fit and had to be left out; the first: " + firstMisfit_);
        return std::move(trace_);
    }

private:
    void add(const Record& record)
    {
        if (std::holds_alternative<InfoRecord>(record) && trace_.laneCount() > 0) {
            ++runs_;
            trace_ = {};
            shiftedLanes_.clear();
        }
        const Expected<void> applied = shifted(shiftedLanes_, record) ? Error{"an edge of a lane that lost a slice"} : apply(trace_, record);
        if (applied.ok()) return;
        if (const auto* slice = std::get_if<SliceRecord>(&record)) shiftedLanes_.insert(slice->lane);
        if (misfits_++ == 0) firstMisfit_ = applied.error().message;
    }

    std::string name_;
    Trace trace_;
    JournalReader reader_;
    std::vector<Record> records_;
    std::int64_t misfits_ = 0;
    std::string firstMisfit_;
    std::set<LaneId> shiftedLanes_; // lost a slice: the numbers of its later ones are off by it
    std::string damage_;
    int runs_ = 1;
    bool any_ = false;
};

} // namespace

Expected<Trace> readJournal(std::string_view bytes, const std::string& name)
{
    Reading reading(name);
    if (auto taken = reading.take(bytes); !taken.ok()) return taken.error();
    return reading.finish();
}

Expected<Trace> loadJournal(const std::filesystem::path& file, const FileWatch& watch)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(file.c_str(), "rbe"), &std::fclose);
    if (!input) return readError(file, errno);

    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(file, unknown); // not of a pipe
    WatchedWork work(watch, unknown ? 0 : size);
    Reading reading(file.string());
    std::string block(kReadBytes, '\0');
    while (!reading.damaged()) {
        errno = 0;
        const std::size_t got = std::fread(block.data(), 1, block.size(), input.get());
        if (got == 0) {
            if (std::ferror(input.get()) != 0) return readError(file, errno);
            break;
        }
        work.advance(got);
        if (auto taken = reading.take(std::string_view(block).substr(0, got)); !taken.ok()) return taken.error();
    }
    return reading.finish();
}

} // namespace stagecraft::traces
