// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/background_job.h"

#include <QSignalSpy>
#include <QTest>
#include <QThread>

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>
#include <vector>

namespace stagecraft::ui {
namespace {

TEST(BackgroundJob, DeliversItsResultInTheGuiThread)
{
    BackgroundJob<int> job;
    QSignalSpy busy(&job, &JobLane::busyChanged);
    int result = 0;
    QThread* deliveredIn = nullptr;
    QThread* workedIn = nullptr;
    job.start(
        [&](JobControl&) {
            workedIn = QThread::currentThread();
            return 42;
        },
        [&](int value) {
            result = value;
            deliveredIn = QThread::currentThread();
        });
    EXPECT_TRUE(job.busy());
    ASSERT_TRUE(QTest::qWaitFor([&] { return result != 0; }));
    EXPECT_EQ(result, 42);
    EXPECT_EQ(deliveredIn, QThread::currentThread());
    EXPECT_NE(workedIn, QThread::currentThread());
    EXPECT_FALSE(job.busy());
    EXPECT_EQ(busy.size(), 2);
}

TEST(BackgroundJob, DropsTheResultOfAJobThatALaterOneReplaced)
{
    BackgroundJob<int> job;
    std::binary_semaphore begun(0);
    std::vector<int> results;
    const auto deliver = [&](int value) { results.push_back(value); };
    job.start(
        [&](JobControl& control) {
            begun.release();
            while (!control.cancelled()) std::this_thread::yield(); // ends because the next one starts
            return 1;
        },
        deliver);
    begun.acquire();
    job.start([](JobControl&) { return 2; }, deliver);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !results.empty(); }));
    EXPECT_EQ(results, std::vector<int>{2});
    EXPECT_FALSE(job.busy());
}

TEST(BackgroundJob, DeliversNothingAfterItWasCancelled)
{
    BackgroundJob<int> job;
    std::binary_semaphore mayEnd(0);
    bool delivered = false;
    job.start(
        [&](JobControl&) {
            mayEnd.acquire();
            return 1;
        },
        [&](int) { delivered = true; });
    job.cancel();
    mayEnd.release();
    int second = 0; // runs after the cancelled one has delivered, if it does
    job.start([](JobControl&) { return 2; }, [&](int value) { second = value; });
    ASSERT_TRUE(QTest::qWaitFor([&] { return second == 2; }));
    EXPECT_FALSE(delivered);
}

TEST(BackgroundJob, StopsAJobThatWasCancelledOrReplaced)
{
    BackgroundJob<int> job;
    for (const bool replaced : {false, true}) {
        std::binary_semaphore begun(0);
        std::binary_semaphore stopped(0);
        job.start(
            [&](const JobControl& control) {
                const std::stop_callback heard(control.stopToken(), [&] { stopped.release(); });
                begun.release();
                while (!control.cancelled()) std::this_thread::yield();
                return 1;
            },
            [](int) { FAIL() << "nobody wants it any more"; });
        begun.acquire();
        int next = 0;
        if (!replaced) job.cancel();
        job.start(
            [](const JobControl& control) { return control.cancelled() ? 1 : 2; }, [&](int value) { next = value; });
        stopped.acquire();
        ASSERT_TRUE(QTest::qWaitFor([&] { return next != 0; }));
        EXPECT_EQ(next, 2) << "the stop was the former job's alone";
    }
}

TEST(BackgroundJob, TellsItsProgress)
{
    BackgroundJob<int> job;
    QSignalSpy progress(&job, &JobLane::progressed);
    bool done = false;
    job.start(
        [](JobControl& control) {
            control.report(0.5);
            for (int i = 0; i < 1000; ++i) control.report(0.5 + i * 1e-6); // too little to be seen
            return 1;
        },
        [&](int) { done = true; });
    ASSERT_TRUE(QTest::qWaitFor([&] { return done; }));
    ASSERT_EQ(progress.size(), 1);
    EXPECT_EQ(progress.front().front().toDouble(), 0.5);
}

TEST(BackgroundJob, EndsWithItsOwnerWhileAJobIsAtWork)
{
    std::binary_semaphore begun(0);
    bool sawTheEnd = false;
    {
        BackgroundJob<int> job;
        job.start(
            [&](JobControl& control) {
                begun.release();
                while (!control.cancelled()) std::this_thread::yield();
                sawTheEnd = true;
                return 1;
            },
            [](int) { FAIL() << "the owner is gone"; });
        begun.acquire();
    }
    EXPECT_TRUE(sawTheEnd);
    QCoreApplication::processEvents();
}

} // namespace
} // namespace stagecraft::ui
