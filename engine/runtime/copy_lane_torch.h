// SPDX-License-Identifier: Apache-2.0
//
// A second thread of a rank, for OFFLOAD and RELOAD: copies run one after the other beside the rank's computing. The rank asks for them,
// waits where an action needs what a RELOAD brings, and takes over what is done, for only it writes to its ring. Used by the rank's
// thread, and copies on a stream of the rank's GPU, for which the second thread waits. Private to the runtime.
//
//   copies.ask(work, step, device.mark());          // goes on at once; copied is what is made by then
//   if (copies.pending(work)) copies.await(work);   // before a backward
//   for (const CopyLane::Copy& copy : copies.takeDone()) ...
#pragma once

#include "engine/runtime/executor_torch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

class CopyLane {
public:
    struct Copy {
        traces::Work work{};
        traces::Step step{};
        DeviceMark made{}; // of a GPU, what it is a copy of
        DeviceMark end{};  // of a GPU
        traces::Interval span{};
        BytesByClass after{}; // of the rank, at the end
        std::exception_ptr error{};
    };

    // Throws std::system_error where the thread cannot be started.
    CopyLane(const Execution& run, traces::Rank rank, std::function<void()> prepare);
    ~CopyLane();
    CopyLane(const CopyLane&) = delete;
    CopyLane& operator=(const CopyLane&) = delete;

    void ask(const traces::Work& work, traces::Step step, DeviceMark made);
    // Whether a RELOAD of what the action takes was asked for and is not over.
    [[nodiscard]] bool pending(const traces::Work& work);
    void await(const traces::Work& work); // until it is
    [[nodiscard]] std::vector<Copy> takeDone();

private:
    using Unit = std::tuple<traces::Flow, traces::Stage, traces::MicroBatch>;
    static Unit unitOf(const traces::Work& work) { return {work.flow, work.stage, work.microbatch}; }
    void serve(const std::stop_token& stop);
    void make(Copy& copy);
    void makeOnDevice(Copy& copy);

    const Execution& run_;
    traces::Rank rank_;
    std::mutex mutex_; // guards what follows
    std::condition_variable_any changed_;
    std::deque<Copy> asked_; // the first of them is being made
    std::set<Unit> coming_;  // RELOADs among them
    std::vector<Copy> done_;
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
