// SPDX-License-Identifier: Apache-2.0
//
// The figures of one step of a trace, from its slices and edges alone: the three bubbles, busy and idle time of each rank,
// peak of live activations, and the cause of every gap. Formulas (names as in the Zero-Bubble paper, arXiv 2401.10241
// sec. 5.3, and Megatron-LM, arXiv 2104.04473 sec. 2.2):
//
//   busy(r)            computing time of rank r (slices of its compute lane that compute; communication does not count)
//   work               mean of busy over the ranks
//   makespan           last end - first start over all ranks of the step
//   span(r)            last end - first start of rank r
//   bubble_makespan    1 - work/makespan            GPipe's and 1F1B's (p-1)/(m+p-1)
//   bubble_span        1 - work/max span            the Zero-Bubble papers'
//   bubble_over_ideal  makespan/work - 1            Megatron's (p-1)/m
//   idle(r)            makespan - busy(r)
//
// Paused time (Trace::pauses) is left out of every one of them.
//
//   StepFigures f = stepFigures(trace, Step{0}).value();
//   f.bubbleMakespan == 0.375
#pragma once

#include "traces/store/trace.h"

#include <array>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::traces {

// Why a rank is idle; every idle interval gets exactly one, the first that matches.
enum class GapCause : std::uint8_t {
    Filling,      // before the rank's first action of the step
    Draining,     // after its last
    Transfer,     // the producer had finished, its data was on the way
    WaitForStage, // the producer had not finished
    Memory,       // waited for memory that another action gave back
    HostOverhead, // everything was there; the host had not started the action yet (measured traces)
    Unexplained,  // no edge tells
};
inline constexpr std::size_t kGapCauseCount = 7;
std::string_view gapCauseText(GapCause cause); // "filling", "draining", "transfer", "waiting for stage", ...
std::string_view gapCauseKey(GapCause cause);  // "filling", "draining", "transfer", "waiting", "memory", "host", "unexplained"

struct Gap {
    Rank rank{};
    Interval span{};      // paused time inside is cut out: a pause splits a gap
    GapCause cause = GapCause::Unexplained;
    Stage stage{};        // WaitForStage and Transfer: stage of the producer
    SliceRef producer{};  // WaitForStage and Transfer: the slice waited for
    SliceRef before{};    // the slice that ends the gap; for Draining the last slice of the rank

    bool operator==(const Gap&) const = default;
};

struct RankFigures {
    Rank rank{};
    TimeNs busy = 0;
    TimeNs idle = 0;
    TimeNs firstStart = 0;
    TimeNs lastEnd = 0;
    double peakActivations = 0; // micro-batches of a whole rank: +1/v at F, -1/v at B or W; 1/(v slices) of each
    Bytes peakMemory = 0;       // largest sum of the rank's memory series within the step; 0 where none is known
    std::array<TimeNs, kGapCauseCount> idleByCause{}; // sums to idle
};

struct StepFigures {
    Step step{};
    Interval span{};
    TimeNs makespan = 0;
    TimeNs maxSpan = 0;
    double work = 0; // ns; a mean, so not whole
    double bubbleMakespan = 0;
    double bubbleSpan = 0;
    double bubbleOverIdeal = 0;
    std::vector<RankFigures> ranks;
    // Where the pipeline is full: from the moment every rank has begun until the first rank has done its last action.
    // Empty (begin == end) where the pipeline never fills.
    Interval steady{};
};

// Steps that have computing slices, ascending.
std::vector<Step> stepsOf(const Trace& trace);

// An error names the step when it has no computing slice. Passes over the whole trace: ask for many steps at once.
Expected<StepFigures> stepFigures(const Trace& trace, Step step);
std::vector<StepFigures> allStepFigures(const Trace& trace); // of stepsOf(trace)

class StepIndex;

struct StepAnalysis {
    std::vector<Gap> gaps;              // as gapsOf()
    std::optional<StepFigures> figures; // as stepFigures()
};
// Both at once, for who works at a long step beside something else; nullopt when it was stopped.
std::optional<StepAnalysis> analyseStep(const Trace& trace, const StepIndex& index, Step step, const std::stop_token& stop);

// All idle intervals of the step by rank and time; for each rank they and the busy time tile the step's makespan.
std::vector<Gap> gapsOf(const Trace& trace, Step step);

} // namespace stagecraft::traces
