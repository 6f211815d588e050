// SPDX-License-Identifier: Apache-2.0
//
// Whether NCCL sums for the replicas of a run in one process, and which NCCL a run takes.
//
//   if (auto sums = chooseSums(runnable, options); !sums.ok()) return sums.error();
#pragma once

#include "engine/runtime/local_session.h"
#include "engine/runtime/runnable.h"

namespace stagecraft::runtime {

// Errors say why there is none.
engine::Expected<const NcclSource*> ncclOf(const LocalSessionOptions& options);

// Whether the plan's transport may say how replicas sum: on GPUs, each rank by a thread.
bool sumsByTransport(const RunnablePlan& runnable);

// Before the run: its source of NCCL and a note of how replicas sum. An error where the plan asks for what cannot be.
engine::Expected<void> chooseSums(RunnablePlan& runnable, const LocalSessionOptions& options);

} // namespace stagecraft::runtime
