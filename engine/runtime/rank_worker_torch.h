// SPDX-License-Identifier: Apache-2.0
//
// One rank at its work, the same in a thread and in a process of its own: it goes through its list in order, waits for its input,
// executes, hands its output over; at the end of a step come the optimizers of its stages, then all ranks meet. Two actions that run
// together (OVERLAP_F_B) share the rank between its thread and a second one. Private to the runtime.
//
//   runRank(execution, {handoff, gradients, meeting}, Rank{1});   // on the rank's thread; returns when the run is over for it
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/rank_device_torch.h"
#include "engine/runtime/sum_maker_torch.h"
#include "engine/transport/handoff.h"
#include "engine/transport/step_meeting.h"
#include "engine/transport/wait_graph.h"

#include <vector>

namespace stagecraft::runtime {

// What a rank has to do with the others.
struct RankLinks {
    Handoff<Boundary>& handoff;
    Handoff<std::vector<at::Tensor>>& gradients; // between two copies of weights: gradientBox()
    Handoff<at::Tensor>& norms; // between neighbouring ranks, in the place of stages: towards the last one is forward
    StepMeeting& meeting;
    SumMaker* sums = nullptr; // of the replicas; none where there is one
    WaitGraph* waits = nullptr; // who waits for whom; not owned, may be none
};

// A rank of the execution's replica. Failures go to the run's control, which the rank has left when this returns.
void runRank(const Execution& run, const RankLinks& links, traces::Rank rank);

} // namespace stagecraft::runtime
