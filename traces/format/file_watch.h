// SPDX-License-Identifier: Apache-2.0
//
// Somebody who looks on while a long file is read or written, and may end it:
//
//   saveTrace(trace, file, [&](double fraction) { show(fraction); return !cancelled; });
//
// Called in the thread that works, every some ten thousand steps. Work that was given up is an Error and leaves no file.
#pragma once

#include <cstdint>
#include <functional>

namespace stagecraft::traces {

using FileWatch = std::function<bool(double fraction)>; // 0..1; false: give up

// The side of the work. advance() throws where the watch says no; the front that got the watch makes an Error of it.
class WatchedWork {
public:
    struct GivenUp {};

    WatchedWork(const FileWatch& watch, std::uint64_t total) : watch_(watch), total_(total) {}

    void advance(std::uint64_t steps)
    {
        done_ += steps;
        if (!watch_ || done_ < next_) return;
        next_ = done_ + kPace;
        if (!watch_(total_ == 0 || done_ >= total_ ? 1 : static_cast<double>(done_) / static_cast<double>(total_))) throw GivenUp{};
    }

private:
    static constexpr std::uint64_t kPace = 1 << 14;

    const FileWatch& watch_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    std::uint64_t next_ = 0;
};

} // namespace stagecraft::traces
