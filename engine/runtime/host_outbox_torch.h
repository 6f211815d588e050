// SPDX-License-Identifier: Apache-2.0
//
// What a rank on a GPU gives to other processes by way of the host: a thread of its own waits until a tensor is made, copies it and hands
// the copy on, so that the rank's goes on asking for actions meanwhile. One after the other, in the order in which they were given. Private
// to the runtime.
//
//   HostOutbox outbox(device, [&](const std::exception_ptr& error) { control.fail(...); });
//   outbox.give({y, mark}, [&](at::Tensor onHost) { office.send(...); });     // on the outbox's thread
#pragma once

#include "engine/runtime/rank_device_torch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace stagecraft::runtime {

class HostOutbox {
public:
    using Send = std::function<void(at::Tensor onHost)>;
    using Failed = std::function<void(const std::exception_ptr&)>;
    // Of a rank on a GPU. `failed` is told of the first error, after which nothing is sent. Throws std::system_error where no thread can be started.
    HostOutbox(const RankDevice& device, Failed failed);
    ~HostOutbox(); // what was not sent by then is not sent
    HostOutbox(const HostOutbox&) = delete;
    HostOutbox& operator=(const HostOutbox&) = delete;

    void give(Boundary boundary, Send send); // any thread

private:
    struct Given {
        Boundary boundary;
        Send send;
    };
    void serve(const std::stop_token& stop);
    void sendOne(Given given) const;

    c10::Stream stream_;
    Failed failed_;
    std::mutex mutex_; // guards given_
    std::condition_variable_any changed_;
    std::deque<Given> given_;
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
