// SPDX-License-Identifier: Apache-2.0
//
// Real runs through the command line, as far as the build can run anything.
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/figures.h"
#include "traces/format/journal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>

namespace stagecraft::cli::test {

namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

#if STAGECRAFT_TEST_WITH_TORCH

std::string slurpPlan(const std::string& preset) { return traces::test::slurp(std::string(STAGECRAFT_SOURCE_DIR) + "/resources/plans/" + preset + ".plan.json"); }

// The most that a rank of `hello` (1024→2048 | 2048→1024, 4 micro-batches of 8 rows) holds, in its backwards.
long long peakOfHello(int rank)
{
    constexpr long long kFloat = 4;
    constexpr long long kNarrow = 8 * 1024 * kFloat; // a micro-batch at either end of the model
    constexpr long long kWide = 8 * 2048 * kFloat;   // and between the stages
    const long long weights = (2048LL * 1024 + (rank == 0 ? 2048 : 1024)) * kFloat;
    // with gradients, both moments of AdamW and its two step counters; inputs or targets of the whole batch
    const long long kept = 4 * weights + 2 * kFloat + 4 * kNarrow;
    // the outputs of both micro-batches in flight, the gradient before the activation
    if (rank == 0) return kept + 3 * kWide;
    // the gradients of output, input and bias of one micro-batch, and the one that the loss's gradient begins with
    return kept + kNarrow + kWide + 1024 * kFloat + kFloat;
}

class EveryMode : public testing::TestWithParam<const char*> {};

TEST_P(EveryMode, PrintsTheKeysOfTheContract)
{
    const TemporaryFolder folder;
    const std::string trace = folder.file("run.strace");
    const Json json = runJsonOf({"run", "hello", "--mode", GetParam(), "--steps", "3", "--trace", trace, "--json"});
    EXPECT_THAT(keysOf(json),
                ElementsAre("mode", "device", "steps", "step_ns", "predicted_step_ns", "ideal_step_ns", "efficiency", "loss",
                            "outputs", "gradient_check", "gradient_max_abs_diff", "per_rank", "notes", "information", "clocks", "throughput", "measured"));
    EXPECT_EQ(json["mode"], GetParam());
    EXPECT_EQ(json["device"], "cpu");
    EXPECT_EQ(json["steps"], 3);
    EXPECT_EQ(json["loss"].size(), 3U);
    // 4 micro-batches of 8 rows
    EXPECT_EQ(json["outputs"], Json::parse("[[32,1024]]"));
    EXPECT_THAT(json["gradient_check"].get<std::string>(), AnyOf("bitwise", "tolerance"));
    EXPECT_GT(json["step_ns"].get<long long>(), 0);
    EXPECT_NEAR(json["efficiency"].get<double>(), json["ideal_step_ns"].get<double>() / json["step_ns"].get<double>(), 1e-9);
    EXPECT_GT(json["throughput"]["peak_flops_per_s"], 0);
    EXPECT_NEAR(json["throughput"]["samples_per_s"].get<double>() * json["step_ns"].get<double>(), 32e9, 1e3); // rows of a step
    EXPECT_EQ(json["throughput"]["tokens_per_s"], Json());
    ASSERT_EQ(json["measured"].size(), 6U); // forward, backward and update of two stages
    EXPECT_EQ(json["measured"][3]["stage"], 1);
    EXPECT_EQ(json["measured"][3]["rank"], 1);
    EXPECT_EQ(json["measured"][3]["chunk"], 0);
    EXPECT_EQ(json["measured"][3]["count"], 2 * 4); // of the three steps the first is left out
    EXPECT_LE(json["measured"][3]["lower_quartile_ns"], json["measured"][3]["upper_quartile_ns"]);
    ASSERT_EQ(json["per_rank"].size(), 2U);
    EXPECT_EQ(keysOf(json["per_rank"][1]), kRankKeys);
    EXPECT_GT(json["per_rank"][1]["busy_ns"].get<long long>(), 0);
    for (const int rank : {0, 1}) {
        const auto peak = json["per_rank"][rank]["peak_memory_bytes"].get<long long>();
        if (GetParam() == std::string("emulated")) {
            EXPECT_EQ(peak, peakOfHello(rank));
        } else { // who gives a hand-over back when is up to the threads, within the micro-batches in flight
            EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(peakOfHello(rank)), 4.0 * 8 * 2048 * 4);
        }
    }

    const Json analysed = runJsonOf({"analyze", trace, "--json"});
    EXPECT_EQ(analysed["steps"].size(), 3U);
    EXPECT_EQ(analysed["clock"], GetParam() == std::string("emulated") ? "virtual" : "monotonic");
}

TEST(Run, TellsWhatAModelOfATextWroteBeforeAndAfter)
{
    const Json json = runJsonOf({"run", "gpt-text", "--steps", "2", "--json"});
    EXPECT_NEAR(json["token_entropy"].get<double>(), 2.9375, 1e-4);
    EXPECT_THAT(json["sample"]["before"].get<std::string>(), testing::StartsWith("THE LINE"));
    EXPECT_NE(json["sample"]["before"], json["sample"]["after"]);
    const TemporaryFolder folder;
    std::ofstream(folder.file("own.txt")) << std::string(3000, 'a') + std::string(3000, 'b');
    const Json own = runJsonOf({"run", "gpt-text", "--steps", "2", "--data", "text:" + folder.file("own.txt").string(), "--json"});
    EXPECT_NEAR(own["token_entropy"].get<double>(), std::log(2.0), 1e-9);
    expectRefusal({"run", "hello", "--data", "text"}, 2, "data.source: a text needs a model that begins with an embedding");
    expectRefusal({"run", "gpt-text", "--data", "web"}, 2, "--data web: not known");
    expectRefusal({"run", "gpt-text", "--data", "text:/nowhere.txt"}, 1, "/nowhere.txt");
    expectRefusal({"run", "gpt-text", "--tokens", "bytes"}, 1, "set vocabulary to 256 or more");
    expectRefusal({"run", "gpt-text", "--tokens", "words"}, 2, "--tokens words: not known");
}

INSTANTIATE_TEST_SUITE_P(Run, EveryMode, testing::Values("threads", "emulated"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Run, TakesTheChangesOfTheCommandLine)
{
    const Json json = runJsonOf({"run", "mlp", "--ranks", "2", "--chunks", "2", "--schedule", "interleaved", "--microbatches",
                              "4", "--mode", "emulated", "--steps", "1", "--check", "all", "--seed", "3", "--json"});
    EXPECT_EQ(json["per_rank"].size(), 2U);
    EXPECT_EQ(json["steps"], 1);
    const Json unchecked = runJsonOf({"run", "mlp", "--steps", "1", "--check", "off", "--json"});
    EXPECT_EQ(unchecked["gradient_check"], "off");
}

TEST(Run, GoesOnFromACheckpoint)
{
    const TemporaryFolder folder;
    const std::string runs = folder.file("runs");
    const Json straight = runJsonOf({"run", "hello", "--steps", "4", "--checkpoint", runs, "--checkpoint-every", "3", "--json"});
    const Json again = runJsonOf({"run", "hello", "--ranks", "1", "--mode", "emulated", "--steps", "4", "--resume", runs + "/step-0000003",
                                  "--trace", folder.file("a.strace"), "--json"});
    EXPECT_EQ(again["loss"], Json::array({straight["loss"][3]}));
    EXPECT_EQ(again["gradient_check"], "bitwise");
    EXPECT_EQ(traces::loadJournal(folder.file("a.strace")).value().steps().front().step, traces::Step{3});
    expectRefusal({"run", "hello", "--steps", "4", "--resume", runs}, 1, "was made after 4 of them; give more");
    expectRefusal({"run", "mlp", "--steps", "9", "--resume", runs}, 1, "is of another model: the number of its layers is 2, and the plan's is 8");
    expectRefusal({"run", "hello", "--resume", folder.file("nowhere")}, 1, "does not exist");
}

TEST(Run, TellsPeopleWhatWasMeasured)
{
    const Output output = stagecraft({"run", "hello", "--steps", "2"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_EQ(output.err, "") << "progress is for terminals";
    EXPECT_THAT(output.out, HasSubstr("32×1024"));
    EXPECT_THAT(output.out, HasSubstr("efficiency"));
    EXPECT_THAT(output.out, HasSubstr("(median of 2)"));
    EXPECT_THAT(output.out, HasSubstr("bubble_makespan"));
}

TEST(Run, SaysHowManyStepsItsTimeIsTheMedianOf)
{
    EXPECT_THAT(stagecraft({"run", "hello", "--steps", "4"}).out, HasSubstr("(median of 3, the first left out)"));
}

// The step's time is the median of those that count, all but the first: of four the mean of the two in the middle.
TEST(Run, TellsTheMedianOfAnEvenNumberOfSteps)
{
    const TemporaryFolder folder;
    const Json run = runJsonOf({"run", "hello", "--mode", "emulated", "--steps", "5", "--trace", folder.file("a.strace"), "--json"});
    const traces::Trace trace = traces::loadJournal(folder.file("a.strace")).value();
    std::vector<traces::TimeNs> times;
    for (const traces::StepSpan& step : trace.steps()) times.push_back(step.span.length());
    ASSERT_EQ(times.size(), 5U);
    times.erase(times.begin());
    std::sort(times.begin(), times.end());
    EXPECT_NEAR(run["step_ns"].get<double>(), static_cast<double>(times[1] + times[2]) / 2, 1);
}

// Of an odd number the step's time and the figures by rank are of one and the same step.
TEST(Run, TellsFiguresByRankOfTheStepWhoseTimeItTells)
{
    const TemporaryFolder folder;
    const Json run = runJsonOf({"run", "hello", "--mode", "emulated", "--steps", "6", "--trace", folder.file("a.strace"), "--json"});
    const traces::Trace trace = traces::loadJournal(folder.file("a.strace")).value();
    const auto told = std::find_if(trace.steps().begin(), trace.steps().end(), [&](const traces::StepSpan& step) {
        return run["step_ns"] == step.span.length();
    });
    ASSERT_NE(told, trace.steps().end());
    const traces::StepFigures figures = traces::stepFigures(trace, told->step).value();
    EXPECT_EQ(run["per_rank"][0]["busy_ns"], figures.ranks[0].busy);
    EXPECT_EQ(run["per_rank"][1]["last_end_ns"], figures.ranks[1].lastEnd);
}

// The ranks of all replicas, with the whole batch of all.
TEST(Run, TellsTheRanksOfAllReplicas)
{
    for (const char* mode : {"threads", "emulated"}) {
        const Json json = runJsonOf({"run", "hello", "--mode", mode, "--replicas", "2", "--steps", "2", "--sharding", "zero1", "--json"});
        EXPECT_EQ(json["gradient_check"], "bitwise");
        EXPECT_EQ(json["outputs"], Json::parse("[[64,1024]]"));
        ASSERT_EQ(json["per_rank"].size(), 4U);
        for (int r = 0; r < 4; ++r) {
            const Json& rank = json["per_rank"][static_cast<std::size_t>(r)];
            EXPECT_EQ(rank["rank"], r);
            EXPECT_EQ(rank["replica"], r / 2);
            const auto classes = rank["peak_memory_by_class"];
            EXPECT_NEAR(classes["optimizer"].get<double>(), classes["weights"].get<double>(), 100); // two moments, each divided by two
        }
    }
}

TEST(Run, SaysHowManyReplicasThereAre)
{
    EXPECT_THAT(stagecraft({"run", "hello", "--replicas", "2", "--steps", "1"}).out, HasSubstr("1f1b, 2 replicas of 2 ranks, 4 micro-batches each"));
}

TEST(Run, WritesItsTraceInEveryFormat)
{
    const TemporaryFolder folder;
    for (const char* name : {"a.json", "a.json.gz", "a.csv"}) {
        const Output output = stagecraft({"run", "hello", "--steps", "1", "--trace", folder.file(name)});
        EXPECT_EQ(output.exitCode, 0) << output.err;
        EXPECT_GT(std::filesystem::file_size(folder.file(name)), 100U);
    }
    EXPECT_EQ(runJsonOf({"analyze", folder.file("a.json"), "--json"})["ranks"], 2);
}

TEST(Run, CutsSequencesOnly)
{
    expectRefusal({"run", "hello", "--schedule", "seq1f1b", "--slices", "2"}, 2, "the model has no sequences");
}

// Options that make a plan one that cannot run are wrong use; what lies in files, on this machine or in the plan itself is a failure.
TEST(Run, TellsWrongUseFromWhatFails)
{
    const TemporaryFolder folder;
    const std::string nowhere = folder.file("nowhere");
    expectRefusal({"run", "hello", "--clip-norm", "0.1", "--schedule", "pipedream"}, 2, "run.clip_norm: schedule pipedream updates a stage within the step");
    expectRefusal({"run", "hello", "--replicas", "2", "--schedule", "pipedream"}, 2, "machine.replicas: schedule pipedream updates its weights");
    expectRefusal({"run", "hello", "--schedule", "forward-only", "--checkpoint", nowhere}, 2, "run.checkpoint: schedule forward-only trains nothing");
    expectRefusal({"run", "hello", "--mode", "processes"}, 2, "mpirun -np 2 stagecraft-cli run PLAN --mode processes");

    expectRefusal({"run", "hello", "--resume", nowhere}, 1, "does not exist");
    expectRefusal({"run", "hello", "--checkpoint", "/proc/nothing/deeper"}, 1, "cannot write /proc/nothing: the folder /proc is one in which nothing can be made");
    Json large = Json::parse(slurpPlan("hello"));
    large["model"]["microbatch_rows"] = 1 << 20;
    spill(folder.file("large.plan.json"), large.dump());
    expectRefusal({"run", folder.file("large.plan.json"), "--microbatches", "16384"}, 1, "fewer or smaller micro-batches"); // 2^47 bytes of data
    Json plan = Json::parse(slurpPlan("hello"));
    plan["pipeline"]["schedule"] = "pipedream";
    plan["run"]["clip_norm"] = 0.1;
    spill(folder.file("odd.plan.json"), plan.dump());
    expectRefusal({"run", folder.file("odd.plan.json"), "--steps", "2"}, 1, "run.clip_norm: schedule pipedream");
}

// A pipe holds nothing for a second reader.
TEST(Run, ReadsItsPlanAndItsScheduleFromAPipe)
{
    const TemporaryFolder folder;
    spill(folder.file("hello.plan.json"), slurpPlan("hello"));
    spill(folder.file("order.csv"), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    const auto lossesOf = [&](const std::string& line) {
        const Output output = shell("cd '" + folder.file("").string() + "' && " + line);
        EXPECT_EQ(output.exitCode, 0) << output.err;
        const Json json = Json::parse(output.out, nullptr, false);
        EXPECT_FALSE(json.is_discarded()) << output.out;
        return json.is_discarded() ? Json() : json["loss"];
    };
    const Json plain = lossesOf("$CLI run hello --steps 1 --json");
    EXPECT_EQ(lossesOf("cat hello.plan.json | $CLI run /dev/stdin --steps 1 --json"), plain);
    EXPECT_EQ(lossesOf("$CLI run /dev/stdin --steps 1 --json < hello.plan.json"), plain);
    EXPECT_EQ(lossesOf("cat order.csv | $CLI run hello --schedule /dev/stdin --steps 1 --json").size(), 1U);
}

TEST(Run, TellsTheWholeCircleOfAnOrderThatDeadlocksAndItsFile)
{
    const TemporaryFolder folder;
    const std::string order = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n";
    const std::string circle = "the schedule deadlocks, each waits for the next: rank 0 at position 1 (0B0) waits for 1B0 on rank 1; rank 1 at position 0 (1F1) waits "
                               "for 0F1 on rank 0. Change the order";
    spill(folder.file("stuck.csv"), order);
    expectRefusal({"run", "hello", "--schedule", folder.file("stuck.csv"), "--steps", "1"}, 1, "stuck.csv: " + circle);
    Json plan = Json::parse(slurpPlan("hello"));
    plan["pipeline"] = {{"schedule", "custom"}, {"ranks", 2}, {"microbatches", 2}, {"custom_schedule", order}};
    spill(folder.file("stuck.plan.json"), plan.dump());
    expectRefusal({"run", folder.file("stuck.plan.json")}, 1, "stuck.plan.json: pipeline.custom_schedule: " + circle);
}

TEST(Run, TellsWhatARankHoldsWhereItsMemoryIsTooSmall)
{
    const Output output = stagecraft({"run", "hello", "--memory", "1"});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("stage 0 on rank 0: the rank has 1 B of memory and holds nothing yet; 8 MiB more do not fit"));
    EXPECT_EQ(stagecraft({"run", "hello", "--memory", "0", "--steps", "1"}).exitCode, 0) << "0 is no limit";
}

TEST(Run, NamesTheSchedulesThatItTakesBesideOneThatItDoesNot)
{
    const TemporaryFolder folder;
    spill(folder.file("own.csv"), "0F0,0B0,0ALL_REDUCE\n1F0,1B0\n");
    const Output output = stagecraft({"run", "hello", "--schedule", folder.file("own.csv")});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("the live engine cannot execute 0ALL_REDUCE"));
    EXPECT_THAT(output.err, HasSubstr("ake naive, gpipe, gpipe-lifo, 1f1b, eager-1f1b, bpipe, interleaved, looped-bfs, zb-h1, zb-h2, zb-auto"));
}

TEST(Run, TellsWhatAutogradSavesWhereItIsAskedTo)
{
    const Json json = runJsonOf({"run", "hello", "--steps", "1", "--activations", "saved-tensors", "--json"});
    ASSERT_EQ(json["activations"]["per_stage"].size(), 2U);
    const Json& first = json["activations"]["per_stage"][0];
    EXPECT_EQ(first["stage"], 0);
    EXPECT_EQ(first["saved_bytes"], 8 * 2048 * 4); // the result of its relu
    EXPECT_GE(first["allocator_bytes"].get<long long>(), 8 * 2048 * 4);
    for (const Json& rank : json["activations"]["per_rank"]) EXPECT_EQ(rank["peak_bytes"], rank["predicted_bytes"]);
    EXPECT_EQ(json["activations"]["per_rank"][0]["peak_bytes"], 2 * 8 * 2048 * 4);

    const Output output = stagecraft({"run", "hello", "--steps", "1", "--activations", "saved-tensors"});
    EXPECT_THAT(output.out, HasSubstr("activations of a micro-batch    saved by autograd"));
    EXPECT_THAT(output.out, HasSubstr("  stage 0 "));
    expectRefusal({"run", "hello", "--activations", "guess"}, 2, "there is: allocator, saved-tensors");
}

TEST(Run, LeavesAnOlderTraceAloneWhereItFailsBeforeItsFirstAction)
{
    const TemporaryFolder folder;
    for (const char* name : {"a.strace", "a.json", "a.json.gz", "a.csv"})
        for (const char* mode : {"threads", "emulated"})
            for (const bool older : {true, false}) {
                const std::string file = folder.file(name);
                if (older) spill(file, "an hour of measuring");
                else std::filesystem::remove(file);
                // the one cannot build its stages, the other cannot prepare its first step
                const std::vector<std::string> why = older ? std::vector<std::string>{"--memory", "1MiB"} : std::vector<std::string>{"--checkpoint", "/proc/nothing"};
                std::vector<std::string> line{"run", "hello", "--steps", "1", "--mode", mode, "--trace", file};
                line.insert(line.end(), why.begin(), why.end());
                const Output output = stagecraft(line);
                EXPECT_EQ(output.exitCode, 1) << output.err;
                EXPECT_THAT(output.err, HasSubstr("stagecraft-cli: nothing ran, and no trace was written\n"));
                EXPECT_THAT(output.err, Not(HasSubstr(file))) << "there is no trace to be looked at";
                if (older) EXPECT_EQ(slurp(file), "an hour of measuring");
                else EXPECT_FALSE(std::filesystem::exists(file));
            }
}

TEST(Run, PointsToWhatRanWhereItFailsLater)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("failed.strace");
    // beside the weights of a stage and what its optimizer keeps, 24 MiB, their gradients do not fit
    const Output output = stagecraft({"run", "hello", "--steps", "1", "--memory", "26MiB", "--check", "off", "--trace", file});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("what ran until then is in " + file));
    EXPECT_THAT(stagecraft({"analyze", file}).out, HasSubstr("warning: the run failed: "));
}

TEST(Run, NeedsAModel) { expectRefusal({"run", "eight-by-seventy"}, 1, "model"); }

// The journal goes into a pipe, so that the test sees the run's first events and knows that it is under way.
TEST(Run, StopsOnCtrlCAndKeepsWhatRan)
{
    const TemporaryFolder folder;
    const std::string pipe = folder.file("live.strace");
    const std::string kept = folder.file("kept.strace");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    Process run({program(), "run", "hello", "--steps", "1000000", "--check", "off", "--trace", pipe});

    std::ifstream reader(pipe, std::ios::binary);
    std::ofstream copy(kept, std::ios::binary);
    std::vector<char> buffer(20'000); // more than the records before the first action
    reader.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    copy.write(buffer.data(), reader.gcount());
    run.signal(SIGINT);
    copy << reader.rdbuf(); // until the run closes its end
    copy.close();

    const Output output = run.finish();
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("stopped; "));
    EXPECT_THAT(output.err, testing::ContainsRegex("kept [0-9]+ event"));
    const Output analysed = stagecraft({"analyze", kept, "--json"});
    EXPECT_EQ(analysed.exitCode, 0) << analysed.err;
    EXPECT_EQ(Json::parse(analysed.out)["ranks"], 2);
}

// Nothing is written at the end that a trace could not do without.
TEST(Run, LeavesATraceThatOpensWhereItIsKilled)
{
    const TemporaryFolder folder;
    const std::string trace = folder.file("killed.strace");
    Process run({program(), "run", "hello", "--steps", "1000000", "--check", "off", "--trace", trace});
    std::error_code ignored;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::filesystem::file_size(trace, ignored) + 1 < 20'001 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    run.signal(SIGKILL);
    EXPECT_EQ(run.finish().exitCode, 128 + SIGKILL);
    const Json figures = runJsonOf({"analyze", trace, "--json"});
    EXPECT_EQ(figures["ranks"], 2);
    EXPECT_GE(figures["events"], 16);
    EXPECT_GE(figures["steps"].size(), 1U);
}

// A run of any length: between 3000 and 10,000 steps nothing grows but what a step leaves behind for the result, its loss and the
// medians of its stages. Emulated, for there no thread waits for another that has no core.
TEST(Run, LeavesMemoryFlatOverTenThousandSteps)
{
    const TemporaryFolder folder;
    spill(folder.file("tiny.plan.json"), R"({"stagecraft_plan": 1, "name": "tiny",
        "model": {"layers": [{"type": "linear", "in": 4, "out": 4}, {"type": "linear", "in": 4, "out": 4}]},
        "pipeline": {"schedule": "1f1b", "ranks": 2, "microbatches": 2},
        "run": {"mode": "emulated", "check": "off", "optimizer": "sgd"}})");
    const auto mostKiB = [&](const std::string& steps, const std::string& journal) {
        const Output output = stagecraft({"run", folder.file("tiny.plan.json"), "--steps", steps, "--trace", folder.file(journal)});
        EXPECT_EQ(output.exitCode, 0) << output.err;
        EXPECT_THAT(output.out, HasSubstr("in " + steps + " steps"));
        return output.mostKiB;
    };
    const long few = mostKiB("3000", "few.strace");
    const long many = mostKiB("10000", "many.strace");
    // 2.5 MiB on a quiet machine; a busy one lets some more records wait for their reader
    EXPECT_LT(many - few, 7 * 1024) << "with the trace of 7000 steps in memory it is 10 MiB and more";
    EXPECT_EQ(runJsonOf({"analyze", folder.file("many.strace"), "--json"})["steps"].size(), 10'000U);
}

TEST(Worker, RunsPlansOnRequestAndAnswersWithAJournal)
{
    const TemporaryFolder folder;
    const Json hello = Json::parse(std::ifstream(std::string(STAGECRAFT_SOURCE_DIR) + "/resources/plans/hello.plan.json"));
    Process worker({program(), "worker"});
    worker.send(Json{{"command", "start"}, {"plan", hello}}.dump() + "\n");
    worker.awaitOutput("\"message\":\"result\"");
    worker.send("{\"command\":\"quit\"}\n");
    const Output output = worker.finish();
    EXPECT_EQ(output.exitCode, 0) << output.err;
    spill(folder.file("answer.strace"), output.out);
    EXPECT_EQ(runJsonOf({"analyze", folder.file("answer.strace"), "--json"})["steps"].size(), hello["run"].value("steps", 5U));
}

TEST(Worker, RunsTheCommandsOfAFileToTheirEnd)
{
    const TemporaryFolder folder;
    Json hello = Json::parse(std::ifstream(std::string(STAGECRAFT_SOURCE_DIR) + "/resources/plans/hello.plan.json"));
    hello["run"]["steps"] = 2;
    spill(folder.file("commands.jsonl"), Json{{"command", "start"}, {"plan", hello}}.dump() + "\n");
    const Output output = shell("cd '" + folder.file("").string() + "' && $CLI worker < commands.jsonl > run.strace");
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_EQ(runJsonOf({"analyze", folder.file("run.strace"), "--json"})["steps"].size(), 2U);
}

TEST(Worker, SaysThatAStageInTroubleIsNotThere)
{
    const TemporaryFolder folder;
    const Json hello = Json::parse(slurpPlan("hello"));
    spill(folder.file("commands.jsonl"), Json{{"command", "start"}, {"plan", hello}}.dump() + R"(
{"command":"trouble","stage":1,"factor":1.5}
{"command":"trouble","stage":7,"held":true}
)");
    const Output output = shell("$CLI worker < '" + folder.file("commands.jsonl").string() + "'");
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("trouble: there is no stage 7; the run's plan has stages 0 to 1"));
    EXPECT_THAT(output.out, testing::Not(HasSubstr("there is no stage 1")));
    EXPECT_THAT(output.out, HasSubstr("\"message\":\"result\"")) << "it goes on";
}

TEST(Worker, EndsWithItsInput)
{
    Process worker({program(), "worker"});
    EXPECT_EQ(worker.finish().exitCode, 0);
}

#else

TEST(Worker, SaysThatThisBuildCannotRunAndWhatToDo) { expectRefusal({"worker"}, 1, "-DSTAGECRAFT_WITH_TORCH=ON"); }

TEST(Run, SaysThatThisBuildCannotRunAndWhatToDo) { expectRefusal({"run", "hello"}, 1, "-DSTAGECRAFT_WITH_TORCH=ON"); }

#endif

} // namespace

} // namespace stagecraft::cli::test
