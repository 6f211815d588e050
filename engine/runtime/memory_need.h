// SPDX-License-Identifier: Apache-2.0
//
// How much memory a run will hold at once, by its plan, and whether the machine has it. The estimate adds the peaks of the
// ranks, which are in one process here, and leaves out what an operation needs for itself.
//
//   const Expected<std::string> fits = judgeMemory(memoryNeed(plan, schedule, costs), hostMemory());
//   if (!fits.ok()) return fits.error();               // it surely cannot run
//   if (!fits.value().empty()) warn(fits.value());     // it may not fit
#pragma once

#include "engine/plan/plan.h"
#include "engine/probe/host_memory.h"

#include <string>
#include <vector>

namespace stagecraft::runtime {

// Bytes, as numbers that do not overflow.
struct MemoryNeed {
    double standing = 0;    // weights, gradients, optimizer state
    double data = 0;        // inputs and targets of all micro-batches
    double activations = 0; // each rank's most, added up
    double gathered = 0;    // the same of other replicas' parts of weights
    double check = 0;       // weights, gradients and data of the sequential model that gradients are compared with

    [[nodiscard]] double lasting() const { return standing + data + check; } // all held at once in the first step
    [[nodiscard]] double all() const { return lasting() + activations + gathered; }
};

// `schedule` has computing actions alone, or none where activations are not asked for; the plan has a model.
MemoryNeed memoryNeed(const engine::Plan& plan, const engine::Schedule& schedule, const engine::CostTable& costs);

// The most that a rank keeps from forwards to backwards, wherever it lies: that follows from the order of its own actions alone.
double peakActivations(const std::vector<engine::Action>& order, const engine::CostTable& costs);

// The text is empty where all fits into what is available. An error only where the run surely needs more than there is:
// what lasts, without any activation. A machine that does not tell its memory is big enough.
engine::Expected<std::string> judgeMemory(const MemoryNeed& need, const HostMemory& memory);

} // namespace stagecraft::runtime
