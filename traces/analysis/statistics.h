// SPDX-License-Identifier: Apache-2.0
//
// How long actions and hand-offs took, by which a measured run becomes the costs of the next simulation. Paused time is
// left out.
//
//   for (const ActionStatistics& s : actionStatistics(trace)) use(s.stage, s.kind, s.median);
//   std::optional<TimeNs> transfer = medianHandOff(trace);
#pragma once

#include "traces/store/trace.h"

#include <limits>
#include <optional>
#include <vector>

namespace stagecraft::traces {

struct ActionStatistics {
    Stage stage{};
    Flow flow = Flow::Single; // stages of two directions are counted apart
    ActionKind kind = ActionKind::None;
    std::size_t count = 0;
    TimeNs median = 0;
    TimeNs p95 = 0; // at least 95 % took so long or less
    TimeNs least = 0;
    TimeNs most = 0;

    bool operator==(const ActionStatistics&) const = default;
};

struct StatisticsOptions {
    Step from{std::numeric_limits<std::int32_t>::min()}; // earlier steps are left out, for a first step that warms up
};

// One for each stage and kind of action on the compute lanes, by stage, direction and kind.
std::vector<ActionStatistics> actionStatistics(const Trace& trace, const StatisticsOptions& options = {});

// Median over the data edges between ranks of the time from the producer's end until the data could be used. Nothing where
// no edge crosses ranks.
std::optional<TimeNs> medianHandOff(const Trace& trace, const StatisticsOptions& options = {});

} // namespace stagecraft::traces
