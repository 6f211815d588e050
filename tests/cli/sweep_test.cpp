// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"

#include <fmt/format.h>

namespace stagecraft::cli::test {

namespace {

using testing::HasSubstr;

TEST(Sweep, PrintsAllThreeBubblesOfEachScheduleWithTheFormula)
{
    const Output output = stagecraft({"sweep", "--over", "microbatches=4,8", "--schedules", "gpipe,zb-h1", "--ranks", "4"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    for (const char* text : {"micro-batches m varies, p=4", "GPipe (gpipe)", "ZB-H1 (zb-h1)", "bubble_makespan", "bubble_span",
                             "bubble_over_ideal", "27.27 %", "(p−1)/(m+p−1)", "(p−1)/(3m+p−1)"})
        EXPECT_THAT(output.out, HasSubstr(text));
}

TEST(Sweep, GivesPointsAndFormulasToPrograms)
{
    const Json json = jsonOf({"sweep", "--over", "microbatches=7..9", "--schedules", "1f1b,dualpipe", "--ranks", "4", "--json"});
    EXPECT_EQ(json["quantity"], "microbatches");
    EXPECT_EQ(json["series"][0]["points"][1]["value"], 8);
    EXPECT_EQ(json["series"][0]["points"][1]["makespan_ns"], 33'000'000);
    EXPECT_EQ(json["series"][0]["points"][1]["formulas"]["makespan_ns"]["value"], 33'000'000);
    EXPECT_EQ(json["series"][0]["points"][1]["formulas"]["makespan_ns"]["formula"], "(m+p−1)·(F+B)");
    EXPECT_EQ(json["series"][1]["points"].size(), 1U);
    EXPECT_EQ(json["series"][1]["left_out"].size(), 2U);
    EXPECT_THAT(json["series"][1]["left_out"][0]["reason"].get<std::string>(), HasSubstr("dualpipe"));
}

TEST(Sweep, WritesCsv)
{
    const traces::test::TemporaryFolder folder;
    const std::string file = folder.file("sweep.csv").string();
    EXPECT_EQ(stagecraft({"sweep", "--over", "latency=0,500us", "--microbatches", "8", "--csv", file}).exitCode, 0);
    const std::string text = traces::test::slurp(file);
    EXPECT_THAT(text, testing::StartsWith("schedule,latency,bubble_makespan,"));
    EXPECT_THAT(text, HasSubstr("\r\n1f1b,500000,"));
}

// b* = sqrt(64·1.5/(4·3)) = 2.828 by hand
TEST(Sweep, TellsTheBestMicrobatchSize)
{
    const Output output =
        stagecraft({"sweep", "--over", "microbatch-size=1..64*2", "--batch", "64", "--ranks", "5", "--fixed-cost", "750us"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("fastest: b = 2, "));
    EXPECT_THAT(output.out, HasSubstr("by formula b* = √(B·α/((p−1)·β)) = 2.828"));
}

TEST(Sweep, ScalesWithTheLineOfTheLaw)
{
    const Output strong = stagecraft({"sweep", "--over", "ranks=1,2,4", "--scaling", "strong", "--schedule", "gpipe"});
    EXPECT_EQ(strong.exitCode, 0) << strong.err;
    for (const char* text : {"speed-up", "efficiency", "Amdahl's line with a serial share of 12.5 %", "Strong scaling"})
        EXPECT_THAT(strong.out, HasSubstr(text));
    EXPECT_THAT(stagecraft({"sweep", "--over", "ranks=1,2,4", "--scaling", "weak"}).out, HasSubstr("Gustafson"));
}

TEST(Sweep, TakesAMemoryLimitForTheSchedulesThatPlanByOne)
{
    const Output output = stagecraft({"sweep", "--over", "microbatches=8,16", "--schedules", "1f1b,zb-auto", "--activation-bytes", "1GiB",
                                      "--memory-limit", "4GiB"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
}

#if STAGECRAFT_TEST_WITH_UI
TEST(Sweep, DrawsItsCurves)
{
    const traces::test::TemporaryFolder folder;
    for (const auto& [name, begins] : {std::pair{"a.svg", "<?xml"}, {"b.png", "\x89PNG"}, {"c.pdf", "%PDF"}}) {
        const std::string file = folder.file(name).string();
        const Output output = stagecraft({"sweep", "--over", "microbatches=1..16*2", "--schedules", "gpipe,zb-h1", "--out", file});
        EXPECT_EQ(output.exitCode, 0) << output.err;
        EXPECT_THAT(traces::test::slurp(file), testing::StartsWith(begins));
    }
    const std::string one = folder.file("one.svg").string();
    EXPECT_EQ(stagecraft({"sweep", "--over", "ranks=1..4", "--figure", "bubble_makespan", "--theme", "dark", "--out", one}).exitCode, 0);
    const std::string text = traces::test::slurp(one);
    EXPECT_THAT(text, HasSubstr("bubble of the makespan"));
    EXPECT_THAT(text, HasSubstr("by formula"));
}
#endif

TEST(Sweep, VariesTheMachine)
{
    const Json json = jsonOf({"sweep", "--over", "ranks-per-node=1,2,4", "--schedule", "gpipe", "--node-latency", "500us", "--json"});
    EXPECT_EQ(json["quantity"], "ranks-per-node");
    EXPECT_EQ(json["series"][0]["points"][0]["makespan_ns"], 36'000'000);
    EXPECT_EQ(json["series"][0]["points"][1]["makespan_ns"], 34'000'000);
    EXPECT_EQ(json["series"][0]["points"][2]["makespan_ns"], 33'000'000);
    const Output flat = stagecraft({"sweep", "--over", "replicas=1..4*2"});
    EXPECT_EQ(flat.exitCode, 0) << flat.err;
    EXPECT_THAT(flat.out, HasSubstr("the sums of their gradients take no time"));
}

TEST(Sweep, RefusesWhatItWouldLeaveAlone)
{
    for (const auto& [option, value] : {std::pair{"microbatches", "7"}, {"ranks", "4"}, {"latency", "1us"}, {"jitter", "0"}, {"forward", "1ms"}})
        expectRefusal({"sweep", "--over", fmt::format("{0}={1},{1}", option, value), std::string("--") + option, value}, 2, "--over varies");
    expectRefusal({"sweep", "--over", "backward=1ms,2ms", "--input-grad", "1ms", "--weight-grad", "1ms"}, 2, "--over varies");
    expectRefusal({"sweep", "--over", "microbatch-size=1,2", "--batch", "8", "--microbatches", "4"}, 2, "follows from their size");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--schedule", "gpipe", "--schedules", "1f1b"}, 2, "give one of them");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--theme", "dark"}, 2, "give --out FILE too");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--figure", "makespan_ns"}, 2, "give --out FILE too");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--out", "sp.png", "--figure", "speedup"}, 2, "give --scaling strong or weak too");
    expectRefusal({"sweep", "--over", "memory-limit=1MiB..4MiB*2", "--schedules", "1f1b", "--activation-bytes", "1MiB"}, 2, "plans for a limit");
    expectRefusal({"sweep", "--over", "offload=0,0.5", "--schedules", "bpipe"}, 2, "offload");
    expectRefusal({"sweep", "--over", "replicas=1,2", "--replicas", "3"}, 2, "--over varies");
    expectRefusal({"sweep", "--over", "group=1..3", "--schedules", "1f1b"}, 2, "goes in groups");
    expectRefusal({"sweep", "--over", "microbatches=4,8", "--schedules", "1f1b,1f1b"}, 2, "named twice");
}

TEST(Sweep, SaysWhereThereIsNoLineOfTheLaw)
{
    const std::vector<std::string> line{"sweep", "--over", "ranks=2,4", "--scaling", "strong", "--schedule", "hanayo", "--chunks", "2"};
    EXPECT_THAT(stagecraft(line).out, HasSubstr("no line of Amdahl's"));
    EXPECT_TRUE(jsonOf({"sweep", "--over", "ranks=2,4", "--scaling", "strong", "--schedule", "hanayo", "--chunks", "2", "--json"})["series"][0]["serial_share"].is_null());
}

TEST(Sweep, RefusesWhatItCannotVary)
{
    expectRefusal({"sweep"}, 2, "--over");
    expectRefusal({"sweep", "--over", "colour=1..4"}, 2, "'colour' is no quantity of a sweep; there are microbatches");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--scaling", "strong"}, 2, "--scaling is over ranks");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--schedules", "gpip"}, 2, "no such schedule");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--batch", "8"}, 2, "--batch is for --over microbatch-size");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--serial-share", "5%"}, 2, "--scaling strong or weak");
    expectRefusal({"sweep", "--over", "microbatches=1..4", "--out", "curves.gif"}, 2, "written as .png, .svg or .pdf");
    expectRefusal({"sweep", "--over", "microbatches=1,3", "--schedule", "dualpipe"}, 2, "no point of the sweep can be simulated");
}

} // namespace

} // namespace stagecraft::cli::test
