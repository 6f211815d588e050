// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/journal.h"

namespace stagecraft::cli::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using traces::test::TemporaryFolder;

// 1F1B with parts of the backward that differ, as a trace.
std::vector<std::string> simulation(std::vector<std::string> more)
{
    std::vector<std::string> line{"simulate", "--input-grad", "800us", "--weight-grad", "1.3ms", "--stage-scale", "1,1.5,0.7,1.1",
                                  "--activation-bytes", "4MiB", "--json"};
    line.insert(line.end(), more.begin(), more.end());
    return line;
}

std::vector<std::string> kindsOf(const Json& rows)
{
    std::vector<std::string> kinds;
    for (const Json& row : rows) kinds.push_back(row["kind"]);
    return kinds;
}

TEST(WhatIf, PredictsASimulatedTraceExactly)
{
    const TemporaryFolder folder;
    for (const char* name : {"base.strace", "base.json"}) {
        const std::string base = folder.file(name);
        const Json simulated = jsonOf(simulation({"--latency", "130us", "--trace", base}));
        const Json json = jsonOf({"whatif", base, "--schedules", "zb-h1,gpipe,zb-h2", "--microbatches", "12", "--latency", "400us", "--json"});
        EXPECT_THAT(keysOf(json), ElementsAre("label", "step", "costs", "rows", "left_out", "notes"));
        const Json& rows = json["rows"];
        EXPECT_THAT(kindsOf(rows), ElementsAre("trace", "same", "changed", "changed", "changed"));
        EXPECT_THAT(keysOf(rows[0]),
                    ElementsAre("kind", "label", "schedule", "ranks", "chunks", "microbatches", "slices", "partition", "makespan_ns", "speedup",
                                "bubble_makespan", "bubble_span", "bubble_over_ideal", "efficiency", "peak_activations", "peak_memory_bytes",
                                "prediction_error", "notes"));
        EXPECT_EQ(rows[0]["makespan_ns"], simulated["makespan_ns"]);
        EXPECT_EQ(rows[0]["prediction_error"], Json());
        EXPECT_EQ(rows[1]["makespan_ns"], simulated["makespan_ns"]);
        EXPECT_EQ(rows[1]["prediction_error"], 0);
        for (const std::size_t row : {2, 3, 4}) {
            const Json said = jsonOf(simulation({"--schedule", rows[row]["schedule"], "--microbatches", "12", "--latency", "400us"}));
            for (const char* key : {"makespan_ns", "bubble_makespan", "bubble_span", "bubble_over_ideal"}) EXPECT_EQ(rows[row][key], said[key]) << key;
            EXPECT_EQ(rows[row]["peak_memory_bytes"], said["per_rank"][0]["peak_memory_bytes"]);
        }
    }
}

TEST(WhatIf, TellsPeopleWhatItRestsOn)
{
    const TemporaryFolder folder;
    const std::string base = folder.file("base.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", base}).exitCode, 0);
    const Output output = stagecraft({"whatif", base, "--schedules", "interleaved,zb-h1,dualpipe", "--microbatches", "6"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    for (const char* text : {"costs are the medians of the simulated trace over 1 step", "predicted, as it was", "+0.00 %", "p=4 v=2 m=6",
                             "note, interleaved: no model tells what the 4 stages are made of: each is cut into 2 equal parts",
                             "note, zb-h1: the trace has whole backwards only", "left out, dualpipe: "})
        EXPECT_THAT(output.out, HasSubstr(text));
}

// The changed plan is a trace of its own, which says its plan.
TEST(WhatIf, KeepsThePredictedTrace)
{
    const TemporaryFolder folder;
    const std::string base = folder.file("base.strace");
    const std::string changed = folder.file("changed.strace");
    ASSERT_EQ(stagecraft({"simulate", "gpt-small", "--trace", base}).exitCode, 0);
    const Json json = jsonOf({"whatif", base, "--partition", "3,7", "--trace", changed, "--json"});
    EXPECT_EQ(json["rows"][1]["partition"], Json::parse("[5,5]"));
    EXPECT_EQ(json["rows"][2]["partition"], Json::parse("[3,7]"));
    EXPECT_LT(json["rows"][2]["speedup"], 1);
    EXPECT_EQ(jsonOf({"analyze", changed, "--json"})["steps"][0]["makespan_ns"], json["rows"][2]["makespan_ns"]);
    const Json back = jsonOf({"whatif", changed, "--partition", "5,5", "--json"})["rows"];
    EXPECT_NEAR(back[2]["makespan_ns"].get<double>(), json["rows"][0]["makespan_ns"].get<double>(), 100) << "to the rounding of a stage's time";
}

TEST(WhatIf, SaysWhatDoesNotFit)
{
    const TemporaryFolder folder;
    const std::string base = folder.file("base.strace");
    const std::string inference = folder.file("inference.strace");
    ASSERT_EQ(stagecraft({"simulate", "--trace", base}).exitCode, 0);
    ASSERT_EQ(stagecraft({"simulate", "--schedule", "forward-only", "--trace", inference}).exitCode, 0);
    expectRefusal({"whatif"}, 2, "TRACE");
    expectRefusal({"whatif", "nowhere.strace"}, 1, "nowhere.strace");
    expectRefusal({"whatif", base, "--forward", "2ms"}, 2, "--stage-scale");
    expectRefusal({"whatif", base, "--schedules", "fastest"}, 2, "list schedules");
    expectRefusal({"whatif", base, "--schedules", "gpipe", "--schedule", "1f1b"}, 2, "--schedules");
    expectRefusal({"whatif", base, "--partition", "1,2,3,4"}, 2, "no model");
    expectRefusal({"whatif", base, "--stage-scale", "1,2"}, 2, "stage_scale");
    expectRefusal({"whatif", base, "--ranks", "3"}, 2, "multiple or a part of 4");
    expectRefusal({"whatif", base, "--schedule", "dualpipe", "--microbatches", "7"}, 2, "dualpipe");
    expectRefusal({"whatif", inference, "--schedule", "1f1b"}, 2, "nothing comes back in the trace");
    expectRefusal({"whatif", base, "--schedules", "gpipe,zb-h1", "--trace", folder.file("two.strace")}, 2, "there are 2");
    traces::Trace empty;
    empty.addLane({.rank = traces::Rank{0}, .name = "rank 0"});
    ASSERT_TRUE(traces::saveJournal(empty, folder.file("empty.strace")).ok());
    expectRefusal({"whatif", folder.file("empty.strace")}, 1, "no computing slice");
#if STAGECRAFT_TEST_WITH_TORCH
    expectRefusal({"whatif", base, "--schedule", "gpipe", "--run"}, 2, "the trace is simulated");
#endif
}

#if STAGECRAFT_TEST_WITH_TORCH

// Memory and order are exact; times are those of the machine, so that only their being there is asked for.
TEST(WhatIf, RunsWhatItPredicted)
{
    const TemporaryFolder folder;
    const std::string run = folder.file("run.strace");
    runJsonOf({"run", "hello", "--mode", "emulated", "--steps", "2", "--trace", run, "--json"});
    const Json json = runJsonOf({"whatif", run, "--schedules", "gpipe", "--run", "--json"});
    EXPECT_EQ(json["label"], "emulated");
    const Json& rows = json["rows"];
    EXPECT_THAT(kindsOf(rows), ElementsAre("trace", "same", "changed", "performed"));
    EXPECT_EQ(rows[3]["label"], "emulated");
    EXPECT_EQ(rows[3]["peak_activations"], rows[2]["peak_activations"]);
    EXPECT_NEAR(rows[2]["prediction_error"].get<double>(),
                rows[2]["makespan_ns"].get<double>() / rows[3]["makespan_ns"].get<double>() - 1, 1e-9);
    expectRefusal({"whatif", run, "--stage-scale", "1,2", "--run"}, 2, "--run: a run takes as long as the machine takes");
    expectRefusal({"whatif", run, "--run"}, 2, "nothing is changed");
}

#endif

} // namespace

} // namespace stagecraft::cli::test
