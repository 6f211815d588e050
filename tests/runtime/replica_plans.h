// SPDX-License-Identifier: Apache-2.0
//
// Plans of several replicas.
//
//   const Plan plan = replicated(littleTransformer("1f1b", 2, 1, RunMode::Threads), 2);
//   const Plan other = linear("zb-h1", 2, 2);
#pragma once

#include "tests/runtime/little_plan.h"
#include "traces/store/trace.h"

#include <map>
#include <set>
#include <string>

namespace stagecraft::runtime {

inline engine::Plan replicated(engine::Plan plan, int replicas)
{
    plan.machine.replicas = replicas;
    plan.machine.bucketBytes = 16 << 10;
    plan.run.steps = 2;
    return plan;
}

// Linear layers alone: LibTorch takes the same kernels for them wherever they are.
inline engine::Plan linear(const std::string& schedule, int ranks, int replicas, engine::RunMode mode = engine::RunMode::Threads)
{
    engine::Plan plan;
    plan.model.layers.assign(4, engine::Linear{16, 16, engine::Activation::None});
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = schedule, .ranks = ranks, .chunks = 1, .microbatches = 4, .customSchedule = {}};
    plan.machine.replicas = replicas;
    plan.machine.bucketBytes = 1; // one for each parameter
    plan.run.mode = mode;
    plan.run.steps = 2;
    plan.run.check = engine::CheckMode::All;
    return plan;
}

// What a run has on its lanes of collectives, by rank.
inline std::map<int, std::multiset<std::string>> collectivesOf(const traces::Trace& trace)
{
    std::map<int, std::multiset<std::string>> ran;
    for (const traces::Lane& lane : trace.lanes())
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.info().kind == traces::LaneKind::Collective) ran[lane.info().rank.value].insert(toText(lane.action(i)));
    return ran;
}

} // namespace stagecraft::runtime
