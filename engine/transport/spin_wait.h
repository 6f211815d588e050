// SPDX-License-Identifier: Apache-2.0
//
// Waiting for an atomic value: a short spin, because the other side is mostly about to finish, then sleep in the kernel.
#pragma once

#include <atomic>
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

// Number of looks before a waiting thread sleeps: about 50 us where every rank has a core, as long as it takes to wake a
// sleeping thread; none where ranks share cores, for there a spin takes the time of the one that is waited for.
inline int spinsFor(int ranks)
{
    return ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? 1500 : 0;
}

// Returns the first value that is not `old`.
inline std::uint32_t waitWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old, int spins)
{
    for (int i = 0; i < spins; ++i) {
        const std::uint32_t now = value.load(std::memory_order_acquire);
        if (now != old) return now;
        spinPause();
    }
    for (;;) {
        const std::uint32_t now = value.load(std::memory_order_acquire);
        if (now != old) return now;
        value.wait(old, std::memory_order_acquire);
    }
}

} // namespace stagecraft::runtime
