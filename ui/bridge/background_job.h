// SPDX-License-Identifier: GPL-3.0-or-later
//
// Work beside the GUI thread of which only the newest result counts: a simulation that a later edit makes pointless. One
// thread works on one job at a time; starting the next one asks the former to stop and drops its result, however late it
// comes. Results arrive in the GUI thread by one queued call. The destructor asks the job at work to stop and waits for it.
//
//   BackgroundJob<Trace> job;
//   job.start([plan](JobControl& control) { return simulate(plan, control.stopToken()); }, [this](Trace trace) { show(trace); });
#pragma once

#include <QObject>

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
    [[nodiscard]] bool cancelled() const { return stop_.stop_requested(); }
    [[nodiscard]] const std::stop_token& stopToken() const { return stop_; }
    void report(double fraction); // 0..1; may be called often

private:
    friend class JobLane;
    static constexpr double kLeastProgress = 0.005; // what can be seen in a bar

    JobControl(JobLane& lane, std::uint64_t generation, std::stop_token stop)
        : lane_(lane), generation_(generation), stop_(std::move(stop))
    {
    }
    JobLane& lane_;
    std::uint64_t generation_;
    std::stop_token stop_;
    double reported_ = -1;
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
    void replace(Work work);
    void setBusy(bool busy);

    // GUI thread: the job whose result is wanted.
    std::uint64_t newest_ = 0;
    std::stop_source wanted_;
    bool busy_ = false;

    std::mutex mutex_; // guards what waits for the thread
    std::condition_variable_any wake_;
    Work waiting_;
    std::uint64_t waitingGeneration_ = 0;
    std::stop_token waitingStop_;

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
