// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/background_job.h"

#include <utility>

namespace stagecraft::ui {

void JobControl::report(double fraction)
{
    if (fraction < reported_ + kLeastProgress && fraction < 1) return;
    reported_ = fraction;
    QMetaObject::invokeMethod(
        &lane_,
        [lane = &lane_, generation = generation_, fraction] {
            if (lane->newest_ == generation) emit lane->progressed(fraction);
        },
        Qt::QueuedConnection);
}

JobLane::JobLane(QObject* parent) : QObject(parent), thread_([this](const std::stop_token& stop) { loop(stop); }) {}

JobLane::~JobLane()
{
    wanted_.request_stop(); // the job at work; then the jthread's destructor ends the loop and joins
}

void JobLane::replace(Work work)
{
    wanted_.request_stop(); // not under the lock: it calls who listens
    wanted_ = std::stop_source();
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(work);
    waitingGeneration_ = ++newest_;
    waitingStop_ = wanted_.get_token();
}

void JobLane::start(Work work)
{
    replace(std::move(work));
    wake_.notify_one();
    setBusy(true);
}

void JobLane::cancel()
{
    replace(nullptr);
    setBusy(false);
}

void JobLane::loop(const std::stop_token& stop)
{
    for (;;) {
        Work work;
        std::uint64_t generation = 0;
        std::stop_token jobStop;
        {
            std::unique_lock lock(mutex_);
            if (!wake_.wait(lock, stop, [this] { return waiting_ != nullptr; })) return;
            work = std::exchange(waiting_, nullptr);
            generation = waitingGeneration_;
            jobStop = waitingStop_;
        }
        JobControl control(*this, generation, std::move(jobStop));
        Delivery delivery = work(control);
        QMetaObject::invokeMethod(
            this, [this, generation, delivery = std::move(delivery)] { deliver(generation, delivery); },
            Qt::QueuedConnection);
    }
}

void JobLane::deliver(std::uint64_t generation, const Delivery& delivery)
{
    if (generation != newest_) return;
    setBusy(false);
    delivery();
}

void JobLane::setBusy(bool busy)
{
    if (busy == busy_) return;
    busy_ = busy;
    emit busyChanged(busy);
}

} // namespace stagecraft::ui
