// SPDX-License-Identifier: Apache-2.0
//
// Costs are data: what each stage's actions take, and what they hold. Assumed, estimated from a model or measured by a
// run, it is the same table; the origin travels with it and is shown.
#pragma once

#include "engine/simulate/machine_model.h"
#include "traces/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::engine {

// One stage (a chunk of a rank), one micro-batch.
struct StageCosts {
    TimeNs forward = 0;
    TimeNs backward = 0;   // full backward
    TimeNs inputGrad = 0;  // I
    TimeNs weightGrad = 0; // W
    TimeNs overlap = 0;    // OVERLAP_F_B of this stage's forward and backward; pairs of two stages save in proportion
    TimeNs optimizer = 0;  // once a step; 0: not simulated
    Bytes activationBytes = 0; // kept from F until B (or I, see wgradBytes)
    Bytes wgradBytes = 0;      // the part that stays until W
    Bytes weightBytes = 0;
    Bytes gradientBytes = 0;
    Bytes optimizerBytes = 0;
    Bytes inputBytes = 0;  // of one micro-batch; what a stage keeps that computes its activations again
    Bytes outputBytes = 0; // of one micro-batch, to the next stage; its gradient comes back with as many

    bool operator==(const StageCosts&) const = default;
};

struct CostTable {
    std::vector<StageCosts> stages;
    TimeNs transfer = 0;       // of the largest boundary tensor between two ranks of a node: latency + bytes/bandwidth
    Link inside{};             // the two parts of it
    MachineModel machine{};
    Sharding sharding = Sharding::None;
    Bytes tiedBytes = 0; // of the gradient that the first and the last stage sum between them (engine/model/tied.h)
    // Of slices of a sequence, where they differ: by slice, factors on the mean slice that the stages above tell; empty: 1 each.
    std::vector<double> sliceTime = {};
    std::vector<double> sliceSize = {}; // of activations and of what is handed over
    double jitter = 0;         // relative standard deviation of every action's time (normal, cut at 3 sigma, seeded)
    std::uint64_t seed = 1;
    std::string origin;        // "assumed", "estimated from the model at 50 GFLOP/s", "measured: ..."

    bool operator==(const CostTable&) const = default;
};

} // namespace stagecraft::engine
