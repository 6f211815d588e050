// SPDX-License-Identifier: Apache-2.0
//
// A queue of so many places from one sending thread to one receiving one, in three ways that do the same (mutex_queue.h, spsc_ring.h,
// semaphore_ring.h). Trying never waits; waiting takes nothing: it returns once a try of the same thread succeeds, or the queue is
// cancelled.
//
//   while (!queue.tryPush(item)) { queue.waitForRoom(); if (queue.cancelled()) return; }   // sender
//   std::optional<T> item = queue.tryPop();                                                // receiver
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

namespace stagecraft::runtime {

template <class T>
class BoundedQueue {
public:
    virtual ~BoundedQueue() = default;

    virtual bool tryPush(T& item) = 0; // moved from where it succeeds
    virtual std::optional<T> tryPop() = 0;
    virtual void waitForRoom() = 0;
    virtual void waitForItem() = 0;
    // Any thread.
    [[nodiscard]] virtual std::size_t size() const = 0;
    [[nodiscard]] virtual std::size_t depth() const = 0;
    // Wakes both; no wait lasts from then on.
    virtual void cancel() = 0;
    [[nodiscard]] virtual bool cancelled() const = 0;
};

} // namespace stagecraft::runtime
