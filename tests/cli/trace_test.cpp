// SPDX-License-Identifier: Apache-2.0
//
// Traces written by one verb and read by another: the figures survive every format that can be read.
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/journal.h"

#include <algorithm>

namespace stagecraft::cli::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

// What a file says must not reach a terminal as a command.
TEST(Trace, ShowsControlCharactersOfItsNotes)
{
    const TemporaryFolder folder;
    traces::Trace trace;
    trace.addNote("cleared\x1b[2J");
    ASSERT_TRUE(traces::saveJournal(trace, folder.file("note.strace")).ok());
    spill(folder.file("bad.schedule"), "0F0,\x1b[2J\n");
    for (const Output& output : {stagecraft({"convert", folder.file("note.strace"), folder.file("note.json")}),
                                 stagecraft({"validate", folder.file("bad.schedule")})}) {
        EXPECT_THAT(output.err, HasSubstr("\\x1b[2J"));
        EXPECT_THAT(output.err, testing::Not(HasSubstr("\x1b")));
    }
}

TEST(Trace, TellsTheMostOfEachGpusMemoryInEveryFormat)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("gpu.strace");
    traces::Trace trace;
    trace.info.ranks = 2;
    trace.info.stageToRank = {traces::Rank{0}, traces::Rank{1}};
    for (int r = 0; r < 2; ++r)
        trace.append(trace.addLane({.rank = traces::Rank{r}, .kind = traces::LaneKind::Compute, .depth = 0, .name = ""}),
                     {.begin = 0, .end = 1000, .action = traces::forward(traces::Stage{r}, traces::MicroBatch{0})});
    constexpr traces::Bytes kMiB = 1 << 20;
    const traces::GpuId gpu = trace.addGpu({.host = "node", .number = 3, .name = "NVIDIA H200", .total = 1000 * kMiB, .ranks = {traces::Rank{0}, traces::Rank{1}}});
    trace.addGpuMemory(gpu, 100, {.active = 40 * kMiB, .reserved = 50 * kMiB, .used = 450 * kMiB});
    trace.addGpuMemory(gpu, 700, {.active = 30 * kMiB, .reserved = 200 * kMiB, .used = 500 * kMiB});
    trace.addInformation("boundary tensors go by NCCL");
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());
    const std::string json = folder.file("gpu.json.gz");
    const Output converted = stagecraft({"convert", file, json});
    ASSERT_EQ(converted.exitCode, 0) << converted.err;
    EXPECT_EQ(converted.err, "") << "nothing is amiss";
    for (const std::string& each : {file, json}) {
        const Json told = jsonOf({"analyze", each, "--json"});
        EXPECT_EQ(told["gpus"], Json::parse(R"([{"gpu": 3, "host": "node", "name": "NVIDIA H200", "ranks": [0, 1], "total_bytes": 1048576000,
            "peak_active_bytes": 41943040, "peak_reserved_bytes": 209715200, "peak_other_bytes": 419430400, "peak_used_bytes": 524288000,
            "peak_used_ns": 700}])"));
        EXPECT_EQ(told["information"], Json::parse(R"(["boundary tensors go by NCCL"])"));
        EXPECT_EQ(told["notes"], Json::array());
    }
    const std::string text = stagecraft({"analyze", file}).out;
    EXPECT_THAT(text, HasSubstr("  note: boundary tensors go by NCCL\n"));
    EXPECT_THAT(text, HasSubstr("GPU 3  0,1    40 MiB   200 MiB  400 MiB  500 MiB  1000 MiB  50 %"));
}

TEST(Trace, TellsWhatTheDriverWasAskedForByKindOfAction)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("calls.strace");
    traces::Trace trace;
    trace.info.ranks = 1;
    trace.info.stageToRank = {traces::Rank{0}};
    trace.append(trace.addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Compute, .depth = 0, .name = "rank 0"}),
                 {.begin = 0, .end = 1000, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0})});
    const traces::LaneId calls = trace.addLane({.rank = traces::Rank{0}, .kind = traces::LaneKind::Stream, .depth = 0, .name = "GPU 0 memory operations"});
    trace.append(calls, {.begin = 10, .end = 30, .action = {}, .text = trace.intern("allocate 20 MiB for 0F0")});
    trace.append(calls, {.begin = 40, .end = 45, .action = {}, .text = trace.intern("release 2 MiB")});
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());
    EXPECT_EQ(jsonOf({"analyze", file, "--json"})["memory_operations"],
              Json::parse(R"([{"rank": 0, "allocations": 1, "allocated_bytes": 20971520, "releases": 1, "released_bytes": 2097152, "calls_ns": 25, "by_kind": [
                  {"kind": "no action", "allocations": 0, "allocated_bytes": 0, "releases": 1, "released_bytes": 2097152, "calls_ns": 5},
                  {"kind": "forward", "allocations": 1, "allocated_bytes": 20971520, "releases": 0, "released_bytes": 0, "calls_ns": 20}]}])"));
    EXPECT_THAT(stagecraft({"analyze", file}).out, testing::AllOf(HasSubstr("memory that the driver was asked for"), HasSubstr("forward")));
}

// Kernels of 60 % of a block, a copy that half of them hides, and a gap whose cause is known.
TEST(Trace, TellsWhereTheTimeOfBlocksWentOnTheDevice)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("gpu.strace");
    traces::Trace trace;
    trace.info.ranks = 1;
    trace.info.stageToRank = {traces::Rank{0}};
    const auto lane = [&](traces::LaneKind kind, const char* name) { return trace.addLane({.rank = traces::Rank{0}, .kind = kind, .depth = 0, .name = name}); };
    const auto put = [&](traces::LaneId on, const char* name, traces::TimeNs begin, traces::TimeNs end) {
        trace.append(on, {.begin = begin, .end = end, .action = {}, .text = trace.intern(name)});
    };
    trace.append(lane(traces::LaneKind::Compute, "rank 0"), {.begin = 0, .end = 1000, .action = traces::forward(traces::Stage{0}, traces::MicroBatch{0})});
    put(lane(traces::LaneKind::Stream, "GPU 0 stream 7"), "gemm", 0, 600);
    put(lane(traces::LaneKind::Stream, "GPU 0 stream 8"), "host to device", 500, 700);
    put(lane(traces::LaneKind::Stream, "GPU 0 stream 7, gaps"), "host had not launched", 600, 950);
    put(lane(traces::LaneKind::Stream, "GPU 0 stream 9, NCCL"), "ncclDevKernel_SendRecv(args)", 690, 720);
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());
    const Json times = jsonOf({"analyze", file, "--json"})["device_time"];
    ASSERT_EQ(times.size(), 1U);
    EXPECT_EQ(times[0], Json::parse(R"({"rank": 0, "blocks_ns": 1000, "kernels_ns": 600, "copies_ns": 100, "nccl_ns": 20,
        "gaps_ns": {"host": 230, "launch": 0, "event": 0, "device": 0, "not_known": 50}, "copying_ns": 200, "hidden_copying_ns": 100,
        "all_nccl_ns": {"waiting": 0, "moving": 0, "not_known": 30}})"));
    const std::string text = stagecraft({"analyze", file}).out;
    EXPECT_THAT(text, HasSubstr("time of the blocks on the device"));
    EXPECT_THAT(text, HasSubstr("60 %"));
    EXPECT_THAT(text, HasSubstr("kernels of NCCL"));
}

class ReadableFormat : public testing::TestWithParam<const char*> {};

TEST_P(ReadableFormat, KeepsTheFigures)
{
    const TemporaryFolder folder;
    const std::string file = folder.file(std::string("trace") + GetParam());
    Json simulated =
        jsonOf({"simulate", "--latency", "100us", "--schedule", "interleaved", "--chunks", "2", "--trace", file, "--json"});
    const Json analysed = jsonOf({"analyze", file, "--json"});
    EXPECT_THAT(keysOf(analysed), ElementsAre("steps", "ranks", "events", "clock", "notes", "information", "clocks", "durations"));
    EXPECT_EQ(analysed["ranks"], 4);
    EXPECT_EQ(analysed["clock"], "virtual");
    ASSERT_EQ(analysed["steps"].size(), 1U);
    Json step = analysed["steps"][0];
    EXPECT_EQ(step["step"], 0);
    step.erase("step");
    simulated.erase("links"); // a trace does not tell which way a transfer goes
    EXPECT_EQ(step, simulated);
}

INSTANTIATE_TEST_SUITE_P(Trace, ReadableFormat, testing::Values(".strace", ".json", ".json.gz"),
                         [](const auto& test) { return test.param == std::string(".json.gz") ? "gz" : test.param + 1; });

TEST(Convert, WritesTheOtherFormats)
{
    const TemporaryFolder folder;
    const std::string journal = folder.file("a.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", journal}).exitCode, 0);
    for (const char* name : {"b.json", "b.json.gz", "b.csv", "b.strace"}) {
        const Output output = stagecraft({"convert", journal, folder.file(name)});
        EXPECT_EQ(output.exitCode, 0) << output.err;
        EXPECT_THAT(output.out, HasSubstr(name));
    }
    EXPECT_EQ(jsonOf({"analyze", folder.file("b.json"), "--json"}), jsonOf({"analyze", journal, "--json"}));
    const std::string csv = slurp(folder.file("b.csv"));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 64) << "a heading and 2 * 4 * 8 actions";
}

// A file for each rank, as a reader of distributed runs wants them.
TEST(Convert, WritesAFilePerRank)
{
    const TemporaryFolder folder;
    const std::string journal = folder.file("a.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", journal}).exitCode, 0);
    const Output output = stagecraft({"convert", journal, "--per-rank", folder.file("ranks")});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("ranks: 4 files written"));
    const Json second = jsonOf({"analyze", folder.file("ranks/rank1.json.gz"), "--json"});
    EXPECT_EQ(second["events"], 16) << "8 micro-batches, forward and backward";
    expectRefusal({"convert", journal, folder.file("b.json"), "--per-rank", folder.file("ranks")}, 2, "--per-rank");
    expectRefusal({"convert", journal, "--per-rank", journal}, 1, "it is a file, not a folder");
    expectRefusal({"convert", journal, "--per-rank", journal + "/ranks"}, 1, "a.strace is a file, not a folder");
    expectRefusal({"convert", journal, journal + "/b.json"}, 2, "a.strace is a file, not a folder");
}

TEST(Compare, TellsHowFarASimulationIsOff)
{
    const TemporaryFolder folder;
    const std::string plain = folder.file("plain.strace");
    const std::string slower = folder.file("slower.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", plain}).exitCode, 0);
    ASSERT_EQ(stagecraft({"simulate", "--forward", "2ms", "--backward", "4ms", "--trace", slower}).exitCode, 0);
    const Json same = jsonOf({"compare", plain, plain, "--json"});
    EXPECT_EQ(same["steps"][0]["error"], 0);
    EXPECT_EQ(same["steps"][0]["max_shift_ns"], 0);
    const Json json = jsonOf({"compare", plain, slower, "--json"});
    ASSERT_EQ(json["steps"].size(), 1U);
    const Json& step = json["steps"][0];
    EXPECT_EQ(step["predicted_ns"], 33'000'000);
    EXPECT_EQ(step["actual_ns"], 66'000'000);
    EXPECT_EQ(step["error"], -0.5);
    EXPECT_EQ(step["matched"], 64);
    EXPECT_EQ(step["furthest"], "0B7"); // the last to begin: 31 ms against 62 ms
    EXPECT_EQ(step["max_shift_ns"], 31'000'000);
    EXPECT_EQ(step["kinds"][0]["matched"], 32);
    EXPECT_EQ(step["kinds"][0]["median_error"], -0.5);
    const Output people = stagecraft({"compare", plain, slower});
    EXPECT_THAT(people.out, HasSubstr("33 ms predicted, 66 ms actual, error -50.00 %"));
    EXPECT_EQ(people.exitCode, 0);
}

// Two runs, such as one whose weights are late and one whose are not.
TEST(Compare, PutsTheLossesOfTwoRunsBesideEachOther)
{
    const TemporaryFolder folder;
    const auto run = [&](const std::string& name, const std::string& schedule, int steps) {
        traces::Trace trace;
        trace.info.schedule = schedule;
        const traces::LaneId lane = trace.addLane({traces::Rank{0}, traces::LaneKind::Compute, 0, "rank 0"});
        for (int i = 0; i < steps; ++i) {
            const traces::Interval span{i * 1000, i * 1000 + 500};
            trace.append(lane, {span.begin, span.end, traces::forward(traces::Stage{0}, traces::MicroBatch{0}), traces::Step{i}, {}});
            trace.addStep({traces::Step{i}, span, i == 2 ? std::nullopt : std::optional(schedule == "1f1b" ? 8.0 - i : 8.0 - i / 2.0)});
        }
        EXPECT_TRUE(traces::saveJournal(trace, folder.file(name)).ok());
        return folder.file(name);
    };
    const std::string straight = run("straight.strace", "1f1b", 5);
    const std::string late = run("late.strace", "pipedream", 4);
    EXPECT_EQ(jsonOf({"compare", straight, late, "--json"})["loss"],
              Json::parse(R"([{"step":0,"predicted":8,"actual":8},{"step":1,"predicted":7,"actual":7.5},{"step":3,"predicted":5,"actual":6.5}])"));
    EXPECT_THAT(stagecraft({"compare", straight, late}).out, HasSubstr("loss of step  1f1b  pipedream  difference\n             0     8          8          +0\n"));
    const std::string longRun = run("long.strace", "1f1b", 400);
    const std::string people = stagecraft({"compare", longRun, longRun}).out;
    EXPECT_THAT(people.substr(people.find("loss of step")), testing::AllOf(HasSubstr("\n           399  "), testing::Not(HasSubstr("\n             1  "))));
    const std::string plain = folder.file("plain.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", plain}).exitCode, 0);
    EXPECT_EQ(jsonOf({"compare", plain, plain, "--json"})["loss"], Json::array()) << "a simulation has none";
}

TEST(Compare, ComparesTheStepsThatBothHave)
{
    const TemporaryFolder folder;
    const auto steps = [&](int count) {
        traces::Trace trace;
        const traces::LaneId lane = trace.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
        for (int i = 0; i < count; ++i) trace.append(lane, {i * 1000, i * 1000 + 500, traces::forward(traces::Stage{0}, traces::MicroBatch{0}), traces::Step{i}, {}});
        std::string file = folder.file(std::to_string(count) + ".strace");
        EXPECT_TRUE(traces::saveJournal(trace, file).ok());
        return file;
    };
    const Json json = jsonOf({"compare", steps(3), steps(6), "--json"});
    EXPECT_EQ(json["steps"].size(), 3U);
    EXPECT_EQ(json["only_actual_steps"], Json::parse("[3,4,5]"));
    EXPECT_EQ(json["only_predicted_steps"], Json::array());
    EXPECT_THAT(stagecraft({"compare", steps(3), steps(6)}).out, HasSubstr("\nleft out: steps 3 to 5, which the actual trace alone has\n"));
    EXPECT_THAT(stagecraft({"compare", steps(6), steps(5)}).out, HasSubstr("\nleft out: step 5, which the predicted trace alone has\n"));
}

TEST(Compare, SaysWhatItCannotCompare)
{
    const TemporaryFolder folder;
    const std::string plain = folder.file("plain.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", plain}).exitCode, 0);
    expectRefusal({"compare", plain}, 2, "TRACES");
    expectRefusal({"compare", plain, "nowhere.strace"}, 1, "nowhere.strace");
    traces::Trace empty;
    ASSERT_TRUE(traces::saveJournal(empty, folder.file("empty.strace")).ok());
    expectRefusal({"compare", plain, folder.file("empty.strace")}, 1, "the actual trace has no step");
}

// 1F1B on 4 ranks, times as they were assumed; the transfer is on every edge between ranks.
TEST(Analyze, TellsHowLongActionsTook)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("a.strace");
    ASSERT_EQ(stagecraft({"simulate", "--latency", "100us", "--trace", file}).exitCode, 0);
    const Json durations = jsonOf({"analyze", file, "--json"})["durations"];
    EXPECT_EQ(durations["hand_off_median_ns"], 100'000);
    ASSERT_EQ(durations["actions"].size(), 8U); // two kinds on four stages
    const Json& forward = durations["actions"][0];
    EXPECT_THAT(keysOf(forward),
                ElementsAre("stage", "rank", "chunk", "direction", "kind", "count", "median_ns", "lower_quartile_ns", "upper_quartile_ns", "p95_ns", "min_ns",
                            "max_ns", "total_ns", "share", "outliers", "histogram"));
    EXPECT_EQ(forward["total_ns"], 8'000'000);
    EXPECT_NEAR(forward["share"], 1.0 / 12, 1e-12) << "a forward is a third of a stage's time, and there are four";
    EXPECT_EQ(forward["count"], 8);
    EXPECT_EQ(forward["histogram"], Json::parse(R"({"from_ns": 1000000, "width_ns": 1, "counts": [8]})"));
    for (const char* key : {"median_ns", "lower_quartile_ns", "upper_quartile_ns", "p95_ns", "min_ns", "max_ns"}) EXPECT_EQ(forward[key], 1'000'000) << key;
    EXPECT_THAT(stagecraft({"analyze", file}).out, HasSubstr("hand-off between ranks: 100 µs (median)"));
}

// A forward that took a hundred times as long as the others of its stage.
TEST(Analyze, NamesTheActionsThatTookFarLonger)
{
    const TemporaryFolder folder;
    traces::Trace trace;
    trace.info.ranks = 1;
    const traces::LaneId lane = trace.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    traces::TimeNs at = 0;
    for (int i = 0; i < 8; ++i) {
        const traces::TimeNs time = i == 5 ? 100'000'000 : 1'000'000 + i;
        trace.append(lane, {.begin = at, .end = at + time, .action = traces::makeAction(traces::ActionKind::Forward, traces::Stage{0}, traces::MicroBatch{i}), .step = traces::Step{0}});
        at += time;
    }
    trace.addStep({.step = traces::Step{0}, .span = {0, at}, .loss = {}});
    const std::string file = folder.file("late.strace");
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());
    const Json forward = jsonOf({"analyze", file, "--json"})["durations"]["actions"][0];
    ASSERT_EQ(forward["outliers"].size(), 1U);
    EXPECT_EQ(forward["outliers"][0]["slice"], "0F5");
    EXPECT_EQ(forward["outliers"][0]["step"], 0);
    EXPECT_THAT(stagecraft({"analyze", file}).out, HasSubstr("by three times its width: 0F5 of step 0 (100 ms)"));
}

TEST(Analyze, ReadsAJournalThatWasCutOffAndSaysSo)
{
    const TemporaryFolder folder;
    const std::string whole = folder.file("whole.strace");
    const std::string part = folder.file("part.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", whole}).exitCode, 0);
    const std::string bytes = slurp(whole);
    spill(part, bytes.substr(0, bytes.size() * 3 / 4));
    const Output output = stagecraft({"analyze", part});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("  warning: "));
    const Output json = stagecraft({"analyze", part, "--json"});
    EXPECT_EQ(json.exitCode, 0);
    const Json told = Json::parse(json.out, nullptr, false);
    ASSERT_FALSE(told.is_discarded()) << json.out;
    EXPECT_THAT(json.err, HasSubstr(part + ": "));
    EXPECT_THAT(json.err, HasSubstr("left out"));
    ASSERT_FALSE(told["notes"].empty());
    for (const Json& note : told["notes"]) EXPECT_THAT(json.err, HasSubstr(part + ": " + note.get<std::string>())) << "both tell the same";
    EXPECT_EQ(jsonOf({"analyze", whole, "--json"})["notes"], Json::array());

    const Output compared = stagecraft({"compare", whole, part, "--json"});
    const Json notes = Json::parse(compared.out, nullptr, false)["notes"];
    ASSERT_EQ(notes.size(), told["notes"].size());
    EXPECT_EQ(notes[0], part + ": " + told["notes"][0].get<std::string>());
}

// Two steps of a run, the second broken off; seven events lost.
TEST(Analyze, MarksAStepThatBrokeOffAndSaysWhatWasLost)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("broken.strace");
    traces::Trace trace;
    trace.info.label = traces::TraceLabel::Measured;
    trace.info.ranks = 1;
    const traces::LaneId lane = trace.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    for (const int step : {0, 1})
        trace.append(lane, {.begin = step * 100,
                            .end = step * 100 + 50,
                            .action = traces::makeAction(traces::ActionKind::Forward, traces::Stage{0}, traces::MicroBatch{0}),
                            .step = traces::Step{step}});
    trace.addStep({traces::Step{0}, {0, 50}, 0.5});
    trace.addLostEvents(7);
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());

    const Output output = stagecraft({"analyze", file, "--json"});
    EXPECT_EQ(output.exitCode, 0);
    EXPECT_THAT(output.err, HasSubstr("7 events lost"));
    EXPECT_THAT(Json::parse(output.out)["notes"].dump(), HasSubstr("7 events lost"));
    const Json steps = Json::parse(output.out)["steps"];
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_FALSE(steps[0].contains("incomplete"));
    EXPECT_EQ(steps[1]["incomplete"], true);
    EXPECT_THAT(stagecraft({"analyze", file}).out, HasSubstr("step 1 (incomplete"));
}

// A run that failed while it was built may have left one, as a worker's does.
TEST(Analyze, TellsWhyATraceHoldsNoAction)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("failed.strace");
    traces::Trace trace;
    trace.info.ranks = 1;
    trace.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    trace.addNote("the run failed: no memory is left");
    ASSERT_TRUE(traces::saveJournal(trace, file).ok());
    const std::string why = "stagecraft-cli: " + file + ": the run failed: no memory is left\n";
    const std::string whole = folder.file("whole.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", whole}).exitCode, 0);
    for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{{"analyze", file}, {"analyze", file, "--json"}, {"whatif", file}, {"compare", whole, file}}) {
        const Output output = stagecraft(line);
        EXPECT_EQ(output.exitCode, 1);
        EXPECT_THAT(output.err, HasSubstr(why));
        EXPECT_THAT(output.err, HasSubstr(" computing "));
        EXPECT_EQ(output.out, "");
    }
}

TEST(Analyze, RefusesWhatIsNoTrace)
{
    const TemporaryFolder folder;
    for (const char* name : {"a.strace", "a.json", "a.json.gz"}) {
        for (const char* bytes : {"", "{", "[1,2", "STRACE1", "\xff\xfe\x00garbage", "{\"traceEvents\":7}"}) {
            spill(folder.file(name), bytes);
            const Output output = stagecraft({"analyze", folder.file(name)});
            EXPECT_EQ(output.exitCode, 1) << name << ": " << bytes;
            EXPECT_THAT(output.err, HasSubstr(name));
        }
    }
}

} // namespace

} // namespace stagecraft::cli::test
