// SPDX-License-Identifier: Apache-2.0
//
// The bounded queue without a lock: a ring of places between two counters, of which the sender alone writes `head_` (how many were pushed)
// and the receiver alone `tail_` (how many were popped); item i lies in place i mod depth (Lamport 1983).
//
//          tail                head
//   | free | item | item | item | free |          size = head - tail
//
// Memory order. The sender fills a place and then stores head with *release*; the receiver loads head with *acquire* and then reads the
// place: whoever sees the new count sees the item. The other way round the receiver empties a place and stores tail with *release*, and
// the sender, having loaded tail with *acquire*, may fill it again. Each loads its own counter *relaxed*, for nobody else writes it.
// The two counters lie in cache lines of their own, so that the threads do not take them from each other at every step.
//
// A waiter spins for a while, then sleeps on the other's counter (a futex) with the value that it has seen there: a change between the look
// and the sleep lets the sleep return at once, so that no wake-up is lost. The lowest bit of each counter says that the queue is cancelled,
// and the count lies above it; therefore a counter is added to, though one thread alone counts in it: storing would wipe that bit out.
// Counts may wrap, for only their difference matters.
//
//   SpscRing<int> ring(2, patienceFor(ranks));
#pragma once

#include "engine/transport/bounded_queue.h"
#include "engine/transport/spin_wait.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

template <class T>
class SpscRing final : public BoundedQueue<T> {
public:
    SpscRing(std::size_t depth, const Patience& patience) : places_(depth), patience_(patience) {}

    bool tryPush(T& item) override
    {
        if (between(head_.load(std::memory_order_relaxed), tail_.load(std::memory_order_acquire)) == places_.size()) return false;
        places_[fill_].emplace(std::move(item));
        fill_ = after(fill_);
        head_.fetch_add(kOne, std::memory_order_release);
        head_.notify_one();
        return true;
    }

    std::optional<T> tryPop() override
    {
        if (between(head_.load(std::memory_order_acquire), tail_.load(std::memory_order_relaxed)) == 0) return std::nullopt;
        std::optional<T> item = std::exchange(places_[empty_], std::nullopt);
        empty_ = after(empty_);
        tail_.fetch_add(kOne, std::memory_order_release);
        tail_.notify_one();
        return item;
    }

    void waitForRoom() override
    {
        const std::uint32_t head = head_.load(std::memory_order_relaxed);
        for (std::uint32_t tail = tail_.load(std::memory_order_acquire); between(head, tail) == places_.size() && (tail & kCancelled) == 0;)
            tail = waitWhile(tail_, tail, patience_);
    }
    void waitForItem() override
    {
        const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
        for (std::uint32_t head = head_.load(std::memory_order_acquire); between(head, tail) == 0 && (head & kCancelled) == 0;)
            head = waitWhile(head_, head, patience_);
    }

    [[nodiscard]] std::size_t size() const override
    {
        const std::uint32_t tail = tail_.load(std::memory_order_acquire); // first: head is never behind it
        return between(head_.load(std::memory_order_acquire), tail);
    }
    [[nodiscard]] std::size_t depth() const override { return places_.size(); }

    void cancel() override
    {
        for (std::atomic<std::uint32_t>* counter : {&head_, &tail_}) {
            counter->fetch_or(kCancelled, std::memory_order_release);
            counter->notify_all();
        }
    }
    [[nodiscard]] bool cancelled() const override { return (head_.load(std::memory_order_acquire) & kCancelled) != 0; }

private:
    static constexpr std::uint32_t kCancelled = 1;
    static constexpr std::uint32_t kOne = 2;
    static std::size_t between(std::uint32_t head, std::uint32_t tail) { return ((head & ~kCancelled) - (tail & ~kCancelled)) / kOne; }
    [[nodiscard]] std::size_t after(std::size_t place) const { return place + 1 == places_.size() ? 0 : place + 1; }

    std::vector<std::optional<T>> places_;
    Patience patience_;
    alignas(64) std::atomic<std::uint32_t> head_{0};
    std::size_t fill_ = 0; // the sender's: the place of the next item
    alignas(64) std::atomic<std::uint32_t> tail_{0};
    std::size_t empty_ = 0; // the receiver's
};

} // namespace stagecraft::runtime
