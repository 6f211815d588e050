// SPDX-License-Identifier: GPL-3.0-or-later
//
// Work beside the GUI thread of which only the newest result counts: a simulation that a later edit makes pointless. One
// thread works on one job at a time; starting the next one asks the former to stop and drops its result, however late it
// comes. Results arrive in the GUI thread by one queued call. The destructor waits for the job at work.
//
//   BackgroundJob<Trace> job;
//   job.start([plan](JobControl& control) { return simulate(plan); }, [this](Trace trace) { show(trace); });
#pragma once

#include <QObject>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace stagecraft::ui {

class JobLane;

// What a job sees of the outside. Used in the job's thread.
class JobControl {
public:
    [[nodiscard]] bool cancelled() const;
    void report(double fraction); // 0..1

private:
    friend class JobLane;
    JobControl(JobLane& lane, std::uint64_t generation, std::stop_token stop)
        : lane_(lane), generation_(generation), stop_(std::move(stop))
    {
    }
    JobLane& lane_;
    std::uint64_t generation_;
    std::stop_token stop_;
};

// The thread and the generations, without the result's type.
class JobLane : public QObject {
    Q_OBJECT
public:
    using Delivery = std::function<void()>; // runs in the GUI thread
    using Work = std::function<Delivery(JobControl&)>;

    explicit JobLane(QObject* parent = nullptr);
    ~JobLane() override;

    void start(Work work);
    void cancel(); // the job at work is told; its result will not come
    [[nodiscard]] bool busy() const { return busy_; }

signals:
    void busyChanged(bool busy);
    void progressed(double fraction);

private:
    friend class JobControl;
    void loop(const std::stop_token& stop);
    void deliver(std::uint64_t generation, const Delivery& delivery);
    void setBusy(bool busy);

    std::atomic<std::uint64_t> newest_{0}; // generation of the job whose result is wanted
    bool busy_ = false;                    // GUI thread

    std::mutex mutex_; // guards waiting_ and waitingGeneration_
    std::condition_variable_any wake_;
    Work waiting_;
    std::uint64_t waitingGeneration_ = 0;

    std::jthread thread_; // last: it ends before what it uses
};

template <class Result>
class BackgroundJob : public JobLane {
public:
    using JobLane::JobLane;

    void start(std::function<Result(JobControl&)> work, std::function<void(Result)> deliver)
    {
        JobLane::start([work = std::move(work), deliver = std::move(deliver)](JobControl& control) -> Delivery {
            auto result = std::make_shared<Result>(work(control));
            return [deliver, result] { deliver(std::move(*result)); };
        });
    }
};

} // namespace stagecraft::ui
