// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/background_job.h"

#include <utility>

namespace stagecraft::ui {

bool JobControl::cancelled() const { return stop_.stop_requested() || lane_.newest_ != generation_; }

void JobControl::report(double fraction)
{
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
    ++newest_; // the job at work sees itself cancelled; the jthread's destructor stops and joins
}

void JobLane::start(Work work)
{
    {
        const std::lock_guard lock(mutex_);
        waiting_ = std::move(work);
        waitingGeneration_ = ++newest_;
    }
    wake_.notify_one();
    setBusy(true);
}

void JobLane::cancel()
{
    {
        const std::lock_guard lock(mutex_);
        waiting_ = nullptr;
        ++newest_;
    }
    setBusy(false);
}

void JobLane::loop(const std::stop_token& stop)
{
    for (;;) {
        Work work;
        std::uint64_t generation = 0;
        {
            std::unique_lock lock(mutex_);
            if (!wake_.wait(lock, stop, [this] { return waiting_ != nullptr; })) return;
            work = std::exchange(waiting_, nullptr);
            generation = waitingGeneration_;
        }
        JobControl control(*this, generation, stop);
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
