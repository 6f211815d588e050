// SPDX-License-Identifier: Apache-2.0
//
// Two ways to execute one and the same action list. Both return when all steps are done or the run ends early; failures
// are in the control. Private to the runtime.
#pragma once

#include "engine/runtime/step_keeper_torch.h"

namespace stagecraft::runtime {

struct Execution {
    const engine::Plan& plan;
    const engine::Schedule& schedule;
    Pipeline& pipeline;
    RunRecorder& recorder;
    RunControl& control;
    StepKeeper& keeper;
    const Clock& clock;
    const Clock& cpuClock; // of the calling thread
    const engine::CostTable& costs; // emulated: what hand-offs and sums between ranks take
    int firstStep = 0; // others may have been done before, by a run that this one goes on from
};

// A thread per rank; the caller's thread settles pauses meanwhile.
void runOnThreads(const Execution& run);

// On the caller's thread alone: every action by itself, in the order of virtual time.
void runEmulated(const Execution& run);

} // namespace stagecraft::runtime
