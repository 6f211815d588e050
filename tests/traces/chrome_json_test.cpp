// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/sample_trace.h"
#include "traces/analysis/figures.h"
#include "traces/format/chrome_json.h"
#include "traces/format/json_text.h"
#include "traces/format/trace_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace stagecraft::traces {
namespace {

using nlohmann::json;
using test::sample;
using testing::HasSubstr;

std::string textOf(const Trace& trace, const ChromeJsonOptions& options = {})
{
    std::string text;
    writeChromeJson(
        trace, [&](std::string_view bytes) { text.append(bytes); }, options);
    return text;
}

std::vector<json> eventsOf(const Trace& trace, const std::string& phase, const ChromeJsonOptions& options = {})
{
    std::vector<json> found;
    const json document = json::parse(textOf(trace, options));
    for (const json& event : document["traceEvents"])
        if (event["ph"] == phase) found.push_back(event);
    return found;
}

Trace readBack(const Trace& trace)
{
    Expected<Trace> read = readChromeJson(textOf(trace));
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return read.ok() ? std::move(read).value() : Trace{};
}

// All records but memory points, which a rank's counter repeats for every class.
std::vector<Record> recordsWithoutMemory(const Trace& trace)
{
    std::vector<Record> records;
    forEachRecord(trace, [&](const Record& record) {
        if (!std::holds_alternative<MemoryRecord>(record)) records.push_back(record);
    });
    return records;
}

Trace randomTrace(unsigned seed)
{
    std::mt19937_64 random(seed);
    const auto upTo = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
    Trace trace;
    trace.info.label = static_cast<TraceLabel>(upTo(4));
    trace.info.clock = static_cast<ClockKind>(upTo(3));
    const std::int64_t ranks = 1 + upTo(4);
    trace.info.ranks = static_cast<std::int32_t>(ranks);
    trace.info.chunks = 2;
    for (int s = 0; s < 2 * ranks; ++s) trace.info.stageToRank.push_back(Rank{s % ranks});
    const TimeNs origin = upTo(2) == 0 ? 1'700'000'000'123'456'789 : -5'000'001;
    const ActionKind kinds[] = {ActionKind::Forward, ActionKind::Backward, ActionKind::InputGrad, ActionKind::WeightGrad};
    for (std::int64_t r = 0; r < ranks; ++r) {
        const LaneId lane =
            trace.addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .depth = 0, .name = "rank " + std::to_string(r)});
        TimeNs now = origin + upTo(5000);
        for (int i = 0; i < 60; ++i) {
            now += upTo(2) == 0 ? upTo(900) : 0;
            const TimeNs end = now + upTo(3000);
            trace.append(lane, {.begin = now,
                                .end = end,
                                .action = makeAction(kinds[upTo(4)], Stage{upTo(8)}, MicroBatch{i}),
                                .step = Step{i / 20}});
            now = end;
        }
    }
    for (std::int64_t r = 0; r < ranks; ++r)
        for (std::uint32_t i = 0; i < 60; ++i)
            if (upTo(3) == 0) {
                const SliceRef from{LaneId{upTo(ranks)}, static_cast<std::uint32_t>(upTo(60))};
                trace.addEdge({.kind = upTo(8) == 0 ? EdgeKind::Memory : EdgeKind::Data,
                               .from = from,
                               .to = {LaneId{r}, i},
                               .ready = trace.slice(from).end + upTo(2000)});
            }
    for (std::int64_t r = 0; r < ranks; ++r)
        for (TimeNs t = origin; t < origin + 100'000; t += 1 + upTo(2000))
            trace.addMemory(Rank{r}, static_cast<MemoryClass>(upTo(5)), t, upTo(1 << 20));
    if (upTo(2) == 0) trace.addPause({origin + 20'000, origin + 21'000});
    return trace;
}

TEST(ChromeJson, KeepsEveryNanosecond)
{
    Trace trace;
    trace.info.clock = ClockKind::Monotonic;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    // far beyond what a double holds in microseconds
    const TimeNs base = 1'725'000'000'123'456'789;
    trace.append(lane, {.begin = base, .end = base + 1, .action = forward(Stage{0}, MicroBatch{0})});
    trace.append(lane, {.begin = base + 1, .end = base + 86'400'000'000'007, .action = backward(Stage{0}, MicroBatch{0})});
    const std::string text = textOf(trace);
    EXPECT_THAT(text, HasSubstr("\"baseTimeNanoseconds\":1725000000123456789"));
    EXPECT_THAT(text, HasSubstr("\"ts\":0.000,\"dur\":0.001"));
    EXPECT_THAT(text, HasSubstr("\"ts\":0.001,\"dur\":86400000000.006"));
    EXPECT_EQ(recordsWithoutMemory(readBack(trace)), recordsWithoutMemory(trace));
}

TEST(ChromeJson, NamesAndSortsProcessesAndThreads)
{
    Trace trace = test::staircase({"0F0 2F0", ". 1F0"}, {.chunks = 2});
    trace.addLane({.rank = Rank{1}, .kind = LaneKind::Transfer, .depth = 1, .name = ""});
    std::map<std::pair<std::string, int>, json> names;
    for (const json& event : eventsOf(trace, "M")) {
        EXPECT_FALSE(event.contains("ts"));
        names[{event["name"], event.value("tid", event["pid"].get<int>())}] = event["args"];
    }
    EXPECT_EQ((names[{"process_name", 1}]["name"]), "rank 0 · stages 0,2");
    EXPECT_EQ((names[{"process_name", 2}]["name"]), "rank 1 · stages 1,3");
    EXPECT_TRUE((names[{"process_sort_index", 1}]["sort_index"].is_number_integer()));
    EXPECT_LT((names[{"process_sort_index", 1}]["sort_index"]), (names[{"process_sort_index", 2}]["sort_index"]));
    const auto thread = [&](const std::string& kind, const std::string& text) {
        for (const auto& [key, args] : names)
            if (key.first == kind && args["name"] == text) return key.second;
        return 0;
    };
    const int compute = thread("thread_name", "rank 1");
    const int transfer = thread("thread_name", "transfer 1");
    EXPECT_GT(compute, 0);
    EXPECT_GT(transfer, 0);
    EXPECT_LT((names[{"thread_sort_index", compute}]["sort_index"]), (names[{"thread_sort_index", transfer}]["sort_index"]));
}

TEST(ChromeJson, UsesSmallPositiveNumbersThatNoTwoRowsShare)
{
    std::map<int, int> pidOfTid;
    std::set<int> pids;
    for (const json& event : eventsOf(sample(), "X")) {
        const int pid = event["pid"];
        const int tid = event["tid"];
        EXPECT_GT(pid, 0);
        EXPECT_GT(tid, 0);
        EXPECT_EQ(pidOfTid.emplace(tid, pid).first->second, pid);
        pids.insert(pid);
    }
    for (const auto& [tid, pid] : pidOfTid) EXPECT_FALSE(pids.contains(tid));
}

TEST(ChromeJson, TellsTheActionInNameAndArguments)
{
    const json event = eventsOf(sample(), "X")[1]; // after the step
    EXPECT_EQ(event["name"], "0F0");
    EXPECT_EQ(event["cat"], std::string(kindName(ActionKind::Forward)));
    EXPECT_EQ(event["args"]["kind"], "F");
    EXPECT_EQ(event["args"]["stage"], 0);
    EXPECT_EQ(event["args"]["microbatch"], 0);
    EXPECT_EQ(event["args"]["step"], 0);
}

TEST(ChromeJson, StartsArrowsInsideTheProducerAndEndsThemAtTheConsumer)
{
    const Trace trace = sample();
    const std::vector<json> starts = eventsOf(trace, "s");
    const std::vector<json> ends = eventsOf(trace, "f");
    ASSERT_EQ(starts.size(), trace.edgeCount());
    ASSERT_EQ(ends.size(), starts.size());
    std::set<int> ids;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        EXPECT_TRUE(ids.insert(starts[i]["id"].get<int>()).second);
        EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
        EXPECT_EQ(starts[i]["name"], ends[i]["name"]);
        EXPECT_EQ(starts[i]["cat"], ends[i]["cat"]);
        EXPECT_EQ(ends[i]["bp"], "e");
    }
    // the first arrow: from 1B0, which runs from 2 to 3 us on rank 1, to 0B0 on rank 0
    EXPECT_EQ(starts[0]["pid"], 2);
    EXPECT_EQ(starts[0]["ts"], 2.999);
    EXPECT_EQ(ends[0]["pid"], 1);
    EXPECT_EQ(ends[0]["ts"], 3.0);
    EXPECT_EQ(starts.size(), 4u);
}

TEST(ChromeJson, WritesOneCounterWithAllClassesOfARank)
{
    Trace trace = test::staircase({"0F0"});
    trace.addMemory(Rank{0}, MemoryClass::Activations, 0, 64);
    trace.addMemory(Rank{0}, MemoryClass::Weights, 0, 4096);
    trace.addMemory(Rank{0}, MemoryClass::Activations, 500, 128);
    const std::vector<json> counters = eventsOf(trace, "C");
    ASSERT_EQ(counters.size(), 2u);
    EXPECT_EQ(counters[0]["args"], (json{{"weights", 4096}, {"activations", 64}}));
    EXPECT_EQ(counters[1]["args"], (json{{"weights", 4096}, {"activations", 128}}));
    EXPECT_EQ(counters[1]["ts"], 0.5);
}

TEST(ChromeJson, WritesTheMemoryOfAGpuAsACounterOfPartsThatStack)
{
    Trace trace = test::staircase({"0F0", "1F0"});
    const GpuId gpu = trace.addGpu({.number = 5, .name = "H200", .ranks = {Rank{1}}});
    trace.addGpuMemory(gpu, 500, {.active = 10, .reserved = 16, .used = 20});
    const std::vector<json> counters = eventsOf(trace, "C");
    ASSERT_EQ(counters.size(), 1u);
    EXPECT_EQ(counters[0]["args"], (json{{"active", 10}, {"reserved, unused", 6}, {"other than LibTorch", 4}}));
    std::string process;
    for (const json& name : eventsOf(trace, "M"))
        if (name["pid"] == counters[0]["pid"] && name["name"] == "process_name") process = name["args"]["name"];
    EXPECT_EQ(process, "GPU 5 · H200");
    EXPECT_TRUE(eventsOf(trace, "C", {.rank = Rank{0}}).empty()) << "it is not rank 0's";
    EXPECT_EQ(eventsOf(trace, "C", {.rank = Rank{1}}).size(), 1u);
}

TEST(ChromeJson, PutsOverlappingStepsOnRowsOfTheirOwn)
{
    Trace trace = test::staircase({"0F0 - -"});
    trace.addStep({.step = Step{0}, .span = {0, 2000}, .loss = 1.5});
    trace.addStep({.step = Step{1}, .span = {1000, 3000}, .loss = std::nullopt});
    trace.addStep({.step = Step{2}, .span = {2000, 3000}, .loss = std::nan("")});
    const std::vector<json> events = eventsOf(trace, "X");
    EXPECT_NE(events[0]["tid"], events[1]["tid"]);
    EXPECT_EQ(events[0]["tid"], events[2]["tid"]);
    EXPECT_EQ(events[0]["args"]["loss"], 1.5);
    EXPECT_TRUE(std::isnan(readBack(trace).steps()[2].loss.value()));
}

TEST(ChromeJson, EscapesNames)
{
    Trace trace;
    trace.info.title = "quote \" backslash \\ tab \t line\nend";
    const LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 0, .name = "l\x01\x7f"});
    trace.append(lane, {.begin = 0, .end = 1, .text = trace.intern("kernel<\"x\">\\\x1f ü€😀")});
    trace.append(lane, {.begin = 1, .end = 2, .text = trace.intern("broken \xff\xc3 \xed\xa0\x80")});
    const Trace again = readBack(trace);
    EXPECT_EQ(again.info.title, trace.info.title);
    EXPECT_EQ(again.lane(lane).info().name, "l\x01\x7f");
    EXPECT_EQ(again.sliceName({lane, 0}), "kernel<\"x\">\\\x1f ü€😀");
    EXPECT_EQ(again.sliceName({lane, 1}), "broken \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD");
}

TEST(ChromeJson, GivesEverythingBack)
{
    const Trace trace = sample();
    const Trace again = readBack(trace);
    EXPECT_EQ(recordsWithoutMemory(again), recordsWithoutMemory(trace));
    for (const MemorySeries& series : trace.memory())
        for (TimeNs t = 0; t < 6000; t += 500)
            EXPECT_EQ(again.memorySeries(series.rank, series.memory)->valueAt(t), series.valueAt(t));
}

TEST(ChromeJson, GivesEveryKindOfActionBack)
{
    Trace trace;
    const LaneId lane = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = ""});
    TimeNs now = 0;
    for (const char* text : {"(0F1;3B0)OVERLAP_F_B", "u3B1", "d0F7", "2I3", "1W4", "3SEND_F1", "0RECV_B2", "1UNSHARD",
                             "0OFFLOAD2", "0RECOMPUTE2", "0ALL_REDUCE", "0OPTIMIZER"})
        trace.append(lane, {.begin = now++, .end = now, .action = parseAction(text).value()});
    EXPECT_EQ(recordsWithoutMemory(readBack(trace)), recordsWithoutMemory(trace));
}

TEST(ChromeJson, SurvivesFlippedBytes)
{
    const std::string whole = textOf(sample());
    std::mt19937 random(5);
    for (int round = 0; round < 3000; ++round) {
        std::string text = whole;
        for (std::size_t i = 1 + random() % 3; i > 0; --i) text[random() % text.size()] = static_cast<char>(random());
        const Expected<Trace> read = readChromeJson(text);
        if (read.ok()) (void)textOf(read.value());
        else EXPECT_FALSE(read.error().message.empty());
    }
}

TEST(ChromeJson, KeepsTheFiguresOfRandomTraces)
{
    for (unsigned seed = 0; seed < 40; ++seed) {
        const Trace trace = randomTrace(seed);
        const Trace again = readBack(trace);
        for (const Step step : stepsOf(trace)) {
            const StepFigures before = stepFigures(trace, step).value();
            const StepFigures after = stepFigures(again, step).value();
            EXPECT_EQ(after.makespan, before.makespan);
            EXPECT_EQ(after.bubbleSpan, before.bubbleSpan);
            ASSERT_EQ(after.ranks.size(), before.ranks.size());
            for (std::size_t r = 0; r < before.ranks.size(); ++r) {
                EXPECT_EQ(after.ranks[r].busy, before.ranks[r].busy);
                EXPECT_EQ(after.ranks[r].idleByCause, before.ranks[r].idleByCause);
                EXPECT_EQ(after.ranks[r].peakMemory, before.ranks[r].peakMemory);
                EXPECT_EQ(after.ranks[r].peakActivations, before.ranks[r].peakActivations);
            }
            EXPECT_EQ(gapsOf(again, step), gapsOf(trace, step));
        }
    }
}

TEST(ChromeJson, CanBeCutToOneRank)
{
    const Trace trace = sample();
    const std::string text = textOf(trace, {.rank = Rank{1}});
    EXPECT_THAT(text, HasSubstr("\"rank\": 1"));
    EXPECT_EQ(json::parse(text)["distributedInfo"]["world_size"], 2);
    for (const json& event : eventsOf(trace, "X", {.rank = Rank{1}}))
        EXPECT_TRUE(event["pid"] == 2 || event["cat"] == "step");
    EXPECT_TRUE(eventsOf(trace, "s", {.rank = Rank{1}}).empty()) << "an arrow without its other end";
    const Expected<Trace> again = readChromeJson(text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value().laneCount(), 3u);
    EXPECT_EQ(stepFigures(again.value(), Step{0}).value().ranks[0].busy, stepFigures(trace, Step{0}).value().ranks[1].busy);
}

TEST(ChromeJson, WritesAnEmptyTrace) { EXPECT_EQ(readBack(Trace{}).sliceCount(), 0u); }

TEST(ChromeJson, RefusesNumbersBeyondAnyTrace)
{
    const auto errorOf = [](std::string_view rest) {
        const Expected<Trace> trace = readChromeJson(R"({"otherData":{"format":"stagecraft")" + std::string(rest) + "]}");
        return trace.ok() ? std::string("read") : trace.error().message;
    };
    const std::string lane = R"(,"lanes":[{"tid":1,"rank":0,"kind":"compute","depth":0,"name":"x"}]},"traceEvents":[)";
    EXPECT_EQ(errorOf(lane), "read");
    EXPECT_THAT(errorOf(R"(,"stageToRank":[0,-12]},"traceEvents":[)"), HasSubstr("rank -12 is out of range"));
    EXPECT_THAT(errorOf(R"(,"stageToRank":[0,2000000000]},"traceEvents":[)"), HasSubstr("rank 2000000000"));
    EXPECT_THAT(errorOf(R"(,"lanes":[{"tid":1,"rank":2147483647,"kind":"compute"}]},"traceEvents":[)"), HasSubstr("rank 2147483647"));
    EXPECT_THAT(errorOf(lane + R"({"ph":"X","pid":1,"tid":1,"ts":9000000000000000,"dur":1,"name":"0F0","args":{"kind":"F"}})"),
                HasSubstr("out of range"));
    EXPECT_THAT(errorOf(lane + R"({"ph":"C","pid":1,"ts":0,"args":{"weights":9223372036854775807}})"), HasSubstr("a memory of"));
}

TEST(ChromeJson, RefusesOtherToolsAndDamageWithAReason)
{
    const auto errorOf = [](std::string_view text) {
        const Expected<Trace> read = readChromeJson(text);
        return read.ok() ? std::string("read") : read.error().message;
    };
    EXPECT_THAT(
        errorOf(R"({"schemaVersion":1,"traceEvents":[{"ph":"X","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2}]})"),
        HasSubstr("traces of other tools cannot be opened yet"));
    EXPECT_THAT(errorOf(R"([{"ph":"X"}])"), HasSubstr("other tools"));
    EXPECT_THAT(errorOf("{}"), HasSubstr("other tools"));
    EXPECT_THAT(errorOf(""), HasSubstr("cannot be read"));
    const std::string whole = textOf(sample());
    for (std::size_t cut = 1; cut < whole.size() - 2; ++cut)
        ASSERT_NE(errorOf(std::string_view(whole).substr(0, cut)), "read") << "cut at " << cut;

    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string text = whole;
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos);
        return errorOf(text.replace(at, from.size(), to));
    };
    EXPECT_THAT(changed("\"version\":1", "\"version\":2"), HasSubstr("newer Stagecraft"));
    EXPECT_THAT(changed("\"label\":\"simulated\"", "\"label\":\"dreamt\""), HasSubstr("dreamt"));
    EXPECT_THAT(changed("\"slice\":", "\"slice\":9"), HasSubstr("does not have it"));
    EXPECT_THAT(changed("\"ts\":0.000", "\"ts\":0.0001"), HasSubstr("microseconds"));
}

TEST(Microseconds, ArePrintedAndReadDigitByDigit)
{
    for (const TimeNs ns : {TimeNs{0}, TimeNs{1}, TimeNs{-1}, TimeNs{999}, TimeNs{1000}, TimeNs{-1001},
                            std::numeric_limits<TimeNs>::max(), std::numeric_limits<TimeNs>::min()}) {
        std::string text;
        appendMicroseconds(text, ns);
        EXPECT_EQ(parseMicroseconds(text).value(), ns) << text;
    }
    EXPECT_EQ(parseMicroseconds("12").value(), 12'000);
    EXPECT_EQ(parseMicroseconds("1.5").value(), 1'500);
    EXPECT_EQ(parseMicroseconds("1.50000").value(), 1'500);
    for (const char* wrong :
         {"", "-", ".", "1.", ".5", "1e3", "1.0005", "1.5x", "9223372036854775.808", "--1", "1.-5", "0x1"})
        EXPECT_FALSE(parseMicroseconds(wrong).ok()) << wrong;
}

} // namespace
} // namespace stagecraft::traces
