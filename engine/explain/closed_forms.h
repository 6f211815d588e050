// SPDX-License-Identifier: Apache-2.0
//
// What theory says of a schedule with p ranks, v chunks, m micro-batches and k slices, for equal stages: each formula as text and
// its value, to stand beside what was simulated or measured. Pure functions; any thread.
//
//   const PipelineSpec pipeline{.schedule = "1f1b", .ranks = 4, .microbatches = 5, ...};
//   closedForms(pipeline).bubbleMakespan->text            "(p−1)/(m+p−1)"
//   closedForms(pipeline).bubbleMakespan->value           0.375
//   closedForms(pipeline, FormTimes{...}).makespan->value  in the unit of the times
//   formsBeside(pipeline, costs)                           those that a simulation with these costs must agree with
//
// A form is left out where its conditions do not hold (each stands beside its formula in the source) and where nobody has published
// or derived one: the automatic schedules, Hanayo, the V schedules with other than unit times, recomputing in most schedules, whatever
// goes to the host.
// Sources: GPipe arXiv 1811.06965 sec. 2.3; 1F1B and interleaving arXiv 2104.04473 sec. 2.2; looped breadth-first arXiv 2211.05953;
// ZB-H1, ZB-H2, ZB-V arXiv 2401.10241 table 2, sec. 6 and appendix H; V-Half and V-Min arXiv 2405.15362; Chimera arXiv 2107.06925
// table 2; DualPipe arXiv 2412.19437; Seq1F1B arXiv 2406.03488; eager 1F1B arXiv 2211.05322.
#pragma once

#include "engine/plan/plan.h"

#include <optional>
#include <string>

namespace stagecraft::engine {

struct ClosedForm {
    std::string text; // "(p−1)/(m+p−1)"
    double value = 0;

    bool operator==(const ClosedForm&) const = default;
};

// Times of one rank for one whole micro-batch, through all its chunks and slices; any unit, the same for all.
struct FormTimes {
    double forward = 1;
    double inputGrad = 1;
    double weightGrad = 1;
    double backward = 2;
    double overlap = 3;  // of a forward and a backward together
    double transfer = 0; // of one hop between two ranks (of a slice, where sequences are cut)
};

struct ClosedForms {
    std::optional<ClosedForm> makespan; // in the unit of the times; only where times were given
    std::optional<ClosedForm> span;     // the longest of a rank, likewise
    std::optional<ClosedForm> bubbleMakespan;
    std::optional<ClosedForm> bubbleSpan;
    std::optional<ClosedForm> bubbleOverIdeal;
    std::optional<ClosedForm> peakActivations; // micro-batches of a whole rank, the fullest rank's

    bool operator==(const ClosedForms&) const = default;
};

// Without times: free transfers, and the forms that hold whatever a forward and a backward take.
ClosedForms closedForms(const PipelineSpec& pipeline, const std::optional<FormTimes>& times = {});

// The pipeline's times by a table whose stages and slices are equal, do not jitter and take no time for an optimizer step, on equal
// ranks whose transfers occupy nothing and with nothing beside them; nothing otherwise.
std::optional<FormTimes> equalTimes(const CostTable& costs, const PipelineSpec& pipeline);

// With equalTimes(), where there are any; else the peak alone, which is the order's whatever its actions take.
ClosedForms formsBeside(const PipelineSpec& pipeline, const CostTable& costs);

// The micro-batch size that makes a step of B samples shortest when every action costs `fixed` beside its time, for the schedules
// whose bubble is (p−1)(F+B)/v, and where nothing is computed again or goes to the host: T(b) = (B/b + (p−1)/v)(2vα + 2βb) has its least value at b* = v·√(B·α/((p−1)·β)), with β the mean time
// of a rank's forward and backward per sample and chunk-free. Nothing for other schedules, one rank or no fixed cost.
std::optional<ClosedForm> bestMicrobatchSize(const PipelineSpec& pipeline, double batch, double fixed, double perSample);

// Speed-up on p ranks when the share s of the work is done by one rank at a time: Amdahl (1967), for work that stays the same, and
// Gustafson (1988), for work that grows with p. For GPipe and 1F1B with free transfers the first is exact with s = 1/m:
// 1/(1/m + (1−1/m)/p) = m·p/(m+p−1).
double amdahlSpeedup(double serial, double ranks);
double gustafsonSpeedup(double serial, double ranks);

} // namespace stagecraft::engine
