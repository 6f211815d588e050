// SPDX-License-Identifier: Apache-2.0
//
// A sweep: the figures of a plan's step while one quantity varies, for one or several schedules, with the closed formula beside
// each figure where there is one. Every point is a simulation of its own.
//
//   SweepRequest request{.plan = plan, .schedules = {"gpipe", "1f1b"}, .axis = parseSweepAxis("microbatches=1..1024*2").value()};
//   Sweep sweep = runSweep(request).value();
//   sweep.series[1].points[3].bubbleMakespan            simulated, 1f1b with m = 8
//   sweep.series[1].points[3].forms.bubbleMakespan      (p−1)/(m+p−1)
//
// Chunks and slices stay as the plan has them where a schedule takes that number, else they are the nearest it takes, so that
// schedules of different shape can stand in one plot; SweepSeries tells the number. Points that a schedule refuses are left out, with
// the reason.
//
// Micro-batch size b at a fixed batch of B samples: m = B/b; a plan's times and sizes are those of its own micro-batch (of
// model.microbatch_rows samples; 1 without a model) and grow with b. With `fixedPerAction` every forward and backward costs that much
// beside, so that there is an optimum (see bestMicrobatchSize()).
//
// Scaling over ranks: strong keeps model and batch, so that a rank's share shrinks with p; weak keeps the share of a rank, so that the
// model grows with p. The speed-up is against one rank that does the whole work without waiting. Each rank does what a rank of the
// plan does on average; only costs that come from a model are taken from a new partition (strong).
// Amdahl's and Gustafson's lines take the share of the work that one rank does alone. Unless given it follows from the schedule's
// closed form with free transfers, the bubble over ideal of p ranks divided by p−1: 1/m for GPipe and 1F1B, 1/(v·m) with chunks,
// (F+I−W)/((F+I+W)·m) for ZB-H1, whose weight gradients fill what would be serial. It is the least of all points, so that the line
// bounds them. A schedule without such a form has no line.
#pragma once

#include "engine/explain/closed_forms.h"
#include "engine/explain/sweep_axis.h"
#include "engine/plan/plan.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stagecraft::engine {

enum class Scaling : std::uint8_t { None, Strong, Weak };

struct SweepRequest {
    Plan plan;
    std::vector<std::string> schedules; // families' names; empty: the plan's own, which may be custom
    SweepAxis axis;
    long long batch = 0;       // MicrobatchSize: samples of a step; 0: the plan's own
    TimeNs fixedPerAction = 0; // beside each action's time
    Scaling scaling = Scaling::None; // with SweepQuantity::Ranks only
    std::optional<double> serialShare = {}; // 0..1, of Amdahl's and Gustafson's line
};

struct SweepPoint {
    double value = 0; // of the quantity
    TimeNs makespan = 0;
    TimeNs span = 0; // the longest of a rank
    double work = 0; // ns
    double bubbleMakespan = 0;
    double bubbleSpan = 0;
    double bubbleOverIdeal = 0;
    double peakActivations = 0; // micro-batches of a whole rank, the fullest rank's
    Bytes peakMemory = 0;       // likewise
    double throughput = 0;      // Sweep::throughputUnit
    ClosedForms forms = {};
    double speedup = 0; // with scaling only, as the two below
    double efficiency = 0;
    double law = 0; // Amdahl's or Gustafson's speed-up; 0: there is no line

    bool operator==(const SweepPoint&) const = default;
};

struct LeftOut {
    double value = 0;
    std::string reason;
    bool legal = false; // a plan may hold the value, but the step cannot be carried out (a deadlock)

    bool operator==(const LeftOut&) const = default;
};

struct SweepSeries {
    std::string schedule;
    std::string title; // "Interleaved 1F1B, v=2"
    std::optional<double> serialShare = {}; // of the line, with scaling only; nothing where there is none
    std::vector<SweepPoint> points; // ascending in value
    std::vector<LeftOut> leftOut;
    std::optional<ClosedForm> bestSize = {}; // MicrobatchSize: b* by its formula

    bool operator==(const SweepSeries&) const = default;
};

struct Sweep {
    SweepAxis axis;
    Scaling scaling = Scaling::None;
    std::string fixed;          // what stays: "p=4, F 1 ms, B 2 ms"
    std::string throughputUnit; // "micro-batches/s", "rows/s", "samples/s"
    std::vector<SweepSeries> series;
    std::vector<std::string> notes; // what a reader of the figures should know

    bool operator==(const Sweep&) const = default;
};

struct SweepProgress {
    std::size_t done = 0;
    std::size_t total = 0;
    std::string_view schedule; // of the point that comes next; empty at the end
    double value = 0;
};

// `observe` is called in this thread before each point and once at the end. `stop` may be asked for by any thread; the sweep then ends
// with an error. Other errors are requests that cannot be swept: a schedule that is unknown or named twice, a quantity that none of the
// schedules goes by, scaling of another quantity than ranks, a batch that is less than one sample.
Expected<Sweep> runSweep(const SweepRequest& request, const std::function<void(const SweepProgress&)>& observe = {},
                         const std::stop_token& stop = {});

// The point of a series with the highest throughput; nothing where it has none.
const SweepPoint* fastest(const SweepSeries& series);

} // namespace stagecraft::engine
