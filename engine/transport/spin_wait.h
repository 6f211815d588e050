// SPDX-License-Identifier: Apache-2.0
//
// Waiting for an atomic value. Waking a thread that sleeps in the kernel takes 50 us here and costs the one that wakes it
// another 20, and hand-offs of small models are a millisecond apart. So a waiter first spins, then goes on looking while it
// offers its core to others, and sleeps only after that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stagecraft::runtime {

inline void spinPause()
{
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

struct Patience {
    int spins = 0;                         // looks with nothing but a pause between them
    std::chrono::microseconds yielding{0}; // then looks that let other threads run in between
};

// None where ranks share cores: there a spin takes the time of the one that is waited for.
inline Patience patienceFor(int ranks)
{
    if (ranks > static_cast<int>(std::thread::hardware_concurrency())) return {};
    return {.spins = 1000, .yielding = std::chrono::microseconds(2000)};
}

// Without sleeping: returns `old` where patience is at its end.
inline std::uint32_t spinWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old, const Patience& patience)
{
    std::uint32_t now = value.load(std::memory_order_acquire);
    for (int i = 0; i < patience.spins && now == old; ++i) {
        spinPause();
        now = value.load(std::memory_order_acquire);
    }
    if (now == old && patience.yielding.count() > 0) {
        const auto until = std::chrono::steady_clock::now() + patience.yielding;
        while (now == old && std::chrono::steady_clock::now() < until) {
            std::this_thread::yield();
            now = value.load(std::memory_order_acquire);
        }
    }
    return now;
}

inline std::uint32_t sleepWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old)
{
    std::uint32_t now = value.load(std::memory_order_acquire);
    while (now == old) {
        value.wait(old, std::memory_order_acquire);
        now = value.load(std::memory_order_acquire);
    }
    return now;
}

// Returns the first value that is not `old`.
inline std::uint32_t waitWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old, const Patience& patience)
{
    const std::uint32_t now = spinWhile(value, old, patience);
    return now == old ? sleepWhile(value, old) : now;
}

} // namespace stagecraft::runtime
