// SPDX-License-Identifier: Apache-2.0
//
// A second thread of a rank, for actions that run together (OVERLAP_F_B): it does what it is given while the rank's own thread does
// the other. Used by one thread. Private to the runtime.
//
//   PairHelper helper([] { settings of the thread });
//   helper.start([&] { forward(); });   // once all that it needs is there
//   backward();
//   helper.wait();                      // both are done
#pragma once

#include <functional>
#include <semaphore>
#include <thread>

namespace stagecraft::runtime {

class PairHelper {
public:
    // `prepare` runs on the new thread before anything else. Throws std::system_error where the thread cannot be started.
    explicit PairHelper(std::function<void()> prepare)
        : thread_([this, prepare = std::move(prepare)](const std::stop_token& stop) {
              prepare();
              for (given_.acquire(); !stop.stop_requested(); given_.acquire()) {
                  work_();
                  done_.release();
              }
          })
    {
    }
    ~PairHelper()
    {
        thread_.request_stop();
        given_.release();
    }
    PairHelper(const PairHelper&) = delete;
    PairHelper& operator=(const PairHelper&) = delete;

    // `work` throws nothing.
    void start(std::function<void()> work)
    {
        work_ = std::move(work);
        given_.release();
    }
    void wait() { done_.acquire(); }

private:
    std::function<void()> work_;
    std::binary_semaphore given_{0};
    std::binary_semaphore done_{0};
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
