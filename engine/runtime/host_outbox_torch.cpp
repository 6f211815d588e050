// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/host_outbox_torch.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

HostOutbox::HostOutbox(const RankDevice& device, Failed failed)
    : stream_(device.anotherStream()), failed_(std::move(failed)), thread_([this](const std::stop_token& stop) {
          try {
              serve(stop);
          } catch (...) {
              failed_(std::current_exception());
          }
      })
{
    pthread_setname_np(thread_.native_handle(), "outbox");
}

HostOutbox::~HostOutbox()
{
    thread_.request_stop();
    thread_.join();
}

void HostOutbox::give(Boundary boundary, Send send)
{
    {
        const std::lock_guard lock(mutex_);
        given_.push_back({std::move(boundary), std::move(send)});
    }
    changed_.notify_all();
}

void HostOutbox::serve(const std::stop_token& stop)
{
    c10::impl::VirtualGuardImpl(stream_.device_type()).setDevice(stream_.device()); // as RankDevice::useHere()
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !given_.empty(); }) && !stop.stop_requested()) {
        Given next = std::move(given_.front());
        given_.pop_front();
        lock.unlock();
        sendOne(std::move(next));
        lock.lock();
    }
}

// The tensor on the GPU is let go of before its copy is sent: who has that knows that the memory here is free.
void HostOutbox::sendOne(Given given) const
{
    const RankDevice::Scope here(stream_);
    at::Tensor onHost = RankDevice().fetch(std::move(given.boundary)).tensor;
    given.boundary = {};
    given.send(std::move(onHost));
}

} // namespace stagecraft::runtime
