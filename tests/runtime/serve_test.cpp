// SPDX-License-Identifier: Apache-2.0
//
// The worker over pipes, as the window uses it.
#include "engine/session/serve.h"

#include "tests/runtime/run_plan.h"
#include "traces/format/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;

class Pipe {
public:
    Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
    ~Pipe()
    {
        closeReader();
        closeWriter();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    [[nodiscard]] int reader() const { return ends_[0]; }
    [[nodiscard]] int writer() const { return ends_[1]; }
    void closeReader() { closeEnd(ends_[0]); }
    void closeWriter() { closeEnd(ends_[1]); }

private:
    static void closeEnd(int& fd)
    {
        if (fd >= 0) close(fd);
        fd = -1;
    }
    std::array<int, 2> ends_{-1, -1};
};

class ServeTest : public testing::Test {
protected:
    Pipe commands;
    Pipe journal;
    std::unique_ptr<Session> session = makeLocalSession();
    int code = -1;
    std::jthread worker;
    traces::JournalReader reader;
    Outcome outcome;

    void SetUp() override
    {
        worker = std::jthread([this] {
            code = serve(*session, commands.reader(), journal.writer());
            journal.closeWriter();
        });
    }
    void TearDown() override
    {
        commands.closeWriter(); // whatever a test did: the worker ends when its input does
        if (worker.joinable()) worker.join();
    }
    void send(const SessionCommand& command) { sendLine(writeCommand(command)); }
    void sendLine(const std::string& line)
    {
        const std::string text = line + "\n";
        ASSERT_EQ(write(commands.writer(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    // Reads the journal until `done`, or to its end.
    template <class Done>
    void readUntil(Done&& done)
    {
        std::array<char, 65536> buffer{};
        while (!done()) {
            const ssize_t count = read(journal.reader(), buffer.data(), buffer.size());
            if (count <= 0) return;
            std::vector<traces::Record> records;
            const auto fed = reader.feed({buffer.data(), static_cast<std::size_t>(count)}, records);
            ASSERT_TRUE(fed.ok()) << fed.error().message;
            gather(outcome, std::move(records));
        }
    }
    void readToEnd()
    {
        readUntil([] { return false; });
    }
    [[nodiscard]] bool sawEnd() const { return !outcome.states.empty() && finished(outcome.states.back()); }

    static Plan plan(int steps)
    {
        Plan result = preset("mlp");
        result.run.steps = steps;
        result.run.check = CheckMode::Off;
        return result;
    }
};

// Whose first run loses the process its GPUs.
class SpentSession final : public Session {
public:
    Expected<void> start(const Plan&) override
    {
        ended_ = true;
        return {};
    }
    void pause() override {}
    void resume() override {}
    void stop() override {}
    void trouble(const StageTrouble&) override {}
    [[nodiscard]] SessionState state() const override { return ended_ ? SessionState::Failed : SessionState::Idle; }
    [[nodiscard]] std::string spent() const override { return ended_ ? "gone" : ""; }
    std::vector<traces::Record> takeRecords() override { return std::exchange(said_, {}); }
    bool waitForRecords(std::chrono::milliseconds) override { return !said_.empty(); }

private:
    bool ended_ = false;
    std::vector<traces::Record> said_{traces::SessionRecord{writeMessage(StateMessage{SessionState::Failed})}};
};

TEST(Serve, EndsWithItsOwnStatusWhenTheSessionIsSpent)
{
    Pipe commands;
    Pipe journal;
    SpentSession session;
    const std::string line = writeCommand({CommandKind::Start, {}}) + "\n";
    ASSERT_EQ(write(commands.writer(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    EXPECT_EQ(serve(session, commands.reader(), journal.writer()), kSpentStatus); // while its input is open
    std::array<char, 4096> written{};
    EXPECT_GT(read(journal.reader(), written.data(), written.size()), 0);
}

TEST_F(ServeTest, RunsAPlanThatComesInAndSendsItsJournalOut)
{
    send({CommandKind::Start, plan(3)});
    readUntil([&] { return sawEnd(); });
    EXPECT_EQ(outcome.states.back(), SessionState::Finished);
    EXPECT_EQ(outcome.trace.steps().size(), 3U);
    EXPECT_TRUE(outcome.result);
    send({CommandKind::Quit, {}});
    readToEnd();
    worker.join();
    EXPECT_EQ(code, 0);
}

TEST_F(ServeTest, PausesResumesAndStopsByCommand)
{
    send({CommandKind::Start, plan(1'000'000)});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    send({CommandKind::Pause, {}});
    readUntil([&] { return outcome.states.back() == SessionState::Paused; });
    const std::size_t steps = outcome.trace.steps().size();
    send({CommandKind::Resume, {}});
    readUntil([&] { return outcome.trace.steps().size() > steps + 1; });
    send({CommandKind::Stop, {}});
    readUntil([&] { return sawEnd(); });
    EXPECT_EQ(outcome.states.back(), SessionState::Stopped);
}

TEST_F(ServeTest, HoldsAStageByCommandUntilItIsLetGo)
{
    send({CommandKind::Start, plan(1'000'000)});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    send({.kind = CommandKind::Trouble, .plan = {}, .trouble = {.stage = 1, .factor = 2.0, .held = true}});
    send({.kind = CommandKind::Trouble, .plan = {}, .trouble = {.stage = 1, .held = false}});
    const std::size_t steps = outcome.trace.steps().size();
    readUntil([&] { return outcome.trace.steps().size() > steps + 1; }); // it goes on
    send({.kind = CommandKind::Trouble, .plan = {}, .trouble = {.stage = 1, .held = true}});
    send({CommandKind::Stop, {}}); // also while a stage stands still
    readUntil([&] { return sawEnd(); });
    EXPECT_EQ(outcome.states.back(), SessionState::Stopped);
}

TEST_F(ServeTest, AnswersACommandItDoesNotUnderstandAndGoesOn)
{
    sendLine("{\"command\":\"dance\"}");
    readUntil([&] { return outcome.failure.has_value(); });
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("command not understood"));
    send({CommandKind::Start, plan(1)});
    readUntil([&] { return sawEnd(); });
    EXPECT_EQ(outcome.states.back(), SessionState::Finished);
}

TEST_F(ServeTest, EndsTheRunOfAPlanThatCannotBeRead)
{
    sendLine("{\"command\":\"start\",\"plan\":{\"stagecraft_plan\":1,\"run\":{\"steps\":-1}}}");
    readUntil([&] { return sawEnd(); });
    EXPECT_EQ(outcome.states.back(), SessionState::Failed);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("run.steps"));
}

TEST_F(ServeTest, SaysWhyAPlanCannotRun)
{
    Plan empty = plan(1);
    empty.model = {};
    empty.partition = {};
    empty.costs.source = CostSource::Assumed;
    send({CommandKind::Start, empty});
    readUntil([&] { return sawEnd(); });
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->text, testing::HasSubstr("no model"));
    EXPECT_EQ(outcome.states.back(), SessionState::Failed);
}

TEST_F(ServeTest, EndsWhenItsInputEndsDuringARun)
{
    send({CommandKind::Start, plan(1'000'000)});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    commands.closeWriter();
    readToEnd();
    worker.join();
    EXPECT_EQ(code, 0);
    EXPECT_EQ(outcome.states.back(), SessionState::Stopped); // the journal is whole to its last record
    EXPECT_EQ(reader.pendingBytes(), 0U);
}

TEST_F(ServeTest, EndsQuietlyWhenNobodyReadsAnyMore)
{
    send({CommandKind::Start, plan(1'000'000)});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    journal.closeReader();
    worker.join();
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(finished(session->state()));
}

TEST_F(ServeTest, EndsOnATerminationSignalDuringARun)
{
    send({CommandKind::Start, plan(1'000'000)});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    kill(getpid(), SIGTERM);
    readToEnd();
    worker.join();
    EXPECT_EQ(code, 0);
    EXPECT_EQ(outcome.states.back(), SessionState::Stopped);
}

TEST_F(ServeTest, ServesAgainAfterASignalEndedIt)
{
    sendLine("hello?");
    readUntil([&] { return outcome.failure.has_value(); }); // from now on it minds signals
    kill(getpid(), SIGTERM);
    worker.join();
    EXPECT_EQ(code, 0);

    Pipe input;
    Pipe output;
    const std::string start = writeCommand({CommandKind::Start, plan(1)}) + "\n";
    ASSERT_EQ(write(input.writer(), start.data(), start.size()), static_cast<ssize_t>(start.size()));
    input.closeWriter();
    EXPECT_EQ(serve(*session, input.reader(), output.writer()), 0);
    EXPECT_NE(session->state(), SessionState::Idle); // it read the command: the signal was the first call's
}

// The window hangs: it reads nothing, then dies. The pipe is full, yet the worker notices.
TEST_F(ServeTest, EndsWhenAReaderThatStoppedReadingIsGone)
{
    Plan busy = plan(1'000'000);
    busy.pipeline.microbatches = 32;
    send({CommandKind::Start, busy});
    readUntil([&] { return !outcome.trace.steps().empty(); });
    commands.closeWriter();
    journal.closeReader();
    worker.join();
    EXPECT_EQ(code, 0);
}

// Says far more when it is stopped than a pipe holds.
class TalkativeSession final : public Session {
public:
    static constexpr std::size_t kLastWords = 20'000;

    Expected<void> start(const Plan&) override
    {
        state_ = SessionState::Running;
        return {};
    }
    void pause() override {}
    void resume() override {}
    void stop() override { state_ = SessionState::Stopped; }
    void trouble(const StageTrouble&) override {}
    [[nodiscard]] SessionState state() const override { return state_; }
    std::vector<traces::Record> takeRecords() override
    {
        if (state_ != SessionState::Stopped || std::exchange(said_, true)) return {};
        return {kLastWords, traces::NoteRecord{"one of many"}};
    }
    bool waitForRecords(std::chrono::milliseconds) override { return false; }

private:
    std::atomic<SessionState> state_{SessionState::Idle};
    bool said_ = false;
};

class LastWords : public testing::Test {
protected:
    Pipe commands;
    Pipe journal;
    TalkativeSession session;
    int code = -1;
    std::jthread worker;

    void serveWith(std::chrono::milliseconds patience)
    {
        fcntl(journal.writer(), F_SETPIPE_SZ, 4096); // full after each piece
        worker = std::jthread([this, patience] {
            code = serve(session, commands.reader(), journal.writer(), patience);
            journal.closeWriter();
        });
        const std::string line = writeCommand({CommandKind::Start, preset("mlp")}) + "\n";
        ASSERT_EQ(write(commands.writer(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
        std::array<char, 8> magic{};
        ASSERT_EQ(read(journal.reader(), magic.data(), magic.size()), 8); // serves, and has taken the signals over
    }
    [[nodiscard]] std::size_t wordsHeard()
    {
        traces::JournalReader reader;
        std::vector<traces::Record> records;
        EXPECT_TRUE(reader.feed("STRACE1\n", records).ok());
        std::array<char, 1024> buffer{};
        for (ssize_t count = 0; (count = read(journal.reader(), buffer.data(), buffer.size())) > 0;)
            EXPECT_TRUE(reader.feed({buffer.data(), static_cast<std::size_t>(count)}, records).ok());
        EXPECT_EQ(reader.pendingBytes(), 0U);
        return records.size();
    }
};

TEST_F(LastWords, ReachASlowReaderAfterATerminationSignal)
{
    serveWith(std::chrono::hours(1)); // nobody hangs here
    kill(getpid(), SIGTERM);
    EXPECT_EQ(wordsHeard(), TalkativeSession::kLastWords);
    worker.join();
    EXPECT_EQ(code, 0);
}

TEST_F(LastWords, ReachASlowReaderAfterTheEndOfTheCommands)
{
    serveWith(std::chrono::hours(1));
    commands.closeWriter();
    EXPECT_EQ(wordsHeard(), TalkativeSession::kLastWords);
    worker.join();
    EXPECT_EQ(code, 0);
}

TEST_F(LastWords, AreGivenUpWhereTheReaderHangs)
{
    serveWith(std::chrono::milliseconds(1));
    kill(getpid(), SIGTERM);
    worker.join(); // though nobody reads; a hang shows as a time-out of the test
    EXPECT_EQ(code, 0);
}

TEST(Serve, LetsARunGoOnToItsEndWhereTheCommandsAreAFile)
{
    Plan plan = preset("mlp");
    plan.run.steps = 3;
    plan.run.check = CheckMode::Off;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> commands(std::tmpfile(), &std::fclose);
    std::fputs(writeCommand({CommandKind::Start, plan}).c_str(), commands.get()); // its last line without a line end
    std::rewind(commands.get());

    Pipe journal;
    const auto session = makeLocalSession();
    int code = -1;
    std::jthread worker([&] {
        code = serve(*session, fileno(commands.get()), journal.writer());
        journal.closeWriter();
    });
    traces::JournalReader reader;
    std::vector<traces::Record> records;
    std::array<char, 65536> buffer{};
    for (ssize_t count = 0; (count = read(journal.reader(), buffer.data(), buffer.size())) > 0;)
        ASSERT_TRUE(reader.feed({buffer.data(), static_cast<std::size_t>(count)}, records).ok());
    worker.join();
    EXPECT_EQ(code, 0);
    Outcome outcome;
    gather(outcome, std::move(records));
    EXPECT_EQ(outcome.states.back(), SessionState::Finished);
    EXPECT_EQ(outcome.trace.steps().size(), 3U);
}

} // namespace
} // namespace stagecraft::runtime
