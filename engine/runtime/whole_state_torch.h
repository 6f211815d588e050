// SPDX-License-Identifier: Apache-2.0
//
// What the replicas of a run divide, as a whole: for the check, a checkpoint or a sample. Between two steps, while no rank executes; on
// no rank's books. Private to the runtime.
//
//   const std::vector<at::Tensor> weights = wholeWeights(replicas, place); // as the stage's parameters()
#pragma once

#include "engine/runtime/pipeline_torch.h"

#include <string_view>
#include <vector>

namespace stagecraft::runtime {

// Of a stage of the first replica. Its own tensors where it has all of them, else new ones.
std::vector<at::Tensor> wholeWeights(const Replicas& replicas, const Place& place);

// What the optimizers keep of a stage, for all that is updated (StageModule::updated()).
struct WholeState {
    std::string_view name;
    std::vector<at::Tensor> ofParameters;
};
std::vector<WholeState> wholeState(const Replicas& replicas, const Place& place);

} // namespace stagecraft::runtime
