// SPDX-License-Identifier: Apache-2.0
//
// Every call that CUPTI may refuse: it is told, or the recording goes on without what was refused.
#include "engine/probe/cupti/cupti_session.h"
#include "engine/probe/cupti/profiler_conflicts.h"
#include "tests/runtime/cupti/fake_session.h"
#include "tests/runtime/cupti/real_library.h"

#include <cupti_result.h>
#include <gmock/gmock.h>

#include <stdexcept>

namespace stagecraft::runtime {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

const traces::Work kForward = traces::forward(Stage{0}, MicroBatch{0}).work;

class FailingCall : public testing::TestWithParam<const char*> {};
class NeededCall : public FailingCall {};

TEST_P(NeededCall, IsWhyThereIsNoSession)
{
    FakeSession test({}, false);
    test.fake.fail(GetParam(), CUPTI_ERROR_NOT_INITIALIZED);
    test.fake.fail("cuptiGetTimestamp", CUPTI_ERROR_NOT_INITIALIZED); // no way round
    const auto session = CuptiSession::create(fakeLibrary(), test.clock, {});
    ASSERT_FALSE(session.ok());
    EXPECT_THAT(session.error().message, AllOf(HasSubstr("cannot reach the NVIDIA driver"), HasSubstr("nvidia-smi")));
}

INSTANTIATE_TEST_SUITE_P(CuptiSession, NeededCall,
                         testing::Values("cuptiSubscribe_v2", "cuptiActivityRegisterTimestampCallback", "cuptiActivityRegisterCallbacks"));

// Any of the rest: kernels still come, and what is missing is said.
TEST_P(FailingCall, DoesNotEndTheRecording)
{
    const std::string function = GetParam();
    FakeSession test({}, false);
    test.fake.fail(function, CUPTI_ERROR_NOT_SUPPORTED);
    test.session = CuptiSession::create(fakeLibrary(), test.clock, FakeSession::byHand()).value();
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    for (int i = 0; i < 3; ++i) {
        const WorkScope scope(&test.session->marks(), Step{0}, kForward);
        test.fake.launch({.start = 100, .end = 200});
        test.session->flush();
    }
    test.session->stop();
    test.join.finish(test.joined);
    EXPECT_THAT(test.kernels(), SizeIs(3));
    EXPECT_THAT(test.session->notes(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(CuptiSession, FailingCall,
                         testing::Values("cuptiActivitySetAttribute", "cuptiActivityRegisterTimestampCallback",
                                         "cuptiActivityEnableRuntimeApi", "cuptiActivityEnableDriverApi",
                                         "cuptiActivityPushExternalCorrelationId"));

// The real library.
TEST(CuptiSessionErrors, SayThatThereIsNoDriver)
{
    const auto session = CuptiSession::create(realLibrary(), ManualClock(), {});
    if (session.ok()) GTEST_SKIP() << "there is a driver";
    EXPECT_THAT(session.error().message, AllOf(HasSubstr("recording of kernels is not possible"), HasSubstr("driver"), HasSubstr("nvidia-smi")));
}

TEST(CuptiSessionErrors, NameTheOtherProfiler)
{
    FakeSession test({}, false);
    test.fake.attachOther("CUPTI for Nsight Systems");
    const auto session = CuptiSession::create(fakeLibrary(), test.clock, {});
    ASSERT_FALSE(session.ok());
    EXPECT_THAT(session.error().message,
                AllOf(HasSubstr("recording of kernels is not possible: another profiler is attached to this process (CUPTI for Nsight Systems)"),
                      HasSubstr("CUPTI error 39")));
}

TEST(CuptiSessionErrors, ASecondSessionIsAnotherProfiler)
{
    FakeSession test;
    const auto second = CuptiSession::create(fakeLibrary(), test.clock, {});
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message, HasSubstr("(stagecraft)"));
}

TEST(CuptiSessionErrors, NameTheKindThatIsRefused)
{
    FakeSession test;
    test.fake.fail("cuptiActivityEnable", CUPTI_ERROR_OUT_OF_MEMORY);
    const auto refused = test.session->record(TraceLevel::Kernels, test.take());
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("recording of marks of actions is not possible"), HasSubstr("10 MB")));
    EXPECT_FALSE(test.session->recording());
    { const WorkScope scope(&test.session->marks(), Step{0}, kForward); }

    // Where the reason is gone, it goes on.
    test.fake.fail("cuptiActivityEnable", 0);
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    test.fake.launch({.start = 100, .end = 200});
    test.session->stop();
    test.join.finish(test.joined);
    EXPECT_THAT(test.kernels(), SizeIs(1));
}

TEST(CuptiSessionErrors, ToldOnceWhereFlushesFail)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    test.fake.fail("cuptiActivityFlushAll", CUPTI_ERROR_UNKNOWN);
    test.fake.fail("cuptiActivityGetNumDroppedRecords", CUPTI_ERROR_UNKNOWN);
    for (int i = 0; i < 5; ++i) test.session->flush();
    test.session->stop();
    EXPECT_EQ(test.batches, 6); // who takes them goes by their beat
    EXPECT_EQ(test.counts.dropped, 0);
    EXPECT_THAT(test.session->notes(), ElementsAre(HasSubstr("fetching of records is not possible")));
}

TEST(CuptiSessionErrors, OfWhoTakesTheRecordsEndNothing)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, [](const ActivityBatch&) { throw std::runtime_error("no memory"); }).ok());
    test.session->flush();
    test.session->flush();
    test.session->stop();
    EXPECT_THAT(test.session->notes(), ElementsAre(HasSubstr("missing in parts: no memory")));
}

TEST(CuptiSessionErrors, CountMarksThatDoNotFit)
{
    FakeSession test;
    ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
    for (int i = 0; i < 2; ++i) {
        const WorkScope scope(&test.session->marks(), Step{0}, traces::forward(Stage{kMostMarkedStage + 1}, MicroBatch{0}).work);
    }
    test.session->stop();
    EXPECT_THAT(test.session->notes(), ElementsAre(HasSubstr("2 actions could not be marked")));
}

TEST(ProfilerConflicts, AreToldBeforeARun)
{
    EXPECT_THAT(profilerConflicts({}), IsEmpty());
    EXPECT_THAT(profilerConflicts({.injection = "/opt/nsys/libToolsInjection64.so"}),
                ElementsAre(AllOf(HasSubstr("CUDA_INJECTION64_PATH"), HasSubstr("/opt/nsys/libToolsInjection64.so"))));
    EXPECT_THAT(profilerConflicts({.kinetoDaemon = "1"}), ElementsAre(HasSubstr("KINETO_USE_DAEMON")));
}

} // namespace

} // namespace stagecraft::runtime
