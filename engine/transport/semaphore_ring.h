// SPDX-License-Identifier: Apache-2.0
//
// The bounded queue with credits (Dijkstra's producer and consumer, EWD 123, 1965): one semaphore counts the free places, which are the
// sender's credit, another the filled ones. Who finds a count of zero sleeps until the other side releases one. The semaphores order the
// access to the places, so that the sender's and the receiver's position need no protection of their own.
//
//   free    3 2 1 0 1 ...        acquire before a push, release after a pop
//   filled  0 1 2 3 2 ...        acquire before a pop, release after a push
//
//   SemaphoreRing<int> ring(3);
#pragma once

#include "engine/transport/bounded_queue.h"

#include <cstdint>
#include <semaphore>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

template <class T>
class SemaphoreRing final : public BoundedQueue<T> {
public:
    explicit SemaphoreRing(std::size_t depth) : places_(depth), free_(static_cast<std::ptrdiff_t>(depth)) {}

    bool tryPush(T& item) override
    {
        if (!std::exchange(credit_, false) && !free_.try_acquire()) return false;
        if (cancelled()) return false; // the credit may be the one that cancel() woke us with
        const std::uint64_t pushed = pushed_.load(std::memory_order_relaxed);
        places_[pushed % places_.size()].emplace(std::move(item));
        pushed_.store(pushed + 1, std::memory_order_release);
        filled_.release();
        return true;
    }

    std::optional<T> tryPop() override
    {
        if (!std::exchange(claim_, false) && !filled_.try_acquire()) return std::nullopt;
        if (cancelled()) return std::nullopt;
        const std::uint64_t popped = popped_.load(std::memory_order_relaxed);
        std::optional<T> item = std::exchange(places_[popped % places_.size()], std::nullopt);
        popped_.store(popped + 1, std::memory_order_release);
        free_.release();
        return item;
    }

    // What was acquired in vain is kept for the next try.
    void waitForRoom() override
    {
        if (credit_ || cancelled()) return;
        free_.acquire();
        credit_ = !cancelled();
    }
    void waitForItem() override
    {
        if (claim_ || cancelled()) return;
        filled_.acquire();
        claim_ = !cancelled();
    }

    [[nodiscard]] std::size_t size() const override
    {
        const std::uint64_t popped = popped_.load(std::memory_order_acquire); // first: never more than were pushed
        return static_cast<std::size_t>(pushed_.load(std::memory_order_acquire) - popped);
    }
    [[nodiscard]] std::size_t depth() const override { return places_.size(); }

    // One more of each, for whoever sleeps; none of them is taken for a place or an item.
    void cancel() override
    {
        cancelled_.store(true, std::memory_order_release);
        free_.release();
        filled_.release();
    }
    [[nodiscard]] bool cancelled() const override { return cancelled_.load(std::memory_order_acquire); }

private:
    std::vector<std::optional<T>> places_;
    std::counting_semaphore<> free_;
    std::counting_semaphore<> filled_{0};
    std::atomic<bool> cancelled_{false};
    alignas(64) std::atomic<std::uint64_t> pushed_{0}; // written by the sender alone
    bool credit_ = false;                              // the sender's
    alignas(64) std::atomic<std::uint64_t> popped_{0}; // written by the receiver alone
    bool claim_ = false;                               // the receiver's
};

} // namespace stagecraft::runtime
