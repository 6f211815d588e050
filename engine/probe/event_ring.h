// SPDX-License-Identifier: Apache-2.0
//
// A ring of plain structs between one writing and one reading thread, allocated once. A full ring never blocks its
// writer: the event is counted as lost instead.
//
//   EventRing<RunEvent> ring(1 << 14);
//   ring.push(event);                                    // writer
//   ring.drain([&](const RunEvent& event) { ... });      // reader
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace stagecraft::runtime {

template <class Event>
class EventRing {
    static_assert(std::is_trivially_copyable_v<Event>);

public:
    explicit EventRing(std::size_t capacity) : events_(std::bit_ceil(capacity)), mask_(events_.size() - 1) {}

    void push(const Event& event) noexcept
    {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        if (head - tailSeen_ > mask_) {
            tailSeen_ = tail_.load(std::memory_order_acquire);
            if (head - tailSeen_ > mask_) {
                lost_.fetch_add(1, std::memory_order_relaxed);
                return;
            }
        }
        events_[head & mask_] = event;
        head_.store(head + 1, std::memory_order_release);
    }

    template <class Take>
    void drain(Take&& take)
    {
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        for (; tail != head; ++tail) {
            take(events_[tail & mask_]);
            tail_.store(tail + 1, std::memory_order_release);
        }
    }

    [[nodiscard]] std::int64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

private:
    std::vector<Event> events_;
    std::size_t mask_;
    alignas(64) std::atomic<std::uint64_t> head_{0};
    std::uint64_t tailSeen_ = 0; // the writer's last look at tail_
    std::atomic<std::int64_t> lost_{0};
    alignas(64) std::atomic<std::uint64_t> tail_{0};
};

} // namespace stagecraft::runtime
