// SPDX-License-Identifier: Apache-2.0
//
// The options that change a plan for one call: --ranks, --forward, --stage-scale and so on. They stay text until they are
// applied, so that every message names the option, the value and what is allowed.
//
//   Overrides overrides;
//   addOverrides(verb, overrides);
//   ...
//   Expected<Plan> plan = withOverrides(openPlan(name).value(), overrides);
#pragma once

#include "app/cli/command.h"
#include "engine/plan/plan.h"

#include <optional>

namespace stagecraft::cli {

struct Overrides {
    using Text = std::optional<std::string>;

    Text schedule; // a family's name, or a file in the text form
    Text ranks, chunks, partition, microbatches, slices, slicing, attentionShare, group, concatenation, offload, sharding;
    Text forward, backward, inputGrad, weightGrad, overlap, stageScale;
    Text latency, bandwidth, boundaryBytes;
    Text activationBytes, wgradBytes, memoryLimit;
    Text send, jitter, seed;
    Text optimizer, recompute, precision;
    // of the machine (machine_overrides.cpp)
    Text ranksPerNode, nodeLatency, nodeBandwidth, transfers, rankScale, lateStart, memory, hostLatency, hostBandwidth;
    Text replicas, replicaLatency, replicaBandwidth, bucketBytes;
    bool verticalSync = false;
    bool sharedLinks = false;
    bool barrier = false;
};

void addOverrides(CLI::App& verb, Overrides& overrides);

// Errors are wrong use: a value that cannot be read, or options that do not go together. Whether the changed plan can be
// carried out is for checkPlan() and what follows to say.
// Does --schedule name a file? openPlan() reads it: what is wrong inside is a failure, not wrong use.
bool namesScheduleFile(const Overrides& overrides);

Expected<engine::Plan> withOverrides(engine::Plan plan, const Overrides& overrides);

// A whole number from `least` to `most`; the error names the option.
Expected<long long> parseWhole(std::string_view option, std::string_view text, long long least, long long most);

} // namespace stagecraft::cli
