// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_session.h"
#include "tests/runtime/cupti/fake_session.h"

#include <cupti.h>
#include <gmock/gmock.h>

#include <future>
#include <thread>

namespace stagecraft::runtime {

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using traces::Interval;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

const traces::Work kForward = traces::forward(Stage{1}, MicroBatch{2}).work;

std::string enabled(CUpti_ActivityKind kind) { return "cuptiActivityEnable " + std::to_string(kind); }

TEST(CuptiSession, IsReadyBeforeTheFirstKindIsEnabled)
{
    FakeSession test;
    EXPECT_THAT(test.fake.calls(),
                ElementsAre("cuptiSubscribe_v2", "cuptiActivitySetAttribute 5", "cuptiActivityRegisterTimestampCallback",
                            "cuptiActivityRegisterCallbacks"));
    EXPECT_EQ(test.fake.subscriber(), "stagecraft");
    EXPECT_THAT(test.session->notes(), IsEmpty());
}

TEST(CuptiSession, EnablesWhatTheLevelNeeds)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    EXPECT_THAT(test.callsOf("cuptiActivityEnable"),
                ElementsAre(enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
                            enabled(CUPTI_ACTIVITY_KIND_MEMCPY), enabled(CUPTI_ACTIVITY_KIND_MEMCPY2), enabled(CUPTI_ACTIVITY_KIND_MEMSET),
                            enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)));
    EXPECT_THAT(test.callsOf("cuptiActivityEnableRuntimeApi"), Not(IsEmpty()));
    EXPECT_TRUE(test.session->recordsCalls());
}

TEST(CuptiSession, StaysOffBelowKernels)
{
    FakeSession test;
    for (const TraceLevel level : {TraceLevel::HostSpans, TraceLevel::Events}) {
        ASSERT_TRUE(test.session->record(level, test.take()).ok());
        EXPECT_FALSE(test.session->recording());
        { const WorkScope scope(&test.session->marks(), Step{0}, kForward); }
        test.session->flush();
        test.session->stop();
    }
    EXPECT_THAT(test.callsOf("cuptiActivityEnable"), IsEmpty());
    EXPECT_THAT(test.fake.flushFlags(), IsEmpty());
    EXPECT_EQ(test.batches, 0);
}

TEST(CuptiSession, HandsOnWhatAnActionLaunched)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    {
        const WorkScope scope(&test.session->marks(), Step{3}, kForward);
        test.fake.launch({.name = "_Z4gemmv", .start = 100, .end = 200});
    }
    test.fake.launch({.name = "loader", .start = 210, .end = 220});
    test.session->flush();
    EXPECT_THAT(test.names, ElementsAre("cudaLaunchKernel", "gemm()", "loader"));
    ASSERT_THAT(test.kernels(), SizeIs(1)); // the other waits for a mark
    EXPECT_EQ(unpackWork(test.kernels()[0].work), (MarkedWork{.run = 1, .step = Step{3}, .work = kForward}));
    EXPECT_EQ(test.kernels()[0].call, (Interval{50, 55}));
    test.session->stop();
    test.join.finish(test.joined);
    EXPECT_THAT(test.spans(), ElementsAre(Interval{100, 200}, Interval{210, 220}));
    EXPECT_EQ(test.join.unattributed(), 1);
}

// The trap of live display: one kernel that runs on keeps back all records of its buffer, which is why buffers are small.
TEST(CuptiSession, GetsABufferOnceItsLastKernelHasEnded)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    const WorkScope scope(&test.session->marks(), Step{0}, kForward);
    test.fake.launch({.start = 100, .end = 200});
    const std::uint32_t waiting = test.fake.launch({.name = "ncclRecv"});
    test.session->flush();
    EXPECT_THAT(test.kernels(), IsEmpty());
    std::jthread([&] { test.fake.launch({.start = 110, .end = 120}); }).join(); // of another thread, and its buffer
    test.session->flush();
    EXPECT_THAT(test.joined, SizeIs(0)); // not marked: it waits
    test.fake.complete(waiting, 300, 5'000);
    test.session->flush();
    EXPECT_THAT(test.spans(), ElementsAre(Interval{100, 200}, Interval{300, 5'000}));
}

TEST(CuptiSession, SplitsAndWrapsAreSeenByNobody)
{
    FakeSession test;
    test.fake.setRecordsPerBuffer(1);
    test.fake.setNextCorrelation(0xffff'fffe);
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    for (int i = 0; i < 5; ++i) {
        const WorkScope scope(&test.session->marks(), Step{i}, kForward);
        test.fake.launch({.start = 100U + static_cast<std::uint64_t>(i), .end = 200});
    }
    test.session->stop();
    const std::vector<JoinedActivity> kernels = test.kernels();
    ASSERT_THAT(kernels, SizeIs(5));
    for (int i = 0; i < 5; ++i) {
        const JoinedActivity& each = kernels[static_cast<std::size_t>(i)];
        EXPECT_EQ(std::get<KernelActivity>(each.activity).span.begin, 100 + i);
        EXPECT_EQ(unpackWork(each.work)->step, Step{i});
    }
}

TEST(CuptiSession, CountsWhatIsLost)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    test.fake.drop(17);
    test.fake.launch({.untimed = true});
    test.session->flush();
    EXPECT_EQ(test.counts.dropped, 17);
    EXPECT_EQ(test.counts.untimed, 1);
    test.session->flush();
    EXPECT_EQ(test.counts.dropped, 17);
    test.fake.drop(3);
    test.session->stop();
    EXPECT_EQ(test.counts.dropped, 20);
}

TEST(CuptiSession, CountsBuffersThatItDidNotHave)
{
    CuptiOptions options = FakeSession::byHand();
    options.buffers = {.bufferBytes = 4096, .most = 1};
    FakeSession test(options);
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    test.fake.launch({.start = 100, .end = 200});
    std::jthread([&] { test.fake.launch({.start = 100, .end = 200}); }).join();
    test.session->flush();
    EXPECT_EQ(test.counts.refusedBuffers, 2); // for its call and its kernel
    EXPECT_EQ(test.counts.dropped, 2);
    EXPECT_THAT(sentences(test.counts), Contains(HasSubstr("asked 2 times for a buffer")));
}

TEST(CuptiSession, WaitsAtTheEndForBuffersThatComeLate)
{
    CuptiOptions options = FakeSession::byHand();
    options.lateBuffers = 600'000'000'000;
    FakeSession test(options);
    test.fake.setLate(true);
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    for (int i = 0; i < 100; ++i) {
        const WorkScope scope(&test.session->marks(), Step{i}, kForward);
        test.fake.launch({.start = 100, .end = 200});
        if (i % 10 == 0) test.session->flush();
    }
    test.session->stop();
    EXPECT_THAT(test.kernels(), SizeIs(100));
}

// What did not end is counted: nothing forces CUPTI to give it up while there is a recording, or it would be lost.
TEST(CuptiSession, ForcesCuptiOnceAtTheVeryEnd)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    test.fake.launch({.name = "runs on"});
    test.session->flush();
    test.session->stop();
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    EXPECT_EQ(test.counts.untimed, 0);
    test.session.reset();
    EXPECT_THAT(test.fake.flushFlags(), ElementsAre(0U, 0U, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    EXPECT_EQ(test.counts.untimed, 1);
}

// By the wall's clock, which CUPTI has of its own, instead of the one that it has taken.
TEST(CuptiSession, LeavesOutWhatIsDecadesAhead)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    const WorkScope scope(&test.session->marks(), Step{0}, kForward);
    test.fake.launch({.start = 100, .end = 200, .calledAt = 50});
    test.fake.launch({.start = 1'790'000'000'000'000'000, .end = 1'790'000'000'000'000'100, .calledAt = 60});
    test.session->flush();
    EXPECT_THAT(test.spans(), ElementsAre(Interval{100, 200}));
    EXPECT_EQ(test.counts.impossible, 1);
}

TEST(CuptiSession, PassesOverWhatLiesBetweenTwoRuns)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    EXPECT_EQ(test.session->run(), 1U);
    test.session->stop();
    const std::size_t enabledOnce = test.callsOf("cuptiActivityEnable").size();

    test.fake.launch({.start = 100, .end = 200}); // read at once by the next flush
    test.fake.drop(5);
    test.session->stop();
    test.session->flush();
    test.clock.advance(10'000);
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    EXPECT_EQ(test.session->run(), 2U);
    test.fake.launch({.start = 20'000, .end = 20'100});
    test.session->stop();
    test.join.finish(test.joined);
    EXPECT_THAT(test.spans(), ElementsAre(Interval{20'000, 20'100}));
    EXPECT_EQ(test.counts.dropped, 0);
    EXPECT_THAT(test.callsOf("cuptiActivityEnable"), SizeIs(enabledOnce)); // once is enough
}

TEST(CuptiSession, AsksForMoreWhereALaterRunWantsIt)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    const std::size_t before = test.callsOf("cuptiActivityEnable").size();
    test.session->stop();
    ASSERT_TRUE(test.session->record(TraceLevel::Api, test.take()).ok());
    const std::vector<std::string> after = test.callsOf("cuptiActivityEnable");
    EXPECT_THAT(std::vector(after.begin() + static_cast<std::ptrdiff_t>(before), after.end()),
                ElementsAre(enabled(CUPTI_ACTIVITY_KIND_RUNTIME), enabled(CUPTI_ACTIVITY_KIND_DRIVER), enabled(CUPTI_ACTIVITY_KIND_MEMORY2)));
    test.session->stop();
}

TEST(CuptiSession, NeedsNoListOfLaunchesWhereAllCallsAreRecorded)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Api, test.take()).ok());
    EXPECT_THAT(test.callsOf("cuptiActivityEnableRuntimeApi"), IsEmpty());
    EXPECT_TRUE(test.session->recordsCalls());
}

TEST(CuptiSession, FlushesByItself)
{
    CuptiOptions options;
    options.flushEvery = 1'000'000;
    FakeSession test(options);
    std::promise<void> came;
    std::atomic<int> kernels = 0;
    ASSERT_TRUE(test.session
                    ->record(TraceLevel::Kernels,
                             [&](const ActivityBatch& batch) {
                                 for (const DeviceActivity& each : batch.activities) {
                                     if (std::holds_alternative<KernelActivity>(each) && ++kernels == 1) came.set_value();
                                 }
                             })
                    .ok());
    test.fake.launch({.start = 1'000, .end = 2'000});
    came.get_future().wait();
    test.session->stop();
    EXPECT_EQ(kernels, 1);
}

// CUPTI may give a buffer back, and ask for one, when nobody records any more.
TEST(CuptiSession, MayGoWhileBuffersAreOutside)
{
    for (const bool recording : {true, false}) {
        FakeSession test;
        ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
        test.fake.launch({.start = 100, .end = 200});
        test.fake.hold();
        test.session->flush();
        if (!recording) test.session->stop();
        test.session.reset();
        test.fake.release(); // completes
        test.fake.launch({.start = 300, .end = 400}); // asks
        EXPECT_THAT(test.kernels(), IsEmpty());
    }
}

// --- clocks ------------------------------------------------------------------------------------------------------------

constexpr std::int64_t kWallAhead = 1'700'000'000'000'000'000;
ManualClock* host = nullptr;
std::int64_t wallAhead = kWallAhead;
std::uint64_t wallTime() { return static_cast<std::uint64_t>(host->now() + wallAhead); }

TEST(CuptiSession, MeasuresTheClockThatItCannotGive)
{
    FakeSession test({}, false);
    host = &test.clock;
    wallAhead = kWallAhead;
    test.fake.fail("cuptiActivityRegisterTimestampCallback", CUPTI_ERROR_UNKNOWN);
    test.fake.setClock(wallTime);
    test.session = CuptiSession::create(fakeLibrary(), test.clock, FakeSession::byHand()).value();
    EXPECT_THAT(test.session->notes(), ElementsAre(AllOf(HasSubstr("measured offset"), HasSubstr("999"))));
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    const WorkScope scope(&test.session->marks(), Step{0}, kForward);
    test.fake.launch({.start = kWallAhead + 1'000, .end = kWallAhead + 1'100, .calledAt = kWallAhead + 900});
    test.session->flush();
    EXPECT_THAT(test.spans(), ElementsAre(Interval{1'000, 1'100}));

    // Somebody sets the wall clock. After a second it is measured anew, and said.
    wallAhead += 3'600'000'000'000;
    test.clock.advance(2'000'000'000);
    test.session->flush();
    test.fake.launch({.start = static_cast<std::uint64_t>(wallAhead + 3'000'000'000),
                      .end = static_cast<std::uint64_t>(wallAhead + 3'000'000'100),
                      .calledAt = static_cast<std::uint64_t>(wallAhead + 2'999'999'000)});
    test.session->flush();
    EXPECT_THAT(test.spans(), ElementsAre(Interval{1'000, 1'100}, Interval{3'000'000'000, 3'000'000'100}));
    test.session->stop();
    EXPECT_THAT(test.session->notes(), ElementsAre(HasSubstr("measured offset"), HasSubstr("wall clock")));
}

} // namespace

} // namespace stagecraft::runtime
