// SPDX-License-Identifier: Apache-2.0
//
// The latest steps of a stream of records, for who follows a run of any length in memory that stays flat. Two traces take turns: once
// the newer one holds `slices` slices and a step ends, it becomes the older one, and the older one is let go. Lanes, texts, notes,
// pauses, lost events, clock readings and the last value of every memory series go over to the next. One thread.
//
//   RecentTrace recent(1 << 16);
//   for (const Record& record : records) recent.take(record).ok();
//   recent.trace().steps()         // the last ones, whole
//   recent.droppedSteps()          // those before them
#pragma once

#include "traces/store/record.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace stagecraft::traces {

class RecentTrace {
public:
    static constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();

    explicit RecentTrace(std::size_t slices = kEverything) : limit_(slices) {}

    // As apply(). An edge from or to a slice that was let go is left out.
    Expected<void> take(const Record& record);

    // The fuller one of the two, with its steps from the first to the last of them.
    [[nodiscard]] const Trace& trace() const { return fuller() ? newer_ : older_; }
    [[nodiscard]] Trace release() { return std::move(fuller() ? newer_ : older_); }
    [[nodiscard]] const std::vector<std::string>& notes() const { return newer_.notes(); } // all of them
    [[nodiscard]] const std::vector<std::string>& information() const { return newer_.information(); } // the same
    [[nodiscard]] std::size_t takenSlices() const { return slices_; }
    [[nodiscard]] std::size_t droppedSteps() const { return steps_ - trace().steps().size(); }

private:
    // Whether the newer one says more. Of a run that goes on, each has its time.
    [[nodiscard]] bool fuller() const { return older_.steps().size() <= newer_.steps().size(); }
    void turn();

    std::size_t limit_;
    Trace older_;
    Trace newer_;
    std::vector<std::uint32_t> letGo_; // by lane: slices of the stream before the newer trace
    std::size_t slices_ = 0;           // of the stream
    std::size_t steps_ = 0;
};

} // namespace stagecraft::traces
