// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a run settle together before it starts: that all can, where each computes, how tensors go from GPU to GPU, and by
// what the parts of its trace will know each other. What keeps one from it keeps all.
//
//   Expected<RunnablePlan> runnable = makeRunnable(plan, memory, group, devices);
//   if (auto settled = settleTogether(*group, runnable, options); !settled.ok()) return settled.error();
#pragma once

#include "engine/runtime/local_session.h"
#include "engine/runtime/runnable.h"
#include "engine/transport/process_group.h"

#include <span>
#include <string>
#include <string_view>

namespace stagecraft::runtime {

// What a rank tells the others.
struct RankOffer {
    RankPlace place;
    std::string nccl = {};   // the version that it could take; empty: none
    std::string whyNot = {}; // that
    std::string order = {};  // of the exchanges, as a digest: the ranks make it each for itself
    bool operator==(const RankOffer&) const = default;
};
std::string written(const RankOffer& offer);
RankOffer readOffer(std::string_view text);

struct TransportChoice {
    bool nccl = false;
    std::string note = {}; // for whoever starts the run
    bool operator==(const TransportChoice&) const = default;
};
// The same for all, by what all have told. An error where the plan asks for what cannot be.
Expected<TransportChoice> chooseTransport(const engine::RunSpec& run, std::span<const RankOffer> ranks);

// All processes call it, each with what it has come to by itself.
Expected<void> settleTogether(ProcessGroup& group, Expected<RunnablePlan>& runnable, const LocalSessionOptions& options);

} // namespace stagecraft::runtime
