// SPDX-License-Identifier: Apache-2.0
//
// The partition whose largest stage holds as little memory as can be, and among several such the one whose slowest stage has the fewest
// FLOPs. Pure.
//
//   const Partition partition = memoryPartition(plan).value();
//
// A stage holds its weights, with the versions that an asynchronous schedule keeps, its optimizer state, its gradients once they are
// there, and its activations as often as the schedule has them in flight there: of whole micro-batches, of what a later weight gradient
// needs, and of inputs from which the rest is computed again; what waits for a transfer is not counted. It is exact where a rank has one stage, in one direction. Where it has
// several, whose peaks may come at different moments, each stage counts by itself.
#pragma once

#include "engine/plan/plan.h"

namespace stagecraft::engine {

// By the plan's model and schedule, whatever partition it has. Precondition: stages from 1 to the number of layers. Errors: a schedule that
// cannot be made.
Expected<Partition> memoryPartition(const Plan& plan);

} // namespace stagecraft::engine
