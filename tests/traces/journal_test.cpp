// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/sample_trace.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/journal.h"
#include "traces/store/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

namespace stagecraft::traces {
namespace {

using test::sample;
using test::spill;
using test::TemporaryFolder;
using testing::HasSubstr;
using testing::SizeIs;

constexpr TimeNs kLeast = -kMostTime;
constexpr TimeNs kMost = kMostTime;

// Every kind of record, with the values at the ends of their ranges.
std::vector<Record> everyRecord()
{
    TraceInfo info;
    info.label = TraceLabel::Emulated;
    info.clock = ClockKind::Foreign;
    info.title = "gpt-small · 1f1b \"quoted\"\n";
    info.schedule = "1f1b";
    info.planJson = std::string(70'000, 'x');
    info.ranks = 3;
    info.chunks = 2;
    info.microbatches = std::numeric_limits<std::int32_t>::max();
    info.stageToRank = {Rank{0}, Rank{1}, Rank{kMostRank - 1}};
    info.host = "host";
    Action overlap = forward(Stage{0}, MicroBatch{1});
    overlap.work.kind = ActionKind::Overlap;
    overlap.work.flow = Flow::Up;
    overlap.partner = Work{ActionKind::InputGrad, Flow::Down, Stage{3}, MicroBatch{0}};
    return {
        InfoRecord{info},
        TextRecord{"data loader"},
        TextRecord{std::string("nul\0inside", 10)},
        LaneRecord{{.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"}},
        LaneRecord{{.rank = Rank{2}, .kind = LaneKind::Transfer, .depth = 7, .name = ""}},
        SliceRecord{LaneId{0}, {.begin = kLeast, .end = -1, .action = overlap, .step = Step{0}, .text = {}}},
        SliceRecord{
            LaneId{0},
            {.begin = -1, .end = 5'000'000'000, .action = makeAction(ActionKind::Optimizer, Stage{INT16_MAX}), .step = Step{9}}},
        SliceRecord{LaneId{1}, {.begin = 12, .end = 12, .action = {}, .step = Step{0}, .text = TextId{2}}},
        SliceRecord{LaneId{0},
                    {.begin = 5'000'000'001, .end = kMost, .action = parseAction("u3B1").value(), .step = Step{1'000'000}}},
        EdgeRecord{{.kind = EdgeKind::Flush, .from = {LaneId{0}, 0}, .to = {LaneId{1}, 0}, .ready = kLeast}},
        EdgeRecord{{.kind = EdgeKind::Memory, .from = {LaneId{1}, 0}, .to = {LaneId{0}, 2}, .ready = kMost}},
        MemoryRecord{Rank{2}, MemoryClass::Other, kLeast, kMostBytes},
        MemoryRecord{Rank{2}, MemoryClass::Weights, kMost, -kMostBytes},
        StepRecord{{.step = Step{4}, .span = {kLeast, kMost - 1}, .loss = -0.1}},
        StepRecord{{.step = Step{5}, .span = {3, 3}, .loss = std::nullopt}},
        PauseRecord{{kMost, kMost}},
        NoteRecord{"übernommen"},
        NoteRecord{""},
        NoteRecord{"by NCCL", NoteKind::Information},
        LostRecord{INT64_MAX},
        SessionRecord{R"({"message":"state","state":"running"})"},
        ClockRecord{{.rank = Rank{2}, .host = "node", .at = kMost, .offset = kLeast, .error = 412}},
        GpuRecord{{.host = "node", .number = 7, .name = "NVIDIA H200", .bus = "0000:1b:00", .total = kMostBytes, .ranks = {Rank{0}, Rank{2}}}},
        GpuRecord{{}},
        GpuMemoryRecord{GpuId{1}, kMost, {.active = 0, .reserved = kMostBytes, .used = 3}},
        GpuMemoryRecord{GpuId{0}, kLeast, {.active = 1, .reserved = 2, .used = kMostBytes}},
    };
}

std::string journalOf(const std::vector<Record>& records)
{
    std::string bytes;
    JournalWriter writer([&](std::string_view part) { bytes.append(part); });
    for (const Record& record : records) writer.write(record);
    return bytes;
}

std::vector<Record> readWhole(std::string_view bytes)
{
    JournalReader reader;
    std::vector<Record> records;
    const Expected<void> fed = reader.feed(bytes, records);
    EXPECT_TRUE(fed.ok()) << fed.error().message;
    EXPECT_EQ(reader.pendingBytes(), 0u);
    return records;
}

TEST(Journal, GivesEveryRecordBackUnchanged) { EXPECT_EQ(readWhole(journalOf(everyRecord())), everyRecord()); }

TEST(Journal, WritesManyRecordsWithOneCallOfTheSink)
{
    std::vector<std::string> parts;
    JournalWriter writer([&](std::string_view part) { parts.emplace_back(part); });
    writer.write(everyRecord());
    ASSERT_THAT(parts, SizeIs(2));
    EXPECT_EQ(parts[0], "STRACE1\n");
    EXPECT_EQ(parts[0] + parts[1], journalOf(everyRecord()));
}

TEST(Journal, ReadsAnySplitOfTheStream)
{
    const std::string bytes = journalOf(everyRecord());
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
        const std::size_t longest = round == 0 ? 1 : 1 + random() % 200;
        JournalReader reader;
        std::vector<Record> records;
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t size = 1 + random() % longest;
            ASSERT_TRUE(reader.feed(std::string_view(bytes).substr(at, size), records).ok());
            at += size;
        }
        EXPECT_EQ(records, everyRecord());
        EXPECT_EQ(reader.pendingBytes(), 0u);
    }
}

TEST(Journal, LosesAtMostTheLastRecordWhereverItBreaksOff)
{
    std::vector<Record> all = everyRecord();
    std::get<InfoRecord>(all[0]).info.planJson = "{}"; // short enough to try every byte
    const std::string bytes = journalOf(all);
    std::size_t before = 0;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        JournalReader reader;
        std::vector<Record> records;
        ASSERT_TRUE(reader.feed(std::string_view(bytes).substr(0, cut), records).ok()) << "cut at " << cut;
        ASSERT_LE(records.size(), before + 1);
        before = records.size();
        all = everyRecord();
        std::get<InfoRecord>(all[0]).info.planJson = "{}";
        all.resize(records.size());
        ASSERT_EQ(records, all);
    }
    EXPECT_EQ(before, everyRecord().size());
}

TEST(Journal, StaysSmall)
{
    // a slice of a lane without gaps, and its edge, as the live engine writes them
    std::vector<Record> records{LaneRecord{{.rank = Rank{0}, .kind = LaneKind::Compute, .name = ""}}};
    for (int i = 0; i < 1000; ++i) {
        const TimeNs begin = 8'000'000'000'000 + i * TimeNs{1'000'000};
        records.push_back(
            SliceRecord{LaneId{0}, {.begin = begin, .end = begin + 999'000, .action = forward(Stage{3}, MicroBatch{i})}});
    }
    EXPECT_LT(journalOf(records).size(), 16u * 1000);
}

TEST(Journal, SkipsTypesAndFieldsOfLaterVersions)
{
    std::string bytes = journalOf({});
    bytes += std::string("\xC8\x03"
                         "abc",
                         5); // type 200
    bytes += std::string("\x09\x04\x02"
                         "hiX",
                         6); // a note with a byte after its text
    EXPECT_EQ(readWhole(bytes), std::vector<Record>{NoteRecord{"hi"}});
}

TEST(Journal, RefusesWhatIsNone)
{
    JournalReader reader;
    std::vector<Record> records;
    const Expected<void> fed = reader.feed("{\"traceEvents\":[]}", records);
    ASSERT_FALSE(fed.ok());
    EXPECT_THAT(fed.error().message, HasSubstr("STRACE1"));
    EXPECT_FALSE(reader.feed(journalOf(everyRecord()), records).ok()) << "a damaged stream stays damaged";
    EXPECT_THAT(records, testing::IsEmpty());
}

TEST(Journal, SpeaksOfZerosWhereAllIsZeroAlone)
{
    const std::string good = journalOf({NoteRecord{"one"}});
    const auto errorBehind = [&](const std::string& tail) {
        JournalReader reader;
        std::vector<Record> records;
        return reader.feed(good + tail, records).error().message;
    };
    EXPECT_THAT(errorBehind(std::string(5, '\0')), HasSubstr("zeros instead of a record"));
    EXPECT_THAT(errorBehind(std::string("\x00\x13\x57garbage", 10)), HasSubstr("a record of type 0, which there is none of"));
}

TEST(Journal, NamesThePlaceOfDamageAndKeepsWhatCameBefore)
{
    const std::string good = journalOf({NoteRecord{"one"}});
    const std::string tails[] = {
        std::string(5, '\0'),                                    // zeros
        std::string("\x09") + std::string(10, '\xff'),           // a length over 64 bits
        std::string("\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), // a length of 2^63
        std::string("\x09\x02\x7f"
                    "a"),                           // a text longer than its record
        std::string("\x04\x01\x00", 3),             // a slice that is cut short
        std::string("\x02\x04\x00\x09\x00\x00", 6), // a lane kind that does not exist
    };
    for (const std::string& tail : tails) {
        JournalReader reader;
        std::vector<Record> records;
        ASSERT_TRUE(reader.feed(good, records).ok());
        const Expected<void> fed = reader.feed(tail, records);
        ASSERT_FALSE(fed.ok());
        EXPECT_THAT(fed.error().message, HasSubstr("byte " + std::to_string(good.size())));
        EXPECT_EQ(records, std::vector<Record>{NoteRecord{"one"}});
    }
}

TEST(Journal, SurvivesRandomBytes)
{
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = journalOf({});
        for (std::size_t i = random() % 400; i > 0; --i)
            // small numbers make records that get past the first checks
            bytes.push_back(static_cast<char>(random() % (round % 2 == 0 ? 256 : 12)));
        JournalReader reader;
        std::vector<Record> records;
        (void)reader.feed(bytes, records).ok();
        Trace trace;
        for (const Record& record : records) (void)apply(trace, record).ok();
        EXPECT_EQ(recordsOf(trace).empty(), false);
    }
}

TEST(Journal, SurvivesFlippedBytes)
{
    const std::string good = journalOf(recordsOf(sample()));
    std::mt19937 random(4);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = good;
        for (std::size_t i = 1 + random() % 4; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
        JournalReader reader;
        std::vector<Record> records;
        (void)reader.feed(bytes, records).ok();
        Trace trace;
        for (const Record& record : records) (void)apply(trace, record).ok();
        for (std::size_t l = 0; l < trace.laneCount(); ++l)
            for (std::uint32_t i = 0; i < trace.lane(LaneId{l}).size(); ++i) (void)trace.sliceName({LaneId{l}, i});
    }
}

// Written before notes had a kind, and read by who knows none.
TEST(Journal, WritesAWarningAsNotesAlwaysWere)
{
    const std::string bytes = journalOf({NoteRecord{"old"}});
    EXPECT_EQ(bytes.substr(8), std::string("\x09\x04\x03old", 6));
    EXPECT_EQ(readWhole(bytes), std::vector<Record>{NoteRecord{"old"}});
}

TEST(Journal, LeavesOutMemoryOfAGpuThatNobodyDeclared)
{
    const TemporaryFolder folder;
    spill(folder.file("odd.strace"), journalOf({GpuRecord{{.number = 4}}, GpuMemoryRecord{GpuId{1}, 0, {}}, GpuMemoryRecord{GpuId{0}, 5, {.used = 1}}}));
    const Expected<Trace> loaded = loadJournal(folder.file("odd.strace"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded.value().notes(), testing::ElementsAre(HasSubstr("GPU 1 is not declared; the trace has 1 GPU")));
    EXPECT_EQ(loaded.value().gpus(), (std::vector<GpuSeries>{{{.number = 4}, {5}, {{.used = 1}}}}));
}

TEST(RecordsOf, MakeTheSameTraceAgain)
{
    Trace again;
    for (const Record& record : recordsOf(sample())) {
        const Expected<void> applied = apply(again, record);
        ASSERT_TRUE(applied.ok()) << applied.error().message;
    }
    EXPECT_EQ(recordsOf(again), recordsOf(sample()));
    EXPECT_EQ(again.sliceName({LaneId{2}, 1}), "copy");
    EXPECT_EQ(again.edgeCount(), sample().edgeCount());
    EXPECT_EQ(again.memory().size(), sample().memory().size());
    EXPECT_EQ(again.gpus(), sample().gpus());
    EXPECT_EQ(again.information(), sample().information());
    EXPECT_EQ(again.lostEvents(), 3);
}

TEST(RecordsOf, ComeByTimeSoThatAShortenedStreamHasAllRanks)
{
    TimeNs last = kLeast;
    for (const Record& record : recordsOf(sample()))
        if (const auto* slice = std::get_if<SliceRecord>(&record)) {
            EXPECT_GE(slice->slice.begin, last);
            last = slice->slice.begin;
        }
}

TEST(JournalFile, ComesBackEqual)
{
    const TemporaryFolder folder;
    ASSERT_TRUE(saveJournal(sample(), folder.file("a.strace")).ok());
    const Expected<Trace> loaded = loadJournal(folder.file("a.strace"));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(recordsOf(loaded.value()), recordsOf(sample()));
    EXPECT_EQ(folder.entries(), 1u) << "a temporary file was left behind";
}

TEST(JournalFile, SaysThatItWasCutOff)
{
    const TemporaryFolder folder;
    const std::string bytes = journalOf(recordsOf(sample()));
    spill(folder.file("cut.strace"), std::string_view(bytes).substr(0, bytes.size() - 1));
    const Expected<Trace> loaded = loadJournal(folder.file("cut.strace"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded.value().notes().back(), HasSubstr("cut off"));
    EXPECT_EQ(loaded.value().sliceCount(), sample().sliceCount());
}

TEST(JournalFile, IsReadUpToItsDamage)
{
    const TemporaryFolder folder;
    spill(folder.file("damaged.strace"), journalOf(recordsOf(sample())) + std::string(100, '\0'));
    const Expected<Trace> loaded = loadJournal(folder.file("damaged.strace"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded.value().notes().back(), HasSubstr("damaged at byte"));
    EXPECT_EQ(loaded.value().sliceCount(), sample().sliceCount());
}

TEST(JournalFile, TellsOfRecordsThatDoNotFit)
{
    const TemporaryFolder folder;
    spill(folder.file("odd.strace"), journalOf({SliceRecord{LaneId{4}, {}}, NoteRecord{"kept"}}));
    const Expected<Trace> loaded = loadJournal(folder.file("odd.strace"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_THAT(loaded.value().notes(), testing::ElementsAre("kept", HasSubstr("lane 4")));
}

// A number that fits its type but not a trace: sums of it would overflow, or a view would make a row for each rank.
TEST(JournalFile, IsDamagedWhereANumberIsBeyondAnyTrace)
{
    const TemporaryFolder folder;
    const Record lane = LaneRecord{{.rank = Rank{0}, .kind = LaneKind::Compute, .name = "rank 0"}};
    const auto sliceAt = [](TimeNs begin, TimeNs end) { return SliceRecord{LaneId{0}, {.begin = begin, .end = end}}; };
    const auto info = [](auto change) {
        InfoRecord record;
        change(record.info);
        return record;
    };
    const std::vector<Record> beyond{
        info([](TraceInfo& i) { i.stageToRank = {Rank{0}, Rank{-12}}; }),
        info([](TraceInfo& i) { i.stageToRank = {Rank{2'000'000'000}}; }),
        info([](TraceInfo& i) { i.ranks = -56; }),
        LaneRecord{{.rank = Rank{INT32_MAX}, .name = "far"}},
        sliceAt(kLeast - 1, 0),
        sliceAt(0, INT64_MAX),
        EdgeRecord{{.to = {LaneId{0}, 0}, .ready = INT64_MAX}},
        MemoryRecord{Rank{0}, MemoryClass::Weights, 0, INT64_MAX},
        MemoryRecord{Rank{-1}, MemoryClass::Weights, 0, 1},
        GpuRecord{{.number = -1}},
        GpuRecord{{.total = INT64_MAX}},
        GpuRecord{{.ranks = {Rank{-1}}}},
        GpuMemoryRecord{GpuId{0}, INT64_MAX, {}},
        GpuMemoryRecord{GpuId{0}, 0, {.used = INT64_MAX}},
        GpuMemoryRecord{GpuId{0}, 0, {.active = -1}},
        StepRecord{{Step{0}, {INT64_MAX - 1, INT64_MAX}, std::nullopt}},
        PauseRecord{{INT64_MIN, kMost}},
        PauseRecord{{3, 2}},
    };
    for (std::size_t i = 0; i < beyond.size(); ++i) {
        spill(folder.file("beyond.strace"), journalOf({lane, sliceAt(0, 5), beyond[i], NoteRecord{"after"}}));
        const Expected<Trace> loaded = loadJournal(folder.file("beyond.strace"));
        ASSERT_TRUE(loaded.ok()) << i;
        ASSERT_EQ(loaded.value().notes().size(), 1u) << i;
        EXPECT_THAT(loaded.value().notes().front(), testing::AllOf(HasSubstr("damaged"), HasSubstr("out of range"))) << i;
        EXPECT_EQ(loaded.value().sliceCount(), 1u) << i;
    }
}

TEST(JournalFile, LeavesOutTheEdgesOfALaneThatLostASlice)
{
    const TemporaryFolder folder;
    const auto slice = [](TimeNs begin, TimeNs end) { return SliceRecord{LaneId{0}, {.begin = begin, .end = end}}; };
    spill(folder.file("odd.strace"),
          journalOf({LaneRecord{}, slice(10, 20), slice(0, 5), slice(20, 30), slice(30, 40),
                     EdgeRecord{{.from = {LaneId{0}, 0}, .to = {LaneId{0}, 2}}}})); // 2 is the third of the file, second of the trace
    const Expected<Trace> loaded = loadJournal(folder.file("odd.strace"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded.value().sliceCount(), 3u);
    EXPECT_EQ(loaded.value().edgeCount(), 0u);
    EXPECT_THAT(loaded.value().notes().front(), HasSubstr("2 records of the file did not fit"));
}

TEST(JournalFile, CountsATextThatComesTwice)
{
    const TemporaryFolder folder;
    const auto named = [](TimeNs begin, int text) { return SliceRecord{LaneId{0}, {.begin = begin, .end = begin + 1, .text = TextId{text}}}; };
    spill(folder.file("texts.strace"), journalOf({LaneRecord{}, TextRecord{"load"}, TextRecord{"load"}, TextRecord{"copy"},
                                                  named(0, 1), named(1, 2), named(2, 3)}));
    const Trace loaded = loadJournal(folder.file("texts.strace")).value();
    EXPECT_EQ(loaded.sliceName({LaneId{0}, 1}), "load");
    EXPECT_EQ(loaded.sliceName({LaneId{0}, 2}), "copy");
}

TEST(JournalFile, KeepsThePermissionsOfTheFileItReplaces)
{
    const TemporaryFolder folder;
    using std::filesystem::perms;
    const auto permissionsOf = [&](const char* name) { return std::filesystem::status(folder.file(name)).permissions(); };
    ASSERT_TRUE(saveJournal(sample(), folder.file("new.strace")).ok());
    EXPECT_EQ(permissionsOf("new.strace") & perms::owner_all, perms::owner_read | perms::owner_write);
    std::filesystem::permissions(folder.file("new.strace"), perms::owner_read | perms::owner_write);
    ASSERT_TRUE(saveJournal(sample(), folder.file("new.strace")).ok());
    EXPECT_EQ(permissionsOf("new.strace"), perms::owner_read | perms::owner_write);
}

TEST(JournalFile, NamesTheFileAndTheReasonOfAnError)
{
    const TemporaryFolder folder;
    const auto loadError = [&](const std::string& name) {
        const Expected<Trace> loaded = loadJournal(folder.file(name));
        return loaded.ok() ? std::string("loaded") : loaded.error().message;
    };
    spill(folder.file("text.strace"), "hello");
    spill(folder.file("empty.strace"), "");
    std::filesystem::create_directory(folder.file("folder.strace"));
    EXPECT_THAT(loadError("none.strace"), testing::AllOf(HasSubstr("none.strace"), HasSubstr("does not exist")));
    EXPECT_THAT(loadError("text.strace"), testing::AllOf(HasSubstr("text.strace"), HasSubstr("STRACE1")));
    EXPECT_THAT(loadError("empty.strace"), HasSubstr("ends within its first 8 bytes"));
    EXPECT_THAT(loadError("folder.strace"), HasSubstr("folder"));

    const auto saveError = [&](const std::filesystem::path& file) {
        const Expected<void> saved = saveJournal(sample(), file);
        return saved.ok() ? std::string("saved") : saved.error().message;
    };
    EXPECT_THAT(saveError(folder.file("nowhere/a.strace")),
                testing::AllOf(HasSubstr("nowhere"), HasSubstr("does not exist")));
    EXPECT_THAT(saveError(folder.file("folder.strace")), HasSubstr("it is a folder"));
    EXPECT_THAT(saveError("/dev/full"), testing::AllOf(HasSubstr("/dev/full"), HasSubstr("disk is full")));
}

TEST(JournalFile, KeepsTheOldFileUntilTheNewOneIsWhole)
{
    const TemporaryFolder folder;
    spill(folder.file("target.strace"), "old");
    std::filesystem::create_symlink("target.strace", folder.file("link.strace"));
    ASSERT_TRUE(saveJournal(sample(), folder.file("link.strace")).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.strace")));
    EXPECT_TRUE(loadJournal(folder.file("target.strace")).ok());
    EXPECT_EQ(folder.entries(), 2u);
}

// What a worker sends when it is asked to run twice: lanes and slices are numbered anew.
TEST(Journal, LoadsTheLastOfSeveralRuns)
{
    Trace second = test::staircase({"0F0 0B0", "1F0 1B0", "2F0 2B0"});
    second.info.title = "second";
    const TemporaryFolder folder;
    std::string bytes;
    JournalWriter writer([&](std::string_view piece) { bytes += piece; });
    writer.write(recordsOf(sample()));
    writer.write(recordsOf(second));
    spill(folder.file("two.strace"), bytes);
    const Trace loaded = loadJournal(folder.file("two.strace")).value();
    ASSERT_THAT(loaded.notes(), SizeIs(1));
    EXPECT_THAT(loaded.notes()[0], HasSubstr("2 runs"));
    second.addNote(loaded.notes()[0]);
    EXPECT_EQ(recordsOf(loaded), recordsOf(second));
}

// A worker may serve a window for days: its stream does not grow by the lanes of runs that are over.
TEST(Journal, HasRoomForLanesInEveryRun)
{
    std::vector<Record> run{InfoRecord{}};
    run.insert(run.end(), 1000, LaneRecord{{.rank = Rank{0}, .name = ""}});
    JournalReader reader;
    std::vector<Record> records;
    JournalWriter writer([&](std::string_view piece) { ASSERT_TRUE(reader.feed(piece, records).ok()); });
    const std::size_t runs = kMostLanes / 1000 + 2;
    for (std::size_t i = 0; i < runs; ++i) writer.write(run);
    EXPECT_THAT(records, SizeIs(runs * run.size()));
}

} // namespace
} // namespace stagecraft::traces
