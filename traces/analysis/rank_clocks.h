// SPDX-License-Identifier: Apache-2.0
//
// The clocks of ranks in processes of their own, from readings of how they stand to the trace's clock (docs/processes.md).
//
//   const RankClock clock(readings);                       // of one rank
//   TimeNs shown = clock.onTrace(slice.begin);
//   for (const ClockSummary& s : clockSummaries(trace)) print(s.rank, s.offset, s.error, s.driftPpm);
#pragma once

#include "traces/store/trace.h"

#include <optional>
#include <vector>

namespace stagecraft::traces {

// Between two readings the offset goes in a straight line, outside of them it stays; without any it is 0. Never goes back.
class RankClock {
public:
    explicit RankClock(std::vector<ClockReading> readings);
    [[nodiscard]] TimeNs onTrace(TimeNs own) const;

private:
    std::vector<ClockReading> readings_; // by time
};

// What a person wants to know of a rank's clock.
struct ClockSummary {
    Rank rank{};
    std::string host;
    TimeNs offset = 0;              // of the last reading
    TimeNs error = 0;               // the largest of the readings
    std::optional<double> driftPpm; // how much faster the trace's clock runs, in millionths; nothing with one reading
    bool shared = false;            // it is the trace's own clock
};
std::vector<ClockSummary> clockSummaries(const Trace& trace); // by rank

// "rank 1 on node2: +1.5 ms ± 410 ns, drift 0.3 ppm"
std::string toText(const ClockSummary& clock);

} // namespace stagecraft::traces
