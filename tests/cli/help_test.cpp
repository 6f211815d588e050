// SPDX-License-Identifier: Apache-2.0
//
// What the command line tells about itself: help, list, bench.
#include "tests/cli/expectations.h"
#include "tests/traces/sample_trace.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stagecraft::cli::test {

namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class EveryVerb : public testing::TestWithParam<const char*> {};

TEST_P(EveryVerb, HasHelpWithAnExample)
{
    const Output output = stagecraft({GetParam(), "--help"});
    EXPECT_EQ(output.exitCode, 0);
    EXPECT_EQ(output.err, "");
    EXPECT_THAT(output.out, HasSubstr(std::string("Example:\n  stagecraft-cli ") + GetParam()));
    EXPECT_THAT(stagecraft({"--help"}).out, HasSubstr(std::string("\n  ") + GetParam() + " "));
}

INSTANTIATE_TEST_SUITE_P(Help, EveryVerb,
                         testing::Values("simulate", "sweep", "schedule", "validate", "run", "analyze", "compare", "whatif", "render", "reproduce", "convert", "doctor",
                                         "list", "catalogue", "bench", "worker"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Help, NamesTheExitCodesAndTheVersion)
{
    EXPECT_THAT(stagecraft({"--help"}).out, HasSubstr("Exit codes: 0 done; 1"));
    EXPECT_THAT(stagecraft({"--version"}).out, HasSubstr("stagecraft-cli 0."));
}

std::vector<std::string> namesIn(const Json& list)
{
    std::vector<std::string> names;
    for (const Json& entry : list) names.push_back(entry["name"]);
    return names;
}

TEST(List, NamesSchedulesModelsAndPlans)
{
    // a line each, so that a schedule is added without touching another's
    const std::vector<std::string> schedules{
        "naive",
        "gpipe",
        "gpipe-lifo",
        "1f1b",
        "eager-1f1b",
        "bpipe",
        "interleaved",
        "looped-bfs",
        "zb-h1",
        "zb-h2",
        "zb-auto",
        "interleaved-zb",
        "zb-v",
        "zb-v-auto",
        "v-half",
        "v-min",
        "1f1b-v",
        "dualpipe",
        "dualpipe-v",
        "hanayo",
        "chimera",
        "seq1f1b",
        "pipedream",
        "pipedream-2bw",
        "forward-only",
    };
    EXPECT_EQ(namesIn(jsonOf({"list", "schedules", "--json"})), schedules);
    const std::vector<std::string> plans = namesIn(jsonOf({"list", "plans", "--json"}));
    for (const char* plan : {"hello", "twelve-layers", "mlp", "gpt-small", "gpt-text", "gpt-modern", "resnet", "synthetic", "eight-by-seventy", "imbalanced", "memory-1-rank", "memory-4-ranks", "memory-gpipe",
                             "memory-gpipe-recompute"}) {
        EXPECT_THAT(plans, Contains(plan));
    }
    const Json models = jsonOf({"list", "models", "--json"});
    EXPECT_THAT(namesIn(models), Contains("hello"));
    // Linear 1024→2048 and 2048→1024, each with bias
    EXPECT_EQ(models[0]["parameters"], 1024 * 2048 + 2048 + 2048 * 1024 + 1024);
    EXPECT_THAT(namesIn(jsonOf({"list", "layers", "--json"})),
                ElementsAre("linear", "embedding", "transformer_block", "head", "convolution", "residual_block", "pooled_head", "dropout", "synthetic", "torchscript"));
    EXPECT_THAT(stagecraft({"list", "models"}).out, HasSubstr("residual_block"));
    for (const char* what : {"schedules", "models", "layers", "plans"}) EXPECT_EQ(stagecraft({"list", what}).exitCode, 0);
}

TEST(List, NamesNothingThatSimulateRefuses)
{
    for (const std::string& plan : namesIn(jsonOf({"list", "plans", "--json"}))) {
        EXPECT_EQ(stagecraft({"simulate", plan}).exitCode, 0) << plan;
    }
    for (const Json& family : jsonOf({"list", "schedules", "--json"})) {
        const std::string chunks = std::to_string(family["min_chunks"].get<int>());
        EXPECT_EQ(stagecraft({"simulate", "--schedule", family["name"], "--chunks", chunks}).exitCode, 0) << family;
    }
}

TEST(Bench, MeasuresTheSimulator)
{
    const Json json = jsonOf({"bench", "simulate", "--json"});
    EXPECT_EQ(json["actions"], 2 * 64 * 1024);
    EXPECT_GT(json["actions_per_s"].get<double>(), 1000);
    EXPECT_GE(json["best_actions_per_s"].get<double>(), json["actions_per_s"].get<double>());
}

// A copy of the program in a folder of its own, without what is built beside it.
class LonelyProgram : public testing::Test {
protected:
    LonelyProgram() { std::filesystem::copy_file(program(), copy_); }
    Output lonely(const std::vector<std::string>& arguments) const
    {
        std::vector<std::string> command{copy_};
        command.insert(command.end(), arguments.begin(), arguments.end());
        return Process(command).finish();
    }

    traces::test::TemporaryFolder folder_;
    std::string copy_ = folder_.file("stagecraft-cli");
};

TEST_F(LonelyProgram, SaysWhatDrawsPicturesAndThatItIsMissing)
{
    const Output output = lonely({"render", "hello", folder_.file("hello.png")});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr(folder_.file("stagecraft").string() + " is not there"));
}

TEST_F(LonelyProgram, SaysWhatRunsPlansAndThatItIsMissing)
{
    const Output output = lonely({"run", "hello"});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err,
                HasSubstr(STAGECRAFT_TEST_WITH_TORCH == 1 ? "stagecraft-live is not there" : "-DSTAGECRAFT_WITH_TORCH=ON"));
}

#if STAGECRAFT_TEST_WITH_UI

TEST(Render, DrawsPlansAndTracesWithoutADisplay)
{
    const traces::test::TemporaryFolder folder;
    ASSERT_EQ(stagecraft({"simulate", "--trace", folder.file("a.strace")}).exitCode, 0);
    for (const std::string& source : {std::string("hello"), folder.file("a.strace").string()}) {
        for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
            std::filesystem::remove(folder.file(name));
            const Output output = stagecraft({"render", source, folder.file(name)});
            EXPECT_EQ(output.exitCode, 0) << output.err;
            EXPECT_GT(std::filesystem::file_size(folder.file(name)), 1000U) << name;
        }
    }
    const Output missing = stagecraft({"render", "nowhere.json", folder.file("b.png")});
    EXPECT_EQ(missing.exitCode, 1);
    EXPECT_THAT(missing.err, testing::StartsWith("stagecraft-cli: "));
}

TEST(Render, HandsOnWhatThePictureIsToShow)
{
    const traces::test::TemporaryFolder folder;
    const auto drawn = [&](std::vector<std::string> options) {
        options.insert(options.begin(), {"render", "hello", folder.file("Picture.SVG")});
        const Output output = stagecraft(options);
        EXPECT_EQ(output.exitCode, 0) << output.err;
        std::ifstream in(folder.file("Picture.SVG"));
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    EXPECT_THAT(drawn({"--width", "777"}), HasSubstr("viewBox=\"0 0 777 "));
    EXPECT_NE(drawn({"--theme", "dark"}), drawn({}));
    EXPECT_NE(drawn({"--from", "10us", "--to", "1ms"}), drawn({}));
    EXPECT_NE(drawn({"--step", "0"}), "");
    const auto refused = [&](const std::vector<std::string>& options, int code, const char* reason) {
        std::vector<std::string> line{"render", "hello", folder.file("b.png")};
        line.insert(line.end(), options.begin(), options.end());
        const Output output = stagecraft(line);
        EXPECT_EQ(output.exitCode, code) << options[0];
        EXPECT_THAT(output.err, HasSubstr(reason));
    };
    refused({"--step", "9"}, 1, "there is no step 9");
    refused({"--from", "2ms", "--to", "1ms"}, 1, "the first must be before the second");
    refused({"--from", "soon"}, 2, "soon");
    refused({"--width", "1"}, 2, "--width");
    EXPECT_FALSE(std::filesystem::exists(folder.file("b.png")));
}

TEST(Render, TellsThatATraceIsCutShort)
{
    const traces::test::TemporaryFolder folder;
    ASSERT_EQ(stagecraft({"simulate", "--trace", folder.file("a.strace")}).exitCode, 0);
    std::filesystem::resize_file(folder.file("a.strace"), std::filesystem::file_size(folder.file("a.strace")) - 100);
    const Output converted = stagecraft({"convert", folder.file("a.strace"), folder.file("a.json")});
    const Output rendered = stagecraft({"render", folder.file("a.strace"), folder.file("a.png")});
    EXPECT_EQ(rendered.exitCode, 0);
    EXPECT_NE(rendered.err, "");
    EXPECT_EQ(rendered.err, converted.err); // the same words
}

TEST(Render, TellsWhatConvertTellsOfATrace)
{
    const traces::test::TemporaryFolder folder;
    traces::Trace trace = traces::test::sample();
    trace.addNote("cleared\x1b[2J"); // a terminal must not obey
    trace.addLostEvents(7);
    ASSERT_TRUE(traces::saveJournal(trace, folder.file("a.strace")).ok());
    const Output converted = stagecraft({"convert", folder.file("a.strace"), folder.file("a.json")});
    const Output rendered = stagecraft({"render", folder.file("a.strace"), folder.file("a.svg")});
    EXPECT_EQ(rendered.err, converted.err);
    EXPECT_THAT(rendered.err, HasSubstr("10 events lost"));
    EXPECT_THAT(rendered.err, HasSubstr("\\x1b[2J"));
    EXPECT_THAT(rendered.err, testing::Not(HasSubstr("\x1b")));
}

TEST(Screenshot, RefusesWhatItCannotDraw)
{
    const traces::test::TemporaryFolder folder;
    const auto window = [&](std::vector<std::string> options) {
        options.insert(options.begin(), std::filesystem::path(program()).replace_filename("stagecraft").string());
        return Process(options).finish();
    };
    EXPECT_EQ(window({"--screenshot", folder.file("a.jpg")}).exitCode, 2);
    EXPECT_FALSE(std::filesystem::exists(folder.file("a.jpg")));
    const Output late = window({"--plan", "hello", "--run", "--screenshot", folder.file("a.png"), "--screenshot-at", "step:99"});
    EXPECT_EQ(late.exitCode, 1);
    EXPECT_THAT(late.err, HasSubstr("step:99"));
    const Output small = window({"--plan", "hello", "--size", "320x240", "--screenshot", folder.file("a.png")});
    EXPECT_EQ(small.exitCode, 0);
    EXPECT_THAT(small.err, HasSubstr("the picture is "));
    std::filesystem::create_symlink("/dev/full", folder.file("full.png"));
    const Output full = window({"--plan", "hello", "--screenshot", folder.file("full.png")});
    EXPECT_EQ(full.exitCode, 1);
    EXPECT_THAT(full.err, HasSubstr("disk is full"));
}

#endif

} // namespace

} // namespace stagecraft::cli::test
