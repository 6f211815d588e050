// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/sample_trace.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/csv.h"
#include "traces/format/gzip.h"
#include "traces/format/output_file.h"
#include "traces/format/trace_file.h"
#include "traces/format/trace_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace stagecraft::traces {
namespace {

using test::sample;
using test::slurp;
using test::spill;
using test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string loadError(const std::filesystem::path& file)
{
    const Expected<Trace> loaded = loadTrace(file);
    return loaded.ok() ? "loaded" : loaded.error().message;
}
std::string saveError(const std::filesystem::path& file)
{
    const Expected<void> saved = saveTrace(sample(), file);
    return saved.ok() ? "saved" : saved.error().message;
}

TEST(TraceFile, IsWrittenAndReadByItsExtension)
{
    const TemporaryFolder folder;
    for (const char* name : {"a.strace", "a.json", "a.json.gz", "A.JSON.GZ"}) {
        ASSERT_EQ(saveError(folder.file(name)), "saved");
        const Expected<Trace> loaded = loadTrace(folder.file(name));
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        EXPECT_EQ(loaded.value().sliceCount(), sample().sliceCount());
        EXPECT_EQ(loaded.value().edgeCount(), sample().edgeCount());
    }
    EXPECT_THAT(slurp(folder.file("a.strace")), StartsWith("STRACE1"));
    EXPECT_THAT(slurp(folder.file("a.json")), StartsWith("{"));
    EXPECT_THAT(slurp(folder.file("a.json.gz")), StartsWith("\x1f\x8b"));
    EXPECT_EQ(folder.entries(), 4u);
}

Trace longTrace()
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    for (int i = 0; i < 60'000; ++i)
        trace.append(lane, {.begin = i * 10, .end = i * 10 + 5, .action = forward(Stage{0}, MicroBatch{i % 8}), .step = Step{0}, .text = {}});
    return trace;
}

TEST(TraceFile, TellsHowFarItIsAndGivesUpWhenItIsTold)
{
    const TemporaryFolder folder;
    const Trace trace = longTrace();
    for (const char* name : {"a.strace", "a.json", "a.json.gz", "a.csv"}) {
        std::vector<double> seen;
        const FileWatch look = [&](double fraction) {
            seen.push_back(fraction);
            return true;
        };
        const auto expectProgress = [&](const char* what) {
            EXPECT_GE(seen.size(), 2u) << what << ' ' << name;
            EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << what << ' ' << name;
            EXPECT_GT(seen.front(), 0) << what << ' ' << name;
            EXPECT_LT(seen.front(), 0.9) << what << ' ' << name;
            EXPECT_LE(seen.back(), 1) << what << ' ' << name;
            seen.clear();
        };
        ASSERT_TRUE(saveTrace(trace, folder.file(name), look).ok());
        expectProgress("writing");
        const FileWatch refuse = [](double) { return false; };
        const Expected<void> saved = saveTrace(trace, folder.file(std::string("given-up-") + name), refuse);
        ASSERT_FALSE(saved.ok());
        EXPECT_THAT(saved.error().message, AllOf(HasSubstr("given-up"), HasSubstr("cancelled")));
        EXPECT_FALSE(std::filesystem::exists(folder.file(std::string("given-up-") + name)));
        if (std::string_view(name).ends_with(".csv")) continue;
        ASSERT_TRUE(loadTrace(folder.file(name), look).ok());
        expectProgress("reading");
        const Expected<Trace> loaded = loadTrace(folder.file(name), refuse);
        ASSERT_FALSE(loaded.ok());
        EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(name), HasSubstr("cancelled")));
    }
    EXPECT_EQ(folder.entries(), 4u) << "nothing is left of what was given up";
}

TEST(TraceFile, ListsTheExtensionsItKnows)
{
    EXPECT_THAT(saveError("trace.txt"), AllOf(HasSubstr("trace.txt"), HasSubstr(".strace, .json, .json.gz and .csv")));
    EXPECT_THAT(loadError("trace"), HasSubstr(".strace, .json and .json.gz"));
    EXPECT_THAT(loadError("trace.csv"), HasSubstr("written only"));
}

TEST(TraceFile, IsReadByWhatItHoldsWhateverItIsCalled)
{
    const TemporaryFolder folder;
    for (const char* form : {"a.strace", "a.json", "a.json.gz"}) {
        ASSERT_EQ(saveError(folder.file(form)), "saved");
        for (const char* name : {"b.strace", "b.json", "b.json.gz", "b.csv", "b.txt", "b"}) {
            spill(folder.file(name), slurp(folder.file(form)));
            const Expected<Trace> loaded = loadTrace(folder.file(name));
            ASSERT_TRUE(loaded.ok()) << loaded.error().message;
            EXPECT_EQ(loaded.value().sliceCount(), sample().sliceCount()) << form << " as " << name;
        }
    }
    std::string packed;
    GzipWriter gzip([&](std::string_view bytes) { packed.append(bytes); });
    gzip.write(slurp(folder.file("a.strace")));
    gzip.finish();
    spill(folder.file("b.strace.gz"), packed);
    EXPECT_EQ(loadError(folder.file("b.strace.gz")), "loaded");

    ASSERT_EQ(saveError(folder.file("a.csv")), "saved");
    spill(folder.file("b.json"), slurp(folder.file("a.csv")));
    EXPECT_THAT(loadError(folder.file("b.json")), AllOf(HasSubstr("b.json"), HasSubstr("CSV is written only")));
    spill(folder.file("b.txt"), "hello");
    EXPECT_THAT(loadError(folder.file("b.txt")), HasSubstr("neither the content nor the extension"));
    spill(folder.file("b.strace"), "hello");
    EXPECT_THAT(loadError(folder.file("b.strace")), HasSubstr("no Stagecraft trace"));
}

TEST(TraceFile, TellsWhatTheWayToAPlaceLacks)
{
    const TemporaryFolder folder;
    const auto errorAt = [](const std::filesystem::path& file) { return writeError(file, ENOENT).message; };
    EXPECT_THAT(errorAt(folder.file("nowhere/a.json")), HasSubstr("nowhere does not exist; create it"));
    spill(folder.file("plain"), "");
    EXPECT_THAT(errorAt(folder.file("plain/a.json")), HasSubstr("plain is a file, not a folder"));
    EXPECT_EQ(errorAt("/proc/nothing"), "cannot write /proc/nothing: the folder /proc is one in which nothing can be made (No such file or directory); choose another");
    EXPECT_THAT(errorAt("nothing.json"), HasSubstr("the folder . is one in which nothing can be made"));
    std::filesystem::create_symlink("elsewhere/a.json", folder.file("link.json"));
    EXPECT_THAT(errorAt(folder.file("link.json")), AllOf(HasSubstr("it is a link to " + folder.file("elsewhere/a.json").string()), HasSubstr("elsewhere does not exist")));
}

TEST(TraceFile, NamesTheFileAndTheReason)
{
    const TemporaryFolder folder;
    EXPECT_THAT(loadError(folder.file("none.json")), AllOf(HasSubstr("none.json"), HasSubstr("does not exist")));
    std::filesystem::create_directory(folder.file("folder.json"));
    EXPECT_THAT(loadError(folder.file("folder.json")), HasSubstr("it is a folder"));
    spill(folder.file("other.json"), R"({"traceEvents":[]})");
    EXPECT_THAT(loadError(folder.file("other.json")), AllOf(HasSubstr("other.json"), HasSubstr("other tools")));
    ASSERT_EQ(saveError(folder.file("whole.json.gz")), "saved");
    spill(folder.file("cut.json.gz"), slurp(folder.file("whole.json.gz")).substr(0, 300));
    EXPECT_THAT(loadError(folder.file("cut.json.gz")), AllOf(HasSubstr("cut.json.gz"), HasSubstr("cut off")));
    for (const char* name : {"nowhere/a.json", "nowhere/a.json.gz", "nowhere/a.csv"})
        EXPECT_THAT(saveError(folder.file(name)), AllOf(HasSubstr("nowhere"), HasSubstr("does not exist; create it")));
}

TEST(TraceFile, KeepsTheOldFileWhenTheNewOneCannotBeWritten)
{
    const TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/full", folder.file("full.json"));
    EXPECT_THAT(saveError(folder.file("full.json")), HasSubstr("the disk is full"));
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file("full.json")));
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(TraceFile, RefusesASmallFileThatFillsTheMemory)
{
    const TemporaryFolder folder;
    std::string packed;
    GzipWriter gzip([&](std::string_view bytes) { packed.append(bytes); });
    const std::string blanks(std::size_t{1} << 20, ' ');
    for (int i = 0; i < 80; ++i) gzip.write(blanks);
    gzip.finish();
    spill(folder.file("bomb.json.gz"), packed);
    const Expected<Trace> loaded = loadTrace(folder.file("bomb.json.gz"));
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, HasSubstr("more than 200 times its size"));
}

TEST(TraceFile, ReadsGzipWhateverTheNameSays)
{
    const TemporaryFolder folder;
    ASSERT_EQ(saveError(folder.file("a.json.gz")), "saved");
    std::filesystem::rename(folder.file("a.json.gz"), folder.file("b.json"));
    EXPECT_EQ(loadError(folder.file("b.json")), "loaded");
}

TEST(RankFiles, HoldOneRankEach)
{
    const TemporaryFolder folder;
    const Expected<std::size_t> saved = saveRankFiles(sample(), folder.file("made/here"));
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    EXPECT_EQ(saved.value(), 2U);
    const Expected<Trace> second = loadTrace(folder.file("made/here/rank1.json.gz"));
    ASSERT_TRUE(second.ok()) << second.error().message;
    for (const Lane& lane : second.value().lanes()) EXPECT_EQ(lane.info().rank, Rank{1});
    EXPECT_TRUE(std::filesystem::exists(folder.file("made/here/rank0.json.gz")));
    spill(folder.file("file"), "");
    const Expected<std::size_t> failed = saveRankFiles(sample(), folder.file("file"));
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().message, HasSubstr("file"));
    EXPECT_THAT(saveRankFiles(Trace{}, folder.file("none")).error().message, HasSubstr("no lanes"));
}

TEST(Csv, HoldsOneRowAnAction)
{
    Trace trace = test::staircase({"0F0 - 0OPTIMIZER", "."});
    const LaneId stream = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Stream, .depth = 0, .name = ""});
    trace.append(stream, {.begin = -5, .end = 10, .step = Step{2}, .text = trace.intern("a \"b\", c")});
    std::string text;
    writeCsv(trace, [&](std::string_view bytes) { text.append(bytes); });
    EXPECT_EQ(text, "step,rank,lane,stage,microbatch,action,kind,begin_ns,end_ns,duration_ns\r\n"
                    "0,0,compute,0,0,0F0,F,0,2000,2000\r\n"
                    "0,0,compute,0,,0OPTIMIZER,OPTIMIZER,2000,3000,1000\r\n"
                    "2,1,stream,,,\"a \"\"b\"\", c\",,-5,10,15\r\n");
}

} // namespace
} // namespace stagecraft::traces
