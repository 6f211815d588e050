// SPDX-License-Identifier: GPL-3.0-or-later
//
// The bounded box between the thread that reads a worker's stream and the window, which empties it at each tick. When the
// window falls behind, slices, edges and memory points beyond the capacity are counted and dropped; what a session says
// and what names things (info, lanes, texts, steps) always gets in. A lane that lost a slice gets no edges any more, for
// edges name slices by their number in the lane. Thread-safe.
#pragma once

#include "traces/store/record.h"

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

namespace stagecraft::ui {

class RecordInbox {
public:
    static constexpr std::size_t kCapacity = std::size_t{1} << 18; // about a minute of a busy run at 4,000 events/s

    explicit RecordInbox(std::size_t capacity = kCapacity) : capacity_(capacity) {}

    void push(std::vector<traces::Record>&& records);

    struct Contents {
        std::vector<traces::Record> records;
        std::int64_t lost = 0; // dropped since the last take()
    };
    Contents take();

    // Forgets which lanes lost slices: a new run numbers its slices anew.
    void beginRun();

private:
    bool keep(const traces::Record& record); // under mutex_

    const std::size_t capacity_;
    std::mutex mutex_; // guards all below
    std::vector<traces::Record> records_;
    std::set<traces::LaneId> lossyLanes_;
    std::int64_t lost_ = 0;
};

} // namespace stagecraft::ui
