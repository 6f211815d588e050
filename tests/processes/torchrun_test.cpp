// SPDX-License-Identifier: Apache-2.0
//
// Processes that know each other by the variables that torchrun gives them; torchrun itself starts them in torchrun_test.sh.
#include "tests/cli/process.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/trace_file.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stagecraft::cli::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// A port of this host; as long as it lives nobody else can have it.
class Port {
public:
    Port()
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(descriptor_, 1), 0);
        EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        number = std::to_string(ntohs(address.sin_port));
    }
    ~Port() { ::close(descriptor_); }
    // To the next that connects and says something, as another program that has the port.
    void answer(const std::string& words) const
    {
        const int connection = ::accept(descriptor_, nullptr, nullptr);
        std::array<char, 64> heard{};
        EXPECT_GT(::recv(connection, heard.data(), heard.size(), 0), 0);
        EXPECT_EQ(::send(connection, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
        ::close(connection);
    }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    std::string number;

private:
    int descriptor_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

// Somebody else may take it before it is used, which the tests would say.
std::string freePort() { return Port().number; }

class WithTorchrunsVariables : public testing::Test {
protected:
    using Arguments = std::vector<std::string>;

    // The variables, and stagecraft-cli with the arguments.
    static std::unique_ptr<Process> start(const Arguments& variables, const Arguments& arguments)
    {
        Arguments line{"/usr/bin/env"};
        line.insert(line.end(), variables.begin(), variables.end());
        line.push_back(program());
        line.insert(line.end(), arguments.begin(), arguments.end());
        return std::make_unique<Process>(line);
    }
    static Output alone(const Arguments& variables, const Arguments& arguments) { return start(variables, arguments)->finish(); }

    static Arguments variablesOf(int rank, int size, const std::string& port)
    {
        return {"RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port};
    }
    // As torchrun without its agent: the last rank first, so that others wait for the first.
    static std::vector<std::unique_ptr<Process>> startAll(int size, const Arguments& arguments, const Arguments& more = {}, const std::string& port = freePort())
    {
        std::vector<std::unique_ptr<Process>> processes(static_cast<std::size_t>(size));
        for (int r = size - 1; r >= 0; --r) {
            Arguments variables = variablesOf(r, size, port);
            variables.insert(variables.end(), more.begin(), more.end());
            processes[static_cast<std::size_t>(r)] = start(variables, arguments);
        }
        return processes;
    }
    // By rank.
    static std::vector<Output> run(int size, const Arguments& arguments, const Arguments& more = {})
    {
        return finish(startAll(size, arguments, more));
    }
    static std::vector<Output> finish(const std::vector<std::unique_ptr<Process>>& processes)
    {
        std::vector<Output> outputs;
        for (const auto& process : processes) outputs.push_back(process->finish());
        return outputs;
    }
    // What a rank says in a terminal of its own.
    static std::string endsWithOthers(int rank) { return "stagecraft-cli: rank " + std::to_string(rank) + " has ended with the others; rank 0 says why\n"; }

    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name).string(); }
    [[nodiscard]] std::vector<std::string> files() const { return folder_.names(); }

private:
    traces::test::TemporaryFolder folder_;
};

TEST_F(WithTorchrunsVariables, RunsHelloInTwoProcessesAsInThreads)
{
    const auto ranks = run(2, {"run", "hello", "--mode", "processes", "--steps", "3", "--check", "all", "--json", "--trace", file("run.strace")});
    ASSERT_EQ(ranks[0].exitCode, 0) << ranks[0].err;
    EXPECT_EQ(ranks[1].exitCode, 0) << ranks[1].err;
    EXPECT_THAT(ranks[1].out + ranks[1].err, IsEmpty()); // rank 0 says it all
    EXPECT_THAT(ranks[0].err, IsEmpty());
    const Json result = Json::parse(ranks[0].out);
    EXPECT_EQ(result["mode"], "processes");
    EXPECT_EQ(result["gradient_check"], "bitwise");
    EXPECT_TRUE(result["clocks"].empty()); // one host, one clock
    EXPECT_EQ(result["loss"], Json::parse(stagecraft({"run", "hello", "--mode", "threads", "--steps", "3", "--json"}).out)["loss"]);

    EXPECT_THAT(files(), testing::ElementsAre("run.strace")); // the parts are in it
    const traces::Trace trace = traces::loadTrace(file("run.strace")).value();
    EXPECT_EQ(trace.steps().size(), 3U);
    EXPECT_EQ(trace.info.ranks, 2);
    EXPECT_EQ(trace.info.label, traces::TraceLabel::Measured);
    EXPECT_TRUE(trace.notes().empty());
    EXPECT_EQ(trace.clockReadings().size(), 2U);
}

TEST_F(WithTorchrunsVariables, RunsTwoDirectionsInFourProcesses)
{
    const auto ranks = run(4, {"run", "mlp", "--mode", "processes", "--schedule", "dualpipe", "--ranks", "4", "--microbatches", "8", "--steps", "2", "--check",
                               "all", "--json"});
    ASSERT_EQ(ranks[0].exitCode, 0) << ranks[0].err;
    EXPECT_EQ(Json::parse(ranks[0].out)["gradient_check"], "bitwise");
}

TEST_F(WithTorchrunsVariables, SaysWhatToDoWhereTheNumbersDiffer)
{
    const auto ranks = run(3, {"run", "hello", "--mode", "processes"});
    for (const Output& rank : ranks) EXPECT_EQ(rank.exitCode, 2);
    EXPECT_THAT(ranks[0].err, HasSubstr("the plan has 2 ranks, and WORLD_SIZE is 3: torchrun --no-python --nproc-per-node 2 stagecraft-cli run PLAN --mode processes"));
    EXPECT_EQ(ranks[1].err, endsWithOthers(1));
    EXPECT_EQ(ranks[2].err, endsWithOthers(2));
}

TEST_F(WithTorchrunsVariables, DoesNotRunAPlanOnceForEachProcess)
{
    const auto ranks = run(2, {"run", "hello"}, {"TORCHELASTIC_RUN_ID=none"});
    for (const Output& rank : ranks) EXPECT_EQ(rank.exitCode, 2);
    EXPECT_THAT(ranks[0].err, HasSubstr("torchrun has started 2 processes, and in mode threads one runs the whole plan: give --mode processes, or start it "
                                        "without torchrun"));
    EXPECT_THAT(ranks[0].out + ranks[1].out + ranks[1].err, IsEmpty()); // torchrun shows what rank 0 says
    // one process is no team
    EXPECT_EQ(alone({"WORLD_SIZE=1"}, {"run", "hello", "--steps", "1"}).exitCode, 0);
}

TEST_F(WithTorchrunsVariables, NamesWhatIsMissingOfThemAndWhatCannotBe)
{
    const Arguments hello{"run", "hello", "--mode", "processes"};
    const auto refusal = [&](const Arguments& variables) {
        const Output output = alone(variables, hello);
        EXPECT_EQ(output.exitCode, 2);
        return output.err;
    };
    EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2"}), HasSubstr("the environment has no MASTER_ADDR, no MASTER_PORT: each process of a run needs RANK, WORLD_SIZE"));
    EXPECT_THAT(refusal({"RANK=0", "MASTER_ADDR=here", "MASTER_PORT=29500"}), HasSubstr("the environment has no WORLD_SIZE:"));
    EXPECT_THAT(refusal({"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=here", "MASTER_PORT=29500"}), HasSubstr("RANK=2 is not allowed in the environment; 0 to 1"));
    EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=two", "MASTER_ADDR=here", "MASTER_PORT=29500"}), HasSubstr("WORLD_SIZE=two is not allowed"));
    EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=here", "MASTER_PORT=70000"}), HasSubstr("MASTER_PORT=70000 is not allowed in the environment; 1 to 65535"));
    for (const std::string together : {"-3", "x", "0", "3", "2 "})
        EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=here", "MASTER_PORT=29500", "LOCAL_WORLD_SIZE=" + together}),
                    HasSubstr("LOCAL_WORLD_SIZE=" + together + " is not allowed in the environment; 1 to 2, the processes on this host; without it, all of them are\n"));
    EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=here", "MASTER_PORT=29500", "TORCHELASTIC_USE_AGENT_STORE=1"}),
                HasSubstr("TORCHELASTIC_USE_AGENT_STORE=1 is not allowed in the environment; True where torchrun"));
    EXPECT_THAT(refusal({"OMPI_COMM_WORLD_SIZE=none"}), HasSubstr("OMPI_COMM_WORLD_SIZE=none is not allowed in the environment; 1 to 16384"));
    EXPECT_THAT(refusal({"PMI_SIZE=2", "MPI_LOCALNRANKS=3"}), HasSubstr("MPI_LOCALNRANKS=3 is not allowed in the environment; 1 to 2, the processes"));
    // they are nothing to a run in one process
    EXPECT_EQ(alone({"WORLD_SIZE=1", "LOCAL_WORLD_SIZE=x", "OMPI_COMM_WORLD_SIZE=none"}, {"run", "hello", "--steps", "1"}).exitCode, 0);
}

TEST_F(WithTorchrunsVariables, SaysThatThePortIsInUse)
{
    const Port taken;
    const Output output = alone({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + taken.number}, {"run", "hello", "--mode", "processes"});
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, HasSubstr("rank 0 cannot have port " + taken.number + " (MASTER_PORT) for the ranks to meet at: Address already in use. Give another"));
}

// One line, at once, and none of c10d's.
TEST_F(WithTorchrunsVariables, SaysWhoseThePortIs)
{
    const Port taken;
    const std::unique_ptr<Process> rank = start({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + taken.number}, {"run", "hello", "--mode", "processes"});
    taken.answer("SSH-2.0-Other_1.0\r\n");
    const Output output = rank->finish();
    EXPECT_EQ(output.exitCode, 1);
    EXPECT_THAT(output.err, StartsWith("stagecraft-cli: the ranks cannot meet at 127.0.0.1:" + taken.number +
                                       " (MASTER_ADDR and MASTER_PORT): another program listens there, which answers \"SSH-2.0-Other_1.0\". Give all ranks another port"));
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1);
}

TEST_F(WithTorchrunsVariables, SaysWhichRankWasKilledAndKeepsWhatAllWroteOfTheTrace)
{
    const auto ranks =
        startAll(3, {"run", "mlp", "--ranks", "3", "--mode", "processes", "--steps", "1000000", "--check", "off", "--trace", file("run.strace")});
    const auto grown = [&](int rank) {
        std::error_code none;
        const auto size = std::filesystem::file_size(file("run.rank" + std::to_string(rank) + ".strace"), none);
        return !none && size > 20'000;
    };
    while (!grown(0) || !grown(1) || !grown(2)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks[2]->signal(SIGKILL);
    const Output first = ranks[0]->finish();
    EXPECT_EQ(first.exitCode, 1);
    EXPECT_THAT(first.err, HasSubstr("stagecraft-cli: rank 2 died"));
    const Output second = ranks[1]->finish();
    EXPECT_EQ(second.exitCode, 1);
    EXPECT_EQ(second.err, endsWithOthers(1));
    ranks[2]->finish();

    EXPECT_THAT(files(), testing::ElementsAre("run.rank0.strace", "run.rank1.strace", "run.rank2.strace"));
    const Output joined = stagecraft({"convert", file("run.rank0.strace"), file("run.rank1.strace"), file("run.rank2.strace"), file("whole.strace")});
    EXPECT_EQ(joined.exitCode, 0) << joined.err;
    EXPECT_GT(traces::loadTrace(file("whole.strace")).value().steps().size(), 0U);
}

// BPipe of so few ranks has nothing to send to a partner's memory, which processes do not reach.
TEST_F(WithTorchrunsVariables, RunsBPipeWhereItMovesNothing)
{
    const auto few = run(2, {"run", "mlp", "--mode", "processes", "--schedule", "bpipe", "--ranks", "2", "--steps", "1"});
    EXPECT_EQ(few[0].exitCode, 0) << few[0].err;
    const auto four = run(4, {"run", "mlp", "--mode", "processes", "--schedule", "bpipe", "--ranks", "4", "--microbatches", "4", "--steps", "1"});
    EXPECT_EQ(four[0].exitCode, 2);
    EXPECT_THAT(four[0].err, HasSubstr("schedule bpipe: it keeps activations in a partner's memory, which mode processes does not reach"));
}

// Who came to another run's meeting point sees whose plan he carries out.
TEST_F(WithTorchrunsVariables, SaysThatRankZeroWasAskedForAnotherRun)
{
    const std::string port = freePort();
    std::vector<std::unique_ptr<Process>> processes;
    processes.push_back(start(variablesOf(0, 2, port), {"run", "--mode", "processes", "hello", "--steps", "1", "--trace", file("run.strace")}));
    processes.push_back(start(variablesOf(1, 2, port), {"run", "mlp", "--mode", "processes", "--ranks", "2", "--shared-links", "--trace", file("other.strace")}));
    const std::vector<Output> ranks = finish(processes);
    EXPECT_EQ(ranks[0].exitCode, 0);
    EXPECT_THAT(ranks[0].err, Not(HasSubstr("was asked for")));
    EXPECT_EQ(ranks[1].exitCode, 0);
    EXPECT_EQ(ranks[1].err, "stagecraft-cli: rank 1 was asked for 'run mlp --mode processes --ranks 2 --shared-links', and rank 0 for 'run hello --mode processes "
                            "--steps 1', which all of them carry out; two runs need a MASTER_PORT each\n");
}

// torchrun's runs may have one store, under one name each.
TEST_F(WithTorchrunsVariables, TellsRunsOfTorchrunApart)
{
    const std::string port = freePort();
    const Arguments hello{"run", "hello", "--mode", "processes", "--steps", "1"};
    Arguments variables = variablesOf(0, 2, port);
    variables.emplace_back("TORCHELASTIC_RUN_ID=first");
    const std::unique_ptr<Process> waiting = start(variables, hello); // its store is what the others meet at
    for (const Output& rank : finish(startAll(2, hello, {"TORCHELASTIC_RUN_ID=second", "TORCHELASTIC_USE_AGENT_STORE=True"}, port)))
        EXPECT_EQ(rank.exitCode, 0) << rank.err;
}

// Whoever is left without rank 0 says so.
TEST_F(WithTorchrunsVariables, EndsWithoutRankZero)
{
    const auto ranks = startAll(2, {"run", "mlp", "--ranks", "2", "--mode", "processes", "--steps", "1000000", "--check", "off", "--trace", file("run.strace")});
    std::error_code none;
    while (std::filesystem::file_size(file("run.rank1.strace"), none) < 20'000 || none) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks[0]->signal(SIGKILL);
    const Output second = ranks[1]->finish();
    EXPECT_EQ(second.exitCode, 1);
    EXPECT_THAT(second.err, HasSubstr("rank 0 died"));
    ranks[0]->finish();
}

} // namespace
} // namespace stagecraft::cli::test
