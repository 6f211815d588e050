// SPDX-License-Identifier: Apache-2.0
//
// Figures: GPipe and 1F1B (p-1)/(m+p-1), arXiv 1811.06965 and 2104.04473; interleaved (p-1)/(vm+p-1), the latter sec. 2.2.
// Makespans with imbalance and latency come from an independent event simulation (unit-time golden schedules).
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"

#include <algorithm>
#include <vector>

namespace stagecraft::cli::test {

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Case {
    const char* name;
    std::vector<std::string> arguments;
    long long makespanNs;
    double bubble;
};
void PrintTo(const Case& known, std::ostream* out) { *out << known.name; }

class KnownFigures : public testing::TestWithParam<Case> {};

TEST_P(KnownFigures, AreMet)
{
    std::vector<std::string> arguments{"simulate", "--json"};
    arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    const Json json = jsonOf(arguments);
    EXPECT_EQ(json["makespan_ns"], GetParam().makespanNs);
    EXPECT_NEAR(json["bubble_makespan"].get<double>(), GetParam().bubble, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Simulate, KnownFigures,
    testing::Values(
        Case{"Default", {}, 33'000'000, 3.0 / 11},
        Case{"OneFOneB4x8",
             {"--schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--forward", "1ms", "--backward", "2ms"},
             33'000'000,
             3.0 / 11},
        Case{"GPipe4x8", {"--schedule", "gpipe"}, 33'000'000, 3.0 / 11},
        Case{"FourByFive", {"--microbatches", "5"}, 24'000'000, 0.375},
        Case{"TwelveLayersGPipe", {"--schedule", "gpipe", "--microbatches", "5"}, 24'000'000, 0.375},
        Case{"EightBySeventy", {"eight-by-seventy"}, 231'000'000, 7.0 / 77},
        Case{"ImbalancedOneFOneB", {"--stage-scale", "1,1,1.5,0.5"}, 42'000'000, 18.0 / 42},
        Case{"ImbalancedGPipe", {"--stage-scale", "1,1,1.5,0.5", "--schedule", "gpipe"}, 43'500'000, 19.5 / 43.5},
        Case{"ImbalancedPreset", {"imbalanced"}, 42'000'000, 18.0 / 42},
        Case{"LatencyOneFOneB", {"--latency", "0.5ms"}, 41'000'000, 17.0 / 41},
        Case{"LatencyGPipe", {"--latency", "500us", "--schedule", "gpipe"}, 36'000'000, 12.0 / 36},
        Case{"LatencyAsBandwidth",
             {"--bandwidth", "2GB/s", "--boundary-bytes", "1000000", "--schedule", "gpipe"},
             36'000'000,
             12.0 / 36},
        Case{"Interleaved",
             {"--schedule", "interleaved", "--chunks", "2", "--forward", "2ms", "--backward", "4ms"},
             57'000'000,
             3.0 / 19},
        Case{"BackwardAsSum", {"--input-grad", "500us", "--weight-grad", "1.5ms"}, 33'000'000, 3.0 / 11},
        Case{"Naive", {"--schedule", "naive", "--microbatches", "1"}, 12'000'000, 0.75}),
    [](const auto& test) { return test.param.name; });

// A step of no length has no path, and no share of it is anything.
TEST(Simulate, TakesAStepThatTakesNoTime)
{
    const traces::test::TemporaryFolder folder;
    const std::string file = folder.file("nothing.strace").string();
    for (const std::vector<std::string>& what :
         {std::vector<std::string>{"--forward", "0", "--backward", "0"}, {"--stage-scale", "0,0,0,0"}, {"--schedule", "forward-only", "--forward", "0"}}) {
        std::vector<std::string> arguments{"simulate"};
        arguments.insert(arguments.end(), what.begin(), what.end());
        const Output shown = stagecraft(arguments);
        EXPECT_EQ(shown.exitCode, 0);
        EXPECT_THAT(shown.out, HasSubstr("the step takes no time"));
        arguments.insert(arguments.end(), {"--json", "--trace", file});
        const Json json = jsonOf(arguments);
        EXPECT_EQ(json["makespan_ns"], 0);
        EXPECT_EQ(json["bubble_makespan"], 0);
        EXPECT_TRUE(json["steady_state"].is_null());
        EXPECT_EQ(stagecraft({"analyze", file}).exitCode, 0);
        EXPECT_EQ(stagecraft({"compare", file, file}).exitCode, 0);
    }
}

TEST(Simulate, GoesInGroupsOfTheSizeAskedFor)
{
    const std::string order =
        stagecraft({"schedule", "--schedule", "interleaved", "--ranks", "2", "--chunks", "2", "--microbatches", "5", "--group", "3"}).out;
    EXPECT_THAT(order, HasSubstr("0F0,0F1,0F2,2F0,2F1,2F2,2B0,0F3"));
}

TEST(Simulate, BalancesSlicesWhoseAttentionGrows)
{
    const auto of = [](const char* slicing, const char* share) {
        return jsonOf({"simulate", "--schedule", "seq1f1b", "--slices", "4", "--slicing", slicing, "--attention-share", share, "--json"})["makespan_ns"]
            .get<long long>();
    };
    EXPECT_EQ(of("balanced", "0.5"), of("equal", "0"));
    EXPECT_GT(of("equal", "50%"), of("equal", "0"));
}

// A step of chimera is as long as the larger of its slots, forwards or halves of backwards: 3m/2 + p - 2 of 2 ms, 3m + p - 2 of 1 ms.
TEST(Simulate, ConcatenatesTheUnitsOfChimera)
{
    const auto of = [](const char* how) {
        return jsonOf({"simulate", "--schedule", "chimera", "--microbatches", "16", "--activation-bytes", "1MiB", "--concatenation", how, "--json"});
    };
    EXPECT_LE(of("doubling")["makespan_ns"], 52'000'000);
    EXPECT_LE(of("halving")["makespan_ns"], 50'000'000);
    EXPECT_GT(of("direct")["makespan_ns"], 52'000'000);
    EXPECT_EQ(of("doubling")["per_rank"][1]["peak_memory_bytes"], 8 << 20);
    EXPECT_EQ(of("halving")["per_rank"][1]["peak_memory_bytes"], 4 << 20);
    EXPECT_EQ(of("halving")["microbatches"], 16);
}

TEST(Simulate, PlansForAMemoryLimit)
{
    const auto spanBubble = [](const char* limit) {
        const Json json = jsonOf({"simulate", "--schedule", "zb-auto", "--activation-bytes", "2MiB", "--wgrad-bytes", "1MiB",
                                  "--memory-limit", limit, "--json"});
        for (const Json& rank : json["per_rank"]) EXPECT_LE(rank["peak_memory_bytes"], 16 << 20);
        return json["bubble_span"].get<double>();
    };
    EXPECT_NEAR(spanBubble("8MiB"), 1.0 / 9, 1e-9); // ZB-1p
    EXPECT_DOUBLE_EQ(spanBubble("16MiB"), 0);       // ZB-2p
}

TEST(Simulate, PrintsTheKeysOfTheContract)
{
    const Json json = jsonOf({"simulate", "--json"});
    EXPECT_THAT(keysOf(json), ElementsAre("schedule", "ranks", "chunks", "microbatches", "makespan_ns", "span_ns", "work_ns",
                                          "bubble_makespan", "bubble_span", "bubble_over_ideal", "steady_state", "critical_path", "per_rank",
                                          "links"));
    ASSERT_EQ(json["per_rank"].size(), 4U);
    EXPECT_EQ(keysOf(json["per_rank"][0]), kRankKeys);
    EXPECT_THAT(keysOf(json["per_rank"][0]["idle_by_cause"]),
                ElementsAre("filling", "draining", "transfer", "waiting", "memory", "host", "unexplained"));
}

// ZB-H2, p=4, m=8: a step takes 27 slots and each rank is full for 24 (arXiv 2401.10241 sec. 5.3).
TEST(Simulate, HasStepsFollowEachOther)
{
    const std::vector<std::string> step{"simulate", "--json", "--schedule", "zb-h2", "--steps", "3"};
    EXPECT_EQ(jsonOf(step)["step_period_ns"], 24'000'000);
    std::vector<std::string> held = step;
    held.emplace_back("--barrier");
    const Json json = jsonOf(held);
    EXPECT_EQ(json["step_period_ns"], 27'000'000);
    ASSERT_EQ(json["steps"].size(), 3U);
    EXPECT_EQ(json["steps"][2]["begin_ns"], 54'000'000);
    EXPECT_EQ(json["makespan_ns"], 27'000'000);
}

// One rank, so that its steps begin where the others' do: the median of the distances behind the first step, in which a pipeline fills.
TEST(Simulate, TellsTheMedianTimeFromStepToStep)
{
    const Json json = jsonOf({"simulate", "--json", "--ranks", "1", "--steps", "5", "--jitter", "30%"});
    std::vector<long long> distances;
    for (std::size_t i = 2; i < 5; ++i)
        distances.push_back(json["steps"][i]["begin_ns"].get<long long>() - json["steps"][i - 1]["begin_ns"].get<long long>());
    std::sort(distances.begin(), distances.end());
    EXPECT_EQ(json["step_period_ns"], distances[1]);
    EXPECT_LT(distances[0], distances[2]);
}

TEST(Simulate, TellsWhatGoesOverEachLink)
{
    const Json links = jsonOf({"simulate", "--json", "--boundary-bytes", "1MiB", "--ranks-per-node", "2"})["links"];
    ASSERT_EQ(links.size(), 6U); // there and back between neighbours
    EXPECT_EQ(links[2]["from"], 1);
    EXPECT_EQ(links[2]["to"], 2);
    EXPECT_EQ(links[2]["between_nodes"], true);
    EXPECT_EQ(links[0]["between_nodes"], false);
    EXPECT_EQ(links[0]["messages"], 8);
    EXPECT_EQ(links[0]["bytes"], 8 << 20);
    EXPECT_DOUBLE_EQ(links[0]["required_bytes_per_s"].get<double>(), (1 << 20) / 1e-3); // a forward takes 1 ms
    EXPECT_DOUBLE_EQ(links[0]["mean_bytes_per_s"].get<double>(), (8 << 20) / 33e-3);
}

// The last rank has twice the time for everything: the others wait for it, m (F + B) * 2 and the way to it and back.
TEST(Simulate, SlowsARank)
{
    EXPECT_EQ(jsonOf({"simulate", "--json", "--rank-scale", "1,1,1,2"})["makespan_ns"], 8 * 6'000'000 + 3 * 3'000'000);
    EXPECT_EQ(jsonOf({"simulate", "--json", "--late-start", "0,0,0,10ms"})["makespan_ns"], 33'000'000 + 7'000'000);
}

TEST(Simulate, ComputesAgainWhatWasNotKept)
{
    const Json json = jsonOf({"simulate", "--json", "--schedule", "gpipe", "--recompute", "full", "--activation-bytes", "1MiB"});
    EXPECT_EQ(json["makespan_ns"], 41'000'000);
    EXPECT_EQ(json["per_rank"][0]["busy_ns"], 8 * 4'000'000);
    EXPECT_EQ(json["per_rank"][0]["peak_memory_bytes"], 1 << 20);
}

// GPipe hands everything over in one order, so that no send waits for ever; its ranks wait for each other more.
TEST(Simulate, LetsSendsWaitForTheirReceipt)
{
    EXPECT_GE(jsonOf({"simulate", "--json", "--schedule", "gpipe", "--send", "rendezvous"})["makespan_ns"].get<long long>(), 33'000'000);
    EXPECT_EQ(jsonOf({"simulate", "--json", "--schedule", "gpipe", "--send", "channel"})["makespan_ns"], 33'000'000);
}

TEST(Simulate, TellsEachRanksIdleTimeByCauses)
{
    const Json json = jsonOf({"simulate", "--json", "--latency", "100us", "--activation-bytes", "64MiB"});
    for (const Json& rank : json["per_rank"]) {
        long long sum = 0;
        for (const Json& cause : rank["idle_by_cause"]) sum += cause.get<long long>();
        EXPECT_EQ(sum, rank["idle_ns"]);
        EXPECT_EQ(rank["idle_ns"], json["makespan_ns"].get<long long>() - rank["busy_ns"].get<long long>());
        // 1F1B keeps p - r micro-batches alive on rank r
        EXPECT_EQ(rank["peak_activations"], 4 - rank["rank"].get<int>());
        EXPECT_EQ(rank["peak_memory_bytes"], (4 - rank["rank"].get<int>()) * (64LL << 20));
    }
    EXPECT_EQ(json["work_ns"], 24'000'000);
    EXPECT_NEAR(json["bubble_over_ideal"].get<double>(), json["makespan_ns"].get<double>() / 24e6 - 1, 1e-12);
}

TEST(Simulate, TellsTheWeightVersionsOfAsynchronousSchedules)
{
    const Json pipeDream = jsonOf({"simulate", "--schedule", "pipedream", "--microbatches", "16", "--json"});
    const Json doubled = jsonOf({"simulate", "--schedule", "pipedream-2bw", "--microbatches", "16", "--group", "5", "--json"});
    for (int r = 0; r < 4; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        EXPECT_EQ(pipeDream["per_rank"][rank]["weight_versions"], 4 - r);
        EXPECT_EQ(pipeDream["per_rank"][rank]["staleness"], 3 - r);
        EXPECT_EQ(doubled["per_rank"][rank]["weight_versions"], 2);
        EXPECT_EQ(doubled["per_rank"][rank]["staleness"], 1);
    }
    EXPECT_THAT(stagecraft({"simulate", "--schedule", "pipedream"}).out,
                AllOf(HasSubstr("an update of the weights after every micro-batch"), HasSubstr("weight versions"), HasSubstr("staleness")));
    EXPECT_THAT(stagecraft({"simulate", "--schedule", "pipedream-2bw"}).out, HasSubstr("after every 4 micro-batches"));
}

TEST(Simulate, TellsWhatMakesUpThePeakOfMemory)
{
    const Json json = jsonOf({"simulate", "--json", "--activation-bytes", "64MiB"});
    const Json& first = json["per_rank"][0];
    EXPECT_EQ(first["peak_memory_ns"], 3'000'000) << "the fourth forward";
    EXPECT_EQ(first["peak_memory_by_class"]["activations"], 256LL << 20);
    EXPECT_EQ(first["peak_memory_by_class"]["weights"], 0);
    ASSERT_EQ(first["peak_memory_held"].size(), 4U);
    EXPECT_EQ(first["peak_memory_held"][3], (Json{{"forward", "0F3"}, {"bytes", 64LL << 20}, {"until", "backward"}}));
    EXPECT_TRUE(first["runs_out_ns"].is_null());
    EXPECT_THAT(stagecraft({"simulate", "--activation-bytes", "64MiB"}).out, HasSubstr("0F0 to 0F3"));

    const Json without = jsonOf({"simulate", "--json"})["per_rank"][0];
    EXPECT_TRUE(without["peak_memory_ns"].is_null());
    EXPECT_TRUE(without["peak_memory_by_class"].is_null());
}

// 1F1B takes F + B for a micro-batch once it is full; GPipe never alternates. A path without waits is as long as the step.
TEST(Simulate, TellsTheSteadyStateAndTheCriticalPath)
{
    const Json json = jsonOf({"simulate", "--json", "--latency", "0.5ms", "--microbatches", "32"});
    EXPECT_DOUBLE_EQ(json["steady_state"]["microbatch_period_ns"].get<double>(), 3'750'000) << "F + B + 2(p-1)/p transfers";
    EXPECT_NEAR(json["steady_state"]["bubble"].get<double>(), 0.2, 1e-9);
    EXPECT_EQ(json["critical_path"]["transfer_ns"], (2 * 3 * 32 / 4 + 2 * 2) * 500'000);
    EXPECT_EQ(json["critical_path"]["compute_ns"].get<long long>() + json["critical_path"]["transfer_ns"].get<long long>(),
              json["makespan_ns"].get<long long>());
    EXPECT_TRUE(jsonOf({"simulate", "--json", "--schedule", "gpipe"})["steady_state"].is_null());
    EXPECT_THAT(stagecraft({"simulate", "--latency", "0.5ms", "--microbatches", "32"}).out, AllOf(HasSubstr("steady state"), HasSubstr("critical path")));
}

TEST(Simulate, SplitsTheStepIntoAWaterfall)
{
    const Json json = jsonOf({"simulate", "--json", "--waterfall", "--latency", "0.5ms"})["waterfall"];
    EXPECT_EQ(json["step_ns"], 41'000'000);
    EXPECT_EQ(json["measured"], false);
    EXPECT_EQ(json["bars"], (Json{{"ideal_work", 24'000'000}, {"structure", 9'000'000}, {"imbalance", 0},
                                  {"communication", 8'000'000}, {"overhead", 0}}));
    EXPECT_FALSE(jsonOf({"simulate", "--json"}).contains("waterfall")) << "it takes four more simulations";
    EXPECT_THAT(stagecraft({"simulate", "--waterfall"}).out, AllOf(HasSubstr("structure of the schedule"), HasSubstr("27.3 %")));

    const traces::test::TemporaryFolder folder;
    const std::string file = folder.file("simulated.strace");
    ASSERT_EQ(stagecraft({"simulate", "--latency", "0.5ms", "--trace", file}).exitCode, 0);
    EXPECT_EQ(jsonOf({"analyze", file, "--json", "--waterfall"})["waterfall"]["bars"], json["bars"]);
    EXPECT_THAT(stagecraft({"analyze", file, "--waterfall"}).out, HasSubstr("structure of the schedule"));
}

TEST(Simulate, LabelsTheThreeBubblesForPeople)
{
    const Output output = stagecraft({"simulate"});
    EXPECT_EQ(output.exitCode, 0);
    EXPECT_THAT(output.out,
                AllOf(HasSubstr("33 ms"), HasSubstr("27.27 %"), HasSubstr("37.5 %"), HasSubstr("bubble_makespan"),
                      HasSubstr("bubble_span"), HasSubstr("bubble_over_ideal"), HasSubstr("waiting for stage")));
}

TEST(Simulate, TakesAPlanFileAndItsChanges)
{
    const Json preset = jsonOf({"simulate", "gpt-small", "--json"});
    const Json changed = jsonOf({"simulate", "gpt-small", "--ranks", "4", "--schedule", "gpipe", "--json"});
    EXPECT_EQ(preset["ranks"], 2);
    EXPECT_EQ(changed["ranks"], 4);
    EXPECT_EQ(changed["schedule"], "gpipe");
    const std::string file = std::string(STAGECRAFT_SOURCE_DIR) + "/resources/plans/gpt-small.plan.json";
    EXPECT_EQ(jsonOf({"simulate", file, "--json"}), preset);
}

// gpt-small: 8 micro-batches on 2 ranks, times from its model. A backward has twice the matrix products of a forward.
TEST(Simulate, AssumesTheOtherTimeWhereTheModelGaveBoth)
{
    const auto work = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"simulate", "--json"});
        return jsonOf(arguments)["work_ns"].get<long long>();
    };
    EXPECT_EQ(work({"gpt-small", "--forward", "3ms"}), 8 * 9'000'000);
    EXPECT_EQ(work({"gpt-small", "--backward", "4ms"}), 8 * 6'000'000);
    EXPECT_EQ(work({"gpt-small", "--input-grad", "1ms", "--weight-grad", "3ms"}), 8 * 6'000'000);
    EXPECT_EQ(work({"gpt-small", "--forward", "3ms", "--backward", "4ms"}), 8 * 7'000'000);
    EXPECT_EQ(work({"--forward", "3ms"}), 8 * 5'000'000) << "without a plan the backward takes 2 ms";
}

TEST(Simulate, TakesAScheduleFromAFile)
{
    const traces::test::TemporaryFolder folder;
    const std::string file = folder.file("mine.schedule");
    ASSERT_EQ(stagecraft({"schedule", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "3", "--out", file}).exitCode,
              0);
    const Json custom = jsonOf({"simulate", "--schedule", file, "--json"});
    const Json generated = jsonOf({"simulate", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "3", "--json"});
    EXPECT_EQ(custom["schedule"], "custom");
    EXPECT_EQ(custom["makespan_ns"], generated["makespan_ns"]);
    EXPECT_EQ(custom["per_rank"], generated["per_rank"]);
}

TEST(Simulate, RepeatsItsJitterForASeed)
{
    const std::vector<std::string> first{"simulate", "--jitter", "5%", "--seed", "7", "--json"};
    const Json one = jsonOf(first);
    EXPECT_EQ(one, jsonOf(first));
    EXPECT_NE(one["makespan_ns"], 33'000'000);
    EXPECT_NE(one["makespan_ns"], jsonOf({"simulate", "--jitter", "5%", "--seed", "8", "--json"})["makespan_ns"]);
}

TEST(Simulate, TakesEverySeedThatAPlanTakes)
{
    const traces::test::TemporaryFolder folder;
    traces::test::spill(folder.file("a.plan.json"), R"({"stagecraft_plan": 1, "costs": {"jitter": 0.05, "seed": 18446744073709551615}})");
    EXPECT_EQ(jsonOf({"simulate", "--jitter", "5%", "--seed", "18446744073709551615", "--json"}), jsonOf({"simulate", folder.file("a.plan.json"), "--json"}));
}

TEST(Simulate, GivesOutTheLayersOfAModelAsAsked)
{
    const Json said = jsonOf({"simulate", "gpt-small", "--partition", "3, 7", "--json"});
    EXPECT_GT(said["makespan_ns"], jsonOf({"simulate", "gpt-small", "--partition", "5,5", "--json"})["makespan_ns"]);
    expectRefusal({"simulate", "gpt-small", "--partition", "3,3,4"}, 2, "it has 3 entries, but 2 ranks with 1 chunk make 2 stages");
    expectRefusal({"simulate", "gpt-small", "--partition", "3,3"}, 2, "it gives out 6 layers, the model has 10");
    expectRefusal({"simulate", "gpt-small", "--partition", "10,0"}, 2, "--partition");
}

TEST(Simulate, PartitionsByARuleOrALayoutAndTellsBoth)
{
    const auto of = [](const char* partition) { return jsonOf({"simulate", "gpt-small", "--ranks", "4", "--partition", partition, "--json"})["partition"]; };
    EXPECT_EQ(of("uniform"), Json::parse(R"({"layers":[2,2,3,3],"rule":"uniform","layout":"Et|tt|t*3|ttL"})"));
    EXPECT_EQ(of("Et*3|(tt|)*2,tL"), Json::parse(R"({"layers":[4,2,2,2],"rule":null,"layout":"Et*3|(tt|)*2,tL"})"));
    // the first stage of 1F1B has four micro-batches in flight, the last one
    const Json memory = of("memory")["layers"];
    EXPECT_LT(memory.front(), memory.back());
    expectRefusal({"simulate", "gpt-small", "--partition", "Ett|t*6L|"}, 2, "leaves stage 2 empty");
    expectRefusal({"simulate", "gpt-small", "--partition", "Ett|t*6,L|"}, 2, "--partition Ett|t*6,L|");
    expectRefusal({"simulate", "gpt-small", "--partition", "evenly"}, 2, "flops, uniform, parameters, time, memory");
    expectRefusal({"simulate", "gpt-small", "--partition", "time"}, 2, "measured costs, and the plan has none");
}

} // namespace

} // namespace stagecraft::cli::test
