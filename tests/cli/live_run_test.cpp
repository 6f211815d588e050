// SPDX-License-Identifier: Apache-2.0
//
// Following a run, with a session that plays back what a test wrote down and looks around in between.
#include "app/cli/live_run.h"

#include "app/cli/journal_file.h"
#include "engine/session/session_message.h"
#include "tests/traces/temporary_folder.h"
#include "traces/format/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

namespace stagecraft::cli::test {

namespace {

using engine::SessionState;
using testing::AllOf;
using testing::HasSubstr;
using traces::Rank;
using traces::Record;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

class PlayedSession final : public engine::Session {
public:
    struct Batch {
        std::function<void()> before; // called before the records are there
        std::vector<Record> records;
    };

    std::deque<Batch> batches;
    std::string refusal;

    Expected<void> start(const engine::Plan&) override
    {
        if (!refusal.empty()) return Error{refusal};
        state_ = SessionState::Running;
        return {};
    }
    void pause() override {}
    void resume() override {}
    void stop() override {}
    void trouble(const engine::StageTrouble&) override {}
    [[nodiscard]] SessionState state() const override { return state_; }
    std::vector<Record> takeRecords() override { return std::exchange(taken_, {}); }
    bool waitForRecords(std::chrono::milliseconds) override
    {
        if (batches.empty()) {
            state_ = SessionState::Finished;
            return false;
        }
        if (batches.front().before) batches.front().before();
        taken_ = std::move(batches.front().records);
        batches.pop_front();
        return !taken_.empty();
    }

private:
    SessionState state_ = SessionState::Idle;
    std::vector<Record> taken_;
};

Record lane(int rank) { return traces::LaneRecord{{.rank = Rank{rank}, .name = "rank"}}; }
// On the first lane.
Record action() { return traces::SliceRecord{traces::LaneId{0}, {.begin = 0, .end = 5, .action = traces::makeAction(traces::ActionKind::Forward, traces::Stage{0}, traces::MicroBatch{0})}}; }
Record failure(const std::string& text)
{
    engine::FailureMessage message;
    message.text = text;
    return traces::SessionRecord{engine::writeMessage(message)};
}

TEST(LiveRun, HasEveryRecordInItsFileBeforeItWaitsForTheNext)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("run.strace");
    PlayedSession session;
    std::vector<std::size_t> lanesOnDisk;
    const auto look = [&] { lanesOnDisk.push_back(traces::loadJournal(file).value().laneCount()); };
    session.batches.push_back({{}, {lane(0), action()}});
    session.batches.push_back({look, {lane(1), lane(2)}});
    session.batches.push_back({look, {}});
    const Expected<LiveRun> run = follow(session, {}, {.journal = file});
    ASSERT_TRUE(run.ok()) << run.error().message;
    EXPECT_THAT(lanesOnDisk, testing::ElementsAre(1, 3));
    EXPECT_EQ(run.value().state, SessionState::Finished);
    EXPECT_EQ(run.value().trace.laneCount(), 3U);
    EXPECT_FALSE(run.value().journalFault);
}

TEST(LiveRun, TellsOfAFullDiskAtOnceAndGoesOn)
{
    PlayedSession session;
    std::string toldSoFar;
    session.batches.push_back({{}, {lane(0)}});
    session.batches.push_back({[&] {
                                   toldSoFar = testing::internal::GetCapturedStderr();
                                   testing::internal::CaptureStderr();
                               },
                               {lane(1)}});
    testing::internal::CaptureStderr();
    const Expected<LiveRun> run = follow(session, {}, {.journal = "/dev/full"});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "once is enough";
    EXPECT_THAT(toldSoFar, AllOf(HasSubstr("/dev/full"), HasSubstr("the disk is full")));
    ASSERT_TRUE(run.ok()) << run.error().message;
    EXPECT_TRUE(run.value().journalFault);
    EXPECT_EQ(run.value().trace.laneCount(), 2U);
}

// A run that may not fit into memory could end without another word.
TEST(LiveRun, SaysItsNotesAsTheyComeAndOnce)
{
    PlayedSession session;
    std::string toldSoFar;
    session.batches.push_back({{}, {traces::NoteRecord{"it may not fit"}}});
    session.batches.push_back({[&] {
                                   toldSoFar = testing::internal::GetCapturedStderr();
                                   testing::internal::CaptureStderr();
                               },
                               {lane(0)}});
    testing::internal::CaptureStderr();
    ASSERT_TRUE(follow(session, {}, {}).ok());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(toldSoFar, "stagecraft-cli: the run: it may not fit\n");
}

TEST(LiveRun, SaysWhichWayARunWentWithItsResultAndNotAsAWarning)
{
    PlayedSession session;
    session.batches.push_back({{}, {lane(0), traces::NoteRecord{"by NCCL", traces::NoteKind::Information}}});
    testing::internal::CaptureStderr();
    const Expected<LiveRun> run = follow(session, {}, {});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_TRUE(run.ok());
    EXPECT_THAT(run.value().trace.information(), testing::ElementsAre("by NCCL"));
}

// The first step may have taken most, and the trace has let it go.
TEST(LiveRun, KeepsThePeaksOfGpusThoughOnlyTheLastStepsStay)
{
    PlayedSession session;
    const auto step = [](int number, traces::Bytes used) {
        const traces::TimeNs begin = number * 10;
        return std::vector<traces::Record>{
            traces::SliceRecord{traces::LaneId{0}, {.begin = begin, .end = begin + 5, .step = traces::Step{number}}},
            traces::GpuMemoryRecord{traces::GpuId{0}, begin, {.used = used}},
            traces::StepRecord{{.step = traces::Step{number}, .span = {begin, begin + 5}, .loss = {}}}};
    };
    session.batches.push_back({{}, {lane(0), traces::GpuRecord{{.number = 1}}}});
    for (int i = 0; i < 5; ++i) session.batches.push_back({{}, step(i, i == 0 ? 900 : 500)});
    FollowOptions options;
    options.slices = 1;
    const Expected<LiveRun> run = follow(session, {}, options);
    ASSERT_TRUE(run.ok());
    ASSERT_GT(run.value().droppedSteps, 0U);
    ASSERT_EQ(run.value().gpuPeaks.size(), 1U);
    EXPECT_EQ(run.value().gpuPeaks.front().used, 900);
    EXPECT_EQ(traces::gpuPeaks(run.value().trace).front().used, 500);
}

TEST(LiveRun, LeavesAnOlderTraceAloneWhereTheRunCannotStart)
{
    const TemporaryFolder folder;
    const std::string older = folder.file("older.strace");
    spill(older, "an hour of measuring");
    PlayedSession session;
    session.refusal = "no model";
    EXPECT_FALSE(follow(session, {}, {.journal = older}).ok());
    EXPECT_EQ(slurp(older), "an hour of measuring");
    EXPECT_FALSE(follow(session, {}, {.journal = folder.file("new.strace")}).ok());
    EXPECT_EQ(folder.entries(), 1U) << "no empty file is left behind";
}

// What it was to hold, and what a GPU did while the stages were built, is no action yet.
TEST(LiveRun, LeavesAnOlderTraceAloneWhereTheRunEndsBeforeItsFirstAction)
{
    const TemporaryFolder folder;
    const std::string older = folder.file("older.strace");
    spill(older, "an hour of measuring");
    for (const std::string& file : {older, std::string(folder.file("new.strace"))}) {
        PlayedSession session;
        session.batches.push_back({{}, {lane(0), traces::LaneRecord{{.kind = traces::LaneKind::Stream, .name = "stream 7"}}}});
        session.batches.push_back({{}, {traces::MemoryRecord{.value = 4096}, traces::SliceRecord{traces::LaneId{1}, {.begin = 0, .end = 5}}}});
        session.batches.push_back({[&] { EXPECT_EQ(slurp(older), "an hour of measuring"); }, {failure("no memory is left")}});
        const Expected<LiveRun> run = follow(session, {}, {.journal = file});
        ASSERT_TRUE(run.ok());
        EXPECT_FALSE(run.value().ran);
        EXPECT_FALSE(run.value().journalBegun);
        EXPECT_FALSE(run.value().journalFault);
    }
    EXPECT_EQ(slurp(older), "an hour of measuring");
    EXPECT_EQ(folder.entries(), 1U) << "no empty file is left behind";
}

TEST(LiveRun, WritesWhatCameBeforeItsFirstActionWithIt)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("run.strace");
    PlayedSession session;
    session.batches.push_back({{}, {lane(0), traces::NoteRecord{"it may not fit"}}});
    session.batches.push_back({[&] { EXPECT_EQ(slurp(file), ""); }, {traces::MemoryRecord{.value = 4096}, action()}});
    session.batches.push_back({[&] {
                                   const traces::Trace soFar = traces::loadJournal(file).value();
                                   EXPECT_EQ(soFar.sliceCount(), 1U);
                                   EXPECT_EQ(soFar.memory().size(), 1U);
                                   EXPECT_THAT(soFar.notes(), testing::ElementsAre("it may not fit"));
                               },
                               {}});
    testing::internal::CaptureStderr();
    const Expected<LiveRun> run = follow(session, {}, {.journal = file});
    testing::internal::GetCapturedStderr();
    ASSERT_TRUE(run.ok());
    EXPECT_TRUE(run.value().ran);
    EXPECT_TRUE(run.value().journalBegun);
}

TEST(LiveRun, PutsItsTraceInThePlaceOfALongerOne)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("run.strace");
    spill(file, std::string(10'000, 'x'));
    PlayedSession session;
    session.batches.push_back({{}, {lane(0), action()}});
    ASSERT_TRUE(follow(session, {}, {.journal = file}).ok());
    EXPECT_EQ(traces::loadJournal(file).value().laneCount(), 1U);
    EXPECT_TRUE(traces::loadJournal(file).value().notes().empty());
}

// Whoever opens the trace later is to know why it ends.
TEST(LiveRun, KeepsTheReasonOfAFailureInItsTrace)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("failed.strace");
    PlayedSession session;
    session.batches.push_back({{}, {lane(0), action(), failure("no memory is left")}});
    ASSERT_TRUE(follow(session, {}, {.journal = file}).ok());
    EXPECT_THAT(traces::loadJournal(file).value().notes(), testing::Contains("the run failed: no memory is left"));
}

TEST(LiveRun, LetsNoSecondRunWriteToItsFile)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("one.strace");
    Expected<JournalFile> first = JournalFile::open(file);
    ASSERT_TRUE(first.ok());
    first.value().begin();
    const Expected<JournalFile> second = JournalFile::open(file);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message, HasSubstr("one.strace: another run writes its trace to it at this moment; give another file"));
    EXPECT_TRUE(first.value().close().ok());
    EXPECT_TRUE(JournalFile::open(file).ok());
}

TEST(LiveRun, SaysWhereItCannotWrite)
{
    PlayedSession session;
    const Expected<LiveRun> run = follow(session, {}, {.journal = "/nowhere/run.strace"});
    ASSERT_FALSE(run.ok());
    EXPECT_THAT(run.error().message, AllOf(HasSubstr("/nowhere/run.strace"), HasSubstr("does not exist")));
    EXPECT_EQ(session.state(), SessionState::Idle) << "nothing ran";
}

} // namespace

} // namespace stagecraft::cli::test
