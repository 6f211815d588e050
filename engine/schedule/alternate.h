// SPDX-License-Identifier: Apache-2.0
//
// The order of one rank that all forms of 1F1B share: `warmup` forwards; then one forward, one backward; then the backwards that
// are left. They differ in the warm-up, and in what the n-th forward and the n-th backward are. Warm-up 2 of 4:
//
//   F0 F1 | F2 B0 F3 B1 | B2 B3
//
//   alternateAfterWarmup(2, 4, [&](int n) { list.push_back(...); }, [&](int n) { list.push_back(...); });
#pragma once

namespace stagecraft::engine {

// 0 <= warmup <= total.
template <class Forward, class Backward>
void alternateAfterWarmup(int warmup, int total, Forward&& forward, Backward&& backward)
{
    for (int n = 0; n < warmup; ++n) forward(n);
    for (int n = warmup; n < total; ++n) {
        forward(n);
        backward(n - warmup);
    }
    for (int n = total - warmup; n < total; ++n) backward(n);
}

} // namespace stagecraft::engine
