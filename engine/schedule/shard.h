// SPDX-License-Identifier: Apache-2.0
//
// Actions for weights and gradients that replicas divide, as PyTorch's lowering adds them (_add_unshard_reshard, _add_reduce_grad):
//   1UNSHARD      gathers the weights of stage 1; its actions stand behind
//   1RESHARD      gives them up again
//   1REDUCE_GRAD  sums its gradients over the replicas, right behind the last B or W of the stage
// A rank keeps the weights of the stages that it uses next, three at most (one goes forward, one backward, one is gathered
// meanwhile): before each action those that it will use soon and has not are gathered, after those have been given up which are no
// longer among them. Where several are given up at once, the lower stage goes first (PyTorch: in the order of a Python set).
//
//   Schedule fsdp = shard(generate({.name = "looped-bfs", .chunks = 4}).value(), Sharding::Zero3);
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/schedule/sharding.h"

namespace stagecraft::engine {

inline constexpr int kActiveStages = 3; // PyTorch's max_active_stages

// What the level asks for: Zero3 gathers weights and reduces gradients, Zero2 reduces gradients; what Zero1 divides is summed at the
// end of the step and needs no action. A schedule that has such actions already stays as it is. SEND and RECV keep their places.
Schedule shard(Schedule schedule, Sharding sharding);

// The passes by themselves.
Schedule addUnshardReshard(Schedule schedule, int activeStages = kActiveStages);
Schedule addReduceGrad(Schedule schedule);

[[nodiscard]] bool hasSharding(const Schedule& schedule);
[[nodiscard]] bool gathersWeights(const Schedule& schedule); // has UNSHARD
[[nodiscard]] bool reducesGradients(const Schedule& schedule); // has REDUCE_GRAD
Schedule withoutSharding(Schedule schedule);

constexpr bool isSharding(ActionKind kind)
{
    return kind == ActionKind::Unshard || kind == ActionKind::Reshard || kind == ActionKind::ReduceGrad;
}
// Needs the stage's weights, so that its list tells when they must be there.
constexpr bool usesWeights(ActionKind kind)
{
    return (kind >= ActionKind::Forward && kind <= ActionKind::Overlap) || kind == ActionKind::Recompute;
}

} // namespace stagecraft::engine
