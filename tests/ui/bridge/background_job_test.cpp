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

TEST(BackgroundJob, TellsItsProgress)
{
    BackgroundJob<int> job;
    QSignalSpy progress(&job, &JobLane::progressed);
    bool done = false;
    job.start(
        [](JobControl& control) {
            control.report(0.5);
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
