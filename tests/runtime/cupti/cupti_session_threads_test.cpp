// SPDX-License-Identifier: Apache-2.0
//
// Threads that launch, CUPTI's own, the flush thread, and a session that comes to its end: for the thread sanitizer as well.
#include "engine/probe/cupti/cupti_session.h"
#include "tests/runtime/cupti/fake_session.h"

#include <gmock/gmock.h>

#include <map>
#include <thread>

namespace stagecraft::runtime {

namespace {

using traces::MicroBatch;
using traces::Stage;
using traces::Step;

traces::Work workOf(int stage, int microbatch) { return traces::forward(Stage{stage}, MicroBatch{microbatch}).work; }

TEST(CuptiSessionThreads, LoseNothing)
{
    constexpr int kThreads = 3;
    constexpr int kLaunches = 400;
    for (const bool late : {false, true}) {
        CuptiOptions options;
        options.buffers = {.bufferBytes = 1024, .most = 2'048}; // enough for all of it, however seldom the flush thread runs
        options.flushEvery = 100'000;
        options.lateBuffers = 600'000'000'000;
        FakeSession test(options);
        test.fake.setLate(late);
        test.fake.setRecordsPerBuffer(4);
        ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < kThreads; ++t) {
                threads.emplace_back([&, t] {
                    for (int i = 0; i < kLaunches; ++i) {
                        const WorkScope scope(&test.session->marks(), Step{i}, workOf(t, i));
                        if (i % 3 != 0) test.fake.launch({.start = 1'000'000U + static_cast<std::uint64_t>(i), .end = 2'000'000, .calledAt = 1'000'000});
                        else test.fake.complete(test.fake.launch({.calledAt = 1'000'000}), 1'000'000U + static_cast<std::uint64_t>(i), 2'000'000);
                    }
                });
            }
        }
        test.session->stop();
        std::map<WorkId, int> seen;
        for (const JoinedActivity& each : test.kernels()) {
            const MarkedWork marked = unpackWork(each.work).value();
            ASSERT_EQ(std::get<KernelActivity>(each.activity).span.begin, 1'000'000 + marked.step.value);
            ++seen[each.work];
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(kThreads * kLaunches));
        EXPECT_EQ(test.counts.lost(), 0);
        EXPECT_EQ(test.counts.refusedBuffers, 0);
    }
}

// Launches and marks go on while the recording begins, ends, and the session goes.
TEST(CuptiSessionThreads, MayLaunchOnAfterTheSession)
{
    for (int round = 0; round < 10; ++round) {
        CuptiOptions options;
        options.buffers = {.bufferBytes = 4096, .most = 16};
        options.flushEvery = 50'000;
        options.lateBuffers = 0;
        FakeSession test(options);
        test.fake.setLate(true);
        test.fake.setRecordsPerBuffer(5);
        const WorkMarks& marks = test.session->marks();
        std::atomic<int> launched = 0;
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < 2; ++t) {
                threads.emplace_back([&, t](const std::stop_token& stop) {
                    for (int i = 0; !stop.stop_requested(); ++i) {
                        const WorkScope scope(&marks, Step{i}, workOf(t, i % 100));
                        test.fake.launch({.start = 1'000'000, .end = 2'000'000, .calledAt = 1'000'000});
                        launched.fetch_add(1);
                        launched.notify_all();
                    }
                });
            }
            const auto waitForMore = [&] {
                const int now = launched.load();
                while (launched.load() < now + 50) launched.wait(launched.load());
            };
            ASSERT_TRUE(test.session->record(TraceLevel::Kernels, test.take()).ok());
            waitForMore();
            if (round % 2 == 0) {
                test.session->stop();
                ASSERT_TRUE(test.session->record(TraceLevel::Api, test.take()).ok());
                waitForMore();
            }
            test.session.reset();
            waitForMore();
        }
        EXPECT_FALSE(test.kernels().empty() && test.counts.refusedBuffers == 0);
    }
}

} // namespace

} // namespace stagecraft::runtime
