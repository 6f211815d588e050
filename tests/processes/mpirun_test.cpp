// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/process.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/trace_file.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace stagecraft::cli::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class UnderMpirun : public testing::Test {
protected:
    UnderMpirun()
    {
        // mpirun does not run for root, nor with more processes than cores, unless it is told to
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }

    using Arguments = std::vector<std::string>;
    [[nodiscard]] static Arguments command(int processes, const Arguments& arguments, const Arguments& ofMpi = {})
    {
        Arguments line{"/usr/bin/env", "mpirun", "--oversubscribe", "-np", std::to_string(processes)};
        line.insert(line.end(), ofMpi.begin(), ofMpi.end());
        line.push_back(program());
        line.insert(line.end(), arguments.begin(), arguments.end());
        return line;
    }
    static Output mpirun(int processes, const Arguments& arguments, const Arguments& ofMpi = {}) { return Process(command(processes, arguments, ofMpi)).finish(); }

    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name).string(); }
    [[nodiscard]] std::vector<std::string> files() const { return folder_.names(); }

private:
    traces::test::TemporaryFolder folder_;
};

std::size_t timesIn(const std::string& text, const std::string& part)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST_F(UnderMpirun, RunsHelloInTwoProcessesAsInThreads)
{
    const Output run = mpirun(2, {"run", "hello", "--mode", "processes", "--steps", "3", "--check", "all", "--json", "--trace", file("run.strace")});
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const Json result = Json::parse(run.out); // said once
    EXPECT_EQ(result["mode"], "processes");
    EXPECT_EQ(result["gradient_check"], "bitwise");
    EXPECT_EQ(result["steps"], 3);
    EXPECT_EQ(result["per_rank"].size(), 2U);
    EXPECT_TRUE(result["clocks"].empty()); // one host, one clock
    EXPECT_EQ(result["loss"], Json::parse(stagecraft({"run", "hello", "--mode", "threads", "--steps", "3", "--json"}).out)["loss"]);

    EXPECT_THAT(files(), testing::ElementsAre("run.strace")); // the parts are in it
    const traces::Trace trace = traces::loadTrace(file("run.strace")).value();
    EXPECT_EQ(trace.steps().size(), 3U);
    EXPECT_EQ(trace.info.label, traces::TraceLabel::Measured);
    EXPECT_TRUE(trace.notes().empty());
    EXPECT_EQ(trace.clockReadings().size(), 2U);
    const Json figures = Json::parse(stagecraft({"analyze", file("run.strace"), "--json"}).out);
    EXPECT_EQ(figures["ranks"], 2);
    EXPECT_EQ(figures["steps"].size(), 3U);
}

TEST_F(UnderMpirun, RunsTwoDirectionsInFourProcessesAndSumsTheirGradients)
{
    const Output run = mpirun(4, {"run", "mlp", "--mode", "processes", "--schedule", "dualpipe", "--ranks", "4", "--microbatches", "8", "--steps", "2",
                                  "--check", "all", "--json", "--trace", file("run.json.gz")});
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(Json::parse(run.out)["gradient_check"], "bitwise");
    EXPECT_THAT(files(), testing::ElementsAre("run.json.gz"));
    EXPECT_EQ(traces::loadTrace(file("run.json.gz")).value().info.ranks, 4);
}

TEST_F(UnderMpirun, RunsTwoReplicasInFourProcessesAsInThreads)
{
    const std::vector<std::string> plan{"mlp", "--ranks", "2", "--replicas", "2", "--steps", "2", "--check", "all", "--json"};
    Arguments inProcesses{"run", "--mode", "processes", "--trace", file("run.strace")};
    inProcesses.insert(inProcesses.begin() + 1, plan.begin(), plan.end());
    Arguments inThreads{"run", "--mode", "threads"};
    inThreads.insert(inThreads.begin() + 1, plan.begin(), plan.end());
    for (const Arguments& ofMpi : {Arguments{}, Arguments{"--mca", "btl", "tcp,self"}}) {
        const Output run = mpirun(4, inProcesses, ofMpi);
        ASSERT_EQ(run.exitCode, 0) << run.err;
        const Json result = Json::parse(run.out);
        EXPECT_EQ(result["gradient_check"], "bitwise");
        EXPECT_EQ(result["per_rank"].size(), 4U);
        EXPECT_EQ(result["loss"], Json::parse(stagecraft(inThreads).out)["loss"]);
        EXPECT_THAT(files(), testing::ElementsAre("run.strace"));
        EXPECT_TRUE(traces::loadTrace(file("run.strace")).value().notes().empty());
    }
}

// Where messages go over a network, those of some ten KB are overtaken by smaller ones that were sent after them.
TEST_F(UnderMpirun, FindsTheGradientsRightOverTcp)
{
    const Output run = mpirun(2, {"run", "mlp", "--ranks", "2", "--mode", "processes", "--schedule", "interleaved", "--chunks", "2", "--check", "all", "--steps", "3", "--json"},
                              {"--mca", "btl", "tcp,self"});
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(Json::parse(run.out)["gradient_check"], "bitwise");
}

TEST_F(UnderMpirun, SaysWhatToDoWhereTheNumbersDiffer)
{
    const Output run = mpirun(3, {"run", "hello", "--mode", "processes"});
    EXPECT_EQ(run.exitCode, 2);
    EXPECT_EQ(timesIn(run.err, "the plan has 2 ranks, and mpirun has started 3 processes: mpirun -np 2 stagecraft-cli run PLAN --mode processes"), 1U)
        << run.err;
    const Output alone = stagecraft({"run", "hello", "--mode", "processes"});
    EXPECT_EQ(alone.exitCode, 2); // an option asks for what it takes mpirun for
    EXPECT_THAT(alone.err, HasSubstr("mpirun -np 2 stagecraft-cli run PLAN --mode processes"));
}

// Options that ask for what cannot be are wrong use here as anywhere; a file that cannot be had is none.
TEST_F(UnderMpirun, EndsWithTheCodesOfARunInOneProcess)
{
    const auto codes = [&](const Arguments& options) {
        Arguments line{"run", "hello", "--steps", "1", "--mode", "threads"};
        line.insert(line.end(), options.begin(), options.end());
        const int alone = stagecraft(line).exitCode;
        line[5] = "processes";
        return std::pair(alone, mpirun(2, line).exitCode);
    };
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    EXPECT_EQ(codes({"--device", "cuda"}), std::pair(2, 2));
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(codes({"--clip-norm", "0.1", "--schedule", "pipedream"}), std::pair(2, 2));
    EXPECT_EQ(codes({"--resume", file("nowhere")}), std::pair(1, 1));
}

TEST_F(UnderMpirun, DoesNotRunAPlanOnceForEachProcess)
{
    const Output run = mpirun(2, {"run", "hello"});
    EXPECT_EQ(run.exitCode, 2);
    EXPECT_EQ(timesIn(run.err, "give --mode processes"), 1U) << run.err;
    EXPECT_TRUE(run.out.empty());
    const Output unknown = mpirun(2, {"run", "nosuchplan", "--mode", "processes"});
    EXPECT_EQ(timesIn(unknown.err, "nosuchplan"), 1U) << unknown.err; // rank 0 alone says it
}

TEST_F(UnderMpirun, StartsNoneWhereOneCannotWriteItsPartOfTheTrace)
{
    std::filesystem::create_directory(file("run.rank1.strace"));
    const Output run = mpirun(2, {"run", "hello", "--mode", "processes", "--trace", file("run.strace")}, {"--timeout", "60"});
    EXPECT_EQ(run.exitCode, 1);
    EXPECT_EQ(timesIn(run.err, "stagecraft-cli: rank 1: cannot write " + file("run.rank1.strace")), 1U) << run.err;
    EXPECT_THAT(files(), testing::ElementsAre("run.rank1.strace")); // and leaves nothing behind
}

// Neither the whole of an older run, nor the parts of one that lost a rank.
TEST_F(UnderMpirun, LeavesOlderTracesAloneWhereTheRunFailsBeforeItsFirstAction)
{
    const std::vector<std::string> older{"run.rank0.strace", "run.rank1.strace", "run.strace"};
    for (const std::string& name : older) traces::test::spill(file(name), "an hour of " + name);
    for (const Arguments& why : {Arguments{"--memory", "1MiB"}, Arguments{"--checkpoint", "/proc/nothing"}}) {
        Arguments line{"run", "hello", "--mode", "processes", "--steps", "1", "--trace", file("run.strace")};
        line.insert(line.end(), why.begin(), why.end());
        const Output run = mpirun(2, line);
        EXPECT_EQ(run.exitCode, 1);
        EXPECT_EQ(timesIn(run.err, "stagecraft-cli: nothing ran, and no trace was written\n"), 1U) << run.err;
        EXPECT_THAT(files(), testing::ElementsAreArray(older));
        for (const std::string& name : older) EXPECT_EQ(traces::test::slurp(file(name)), "an hour of " + name);
    }
}

// Each rank starts in a folder of its own, and only rank 0's has the checkpoint.
TEST_F(UnderMpirun, KeepsACheckpointAndNamesTheRankThatCannotReadIt)
{
    const Output kept = mpirun(2, {"run", "hello", "--mode", "processes", "--steps", "2", "--checkpoint", file("runs")});
    ASSERT_EQ(kept.exitCode, 0) << kept.err;
    EXPECT_THAT(files(), testing::ElementsAre("runs"));
    const Output goneOn = mpirun(2, {"run", "hello", "--mode", "processes", "--steps", "4", "--resume", file("runs"), "--json"});
    ASSERT_EQ(goneOn.exitCode, 0) << goneOn.err;
    const Json loss = Json::parse(stagecraft({"run", "hello", "--mode", "threads", "--steps", "4", "--json"}).out)["loss"];
    EXPECT_EQ(Json::parse(goneOn.out)["loss"], Json::array({loss[2], loss[3]}));

    std::filesystem::create_directory(file("elsewhere"));
    const Arguments run{program(), "run", "hello", "--mode", "processes", "--steps", "4", "--resume", "runs"};
    Arguments line{"/usr/bin/env", "mpirun", "--oversubscribe", "--timeout", "60"};
    for (const std::string& folder : {file(""), file("elsewhere")}) {
        if (line.back() == "runs") line.emplace_back(":");
        line.insert(line.end(), {"-np", "1", "--wdir", folder});
        line.insert(line.end(), run.begin(), run.end());
    }
    const Output apart = Process(line).finish();
    EXPECT_EQ(apart.exitCode, 1);
    EXPECT_EQ(timesIn(apart.err, "stagecraft-cli: rank 1: run.resume: cannot read runs: it does not exist"), 1U) << apart.err;
}

// The process of a rank that mpirun has started, by the environment that it gave it.
std::optional<pid_t> processOf(const std::string& job, int rank)
{
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::stringstream environment, line;
        environment << std::ifstream(entry.path() / "environ").rdbuf();
        line << std::ifstream(entry.path() / "cmdline").rdbuf();
        const std::string variables = '\0' + environment.str();
        if (variables.find('\0' + ("OMPI_COMM_WORLD_RANK=" + std::to_string(rank)) + '\0') == std::string::npos) continue;
        if (line.str().find(job) != std::string::npos) return static_cast<pid_t>(std::stoi(name));
    }
    return std::nullopt;
}

TEST_F(UnderMpirun, SaysWhichRankWasKilledAndKeepsWhatAllWroteOfTheTrace)
{
    const std::string job = file("run.strace");
    Process run(command(3, {"run", "mlp", "--ranks", "3", "--mode", "processes", "--steps", "1000000", "--check", "off", "--trace", job}));
    const auto grown = [&](int rank) {
        std::error_code none;
        const auto size = std::filesystem::file_size(file("run.rank" + std::to_string(rank) + ".strace"), none);
        return !none && size > 20'000;
    };
    while (!grown(0) || !grown(1) || !grown(2)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::optional<pid_t> victim = processOf(job, 2);
    ASSERT_TRUE(victim);
    ::kill(*victim, SIGKILL);
    const Output output = run.finish();
    EXPECT_NE(output.exitCode, 0);
    EXPECT_THAT(output.err, HasSubstr("stagecraft-cli: rank 2 died"));

    EXPECT_THAT(files(), testing::ElementsAre("run.rank0.strace", "run.rank1.strace", "run.rank2.strace"));
    const Output joined = stagecraft({"convert", file("run.rank0.strace"), file("run.rank1.strace"), file("run.rank2.strace"), file("whole.strace")});
    EXPECT_EQ(joined.exitCode, 0) << joined.err;
    const traces::Trace trace = traces::loadTrace(file("whole.strace")).value();
    EXPECT_GT(trace.steps().size(), 0U);
    for (int r = 0; r < 3; ++r) EXPECT_GT(trace.lane(*trace.findLane(traces::Rank{r}, traces::LaneKind::Compute)).size(), 0U);
    EXPECT_EQ(stagecraft({"analyze", file("run.rank0.strace"), file("run.rank2.strace")}).exitCode, 0);
}

// Two runs of one plan, of which each has lost its rank 0.
TEST_F(UnderMpirun, LeavesPartsThatJoinThoseOfTheirRunAlone)
{
    const auto keepParts = [&](const std::string& name) {
        const std::string whole = file(name + ".strace");
        Process run(command(2, {"run", "hello", "--mode", "processes", "--steps", "1000000", "--check", "off", "--trace", whole}));
        const auto grown = [&](const std::string& part) {
            std::error_code none;
            const auto size = std::filesystem::file_size(file(name + part), none);
            return !none && size > 5'000;
        };
        while (!grown(".rank0.strace") || !grown(".rank1.strace")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::optional<pid_t> victim = processOf(whole, 0);
        ASSERT_TRUE(victim);
        ::kill(*victim, SIGKILL);
        EXPECT_NE(run.finish().exitCode, 0);
    };
    keepParts("one");
    keepParts("two");
    const Output joined = stagecraft({"analyze", file("two.rank0.strace"), file("one.rank1.strace")});
    EXPECT_EQ(joined.exitCode, 1);
    EXPECT_EQ(joined.out, "");
    EXPECT_THAT(joined.err, HasSubstr(file("two.rank0.strace") + " and " + file("one.rank1.strace") + " are of different runs"));
    EXPECT_EQ(stagecraft({"convert", file("one.rank1.strace"), file("one.rank1.json")}).exitCode, 0);
    EXPECT_EQ(stagecraft({"analyze", file("one.rank0.strace"), file("one.rank1.json")}).exitCode, 0) << "in another form too";
    EXPECT_EQ(stagecraft({"analyze", file("two.rank0.strace"), file("one.rank1.json")}).exitCode, 1);
}

TEST_F(UnderMpirun, EndsAllReplicasWhereARankOfOneIsKilled)
{
    const std::string job = file("run.strace");
    Process run(command(4, {"run", "mlp", "--ranks", "2", "--replicas", "2", "--mode", "processes", "--steps", "1000000", "--check", "off", "--trace", job}));
    const auto grown = [&] {
        std::error_code none;
        const auto size = std::filesystem::file_size(file("run.rank3.strace"), none);
        return !none && size > 20'000;
    };
    while (!grown()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::optional<pid_t> victim = processOf(job, 3);
    ASSERT_TRUE(victim);
    ::kill(*victim, SIGKILL);
    const Output output = run.finish();
    EXPECT_NE(output.exitCode, 0);
    EXPECT_THAT(output.err, HasSubstr("stagecraft-cli: rank 3 died"));
}

TEST_F(UnderMpirun, IsFoundByTheDoctor)
{
    const Json json = Json::parse(stagecraft({"doctor", "--json"}).out);
    EXPECT_EQ(json["mpi"]["found"], true);
    EXPECT_THAT(json["mpi"]["version"].get<std::string>(), HasSubstr("MPI"));
}

} // namespace
} // namespace stagecraft::cli::test
