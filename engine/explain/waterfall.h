// SPDX-License-Identifier: Apache-2.0
//
// Where a step's time went, told by simulating it again with one obstacle after the other put back in:
//
//   ideal work     |########|                            what a rank computes, in the mean over the ranks
//   structure      |        |###|                        the order itself: equal stages on equal ranks, free transfers
//   imbalance      |            |##|                     stages and ranks as they are
//   communication  |               |####|                transfers, copies and collectives, at what they cost
//   overhead       |                    |#|              jitter, ranks that begin late; of a run: all that no model knows
//   step           |########################|
//
// Each bar is the difference of two simulations of the same order, and the last one closes on the time that is explained, a
// simulation with everything or a measured step. A bar may be negative: what delays a rank can help another.
//
//   Expected<Waterfall> simulated = waterfallOf(schedule, costs);
//   Expected<Waterfall> measured = waterfallOf(trace, traces::Step{2});
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"
#include "traces/store/trace.h"

#include <array>
#include <optional>
#include <stop_token>

namespace stagecraft::engine {

enum class WaterfallPart : std::uint8_t { Ideal, Structure, Imbalance, Communication, Overhead };
inline constexpr std::size_t kWaterfallPartCount = 5;
std::string_view waterfallPartText(WaterfallPart part); // "ideal work", "structure of the schedule", ...
std::string_view waterfallPartKey(WaterfallPart part);  // "ideal_work", "structure", "imbalance", "communication", "overhead"
std::string_view waterfallPartMeaning(WaterfallPart part); // half a sentence, for a tooltip

struct Waterfall {
    std::array<TimeNs, kWaterfallPartCount> bars{}; // by WaterfallPart; they sum up to the total
    TimeNs total = 0;                               // the step's makespan
    bool measured = false;                          // the total is a measured or emulated step, not a simulated one

    [[nodiscard]] TimeNs bar(WaterfallPart part) const { return bars[static_cast<std::size_t>(part)]; }
    bool operator==(const Waterfall&) const = default;
};

// The same costs where hand-offs, copies and collectives take no time, and nobody waits for the other side.
CostTable withoutNetwork(CostTable costs);

// Of a simulated step; four simulations. `measured` is the time of a real step that the costs were taken from. Errors: those of
// simulate().
Expected<Waterfall> waterfallOf(const Schedule& schedule, const CostTable& costs, std::optional<TimeNs> measured = {},
                                const std::stop_token& stop = {});

// Of a step of any trace that has the schedule's actions: its order as it ran, with the median times of its actions and hand-offs
// over the trace's steps (explain/trace_model.h).
Expected<Waterfall> waterfallOf(const traces::Trace& trace, traces::Step step, const std::stop_token& stop = {});

} // namespace stagecraft::engine
