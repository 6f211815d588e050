// SPDX-License-Identifier: Apache-2.0
//
// A partition as Megatron-LM's --pipeline-model-parallel-layout writes it: a letter per layer, E an embedding, L a head with the loss, t
// any other layer, and | between two stages. A letter or | may stand with a number of repetitions, and so may a group in parentheses;
// commas mean nothing. Stages stand in their order, which is that of Megatron-LM's virtual pipeline: chunk 0 of every rank, then chunk 1.
//
//   layoutOf(model, {4, 2, 2, 2, 1}) == "Et*3|(tt|)*3,L"       of an embedding, nine blocks and a head
//   partitionOfLayout(model, "Et*3|(tt|)*3,L").value() == Partition{4, 2, 2, 2, 1}
//
// Read as Megatron-LM reads it, but for what no plan has: stages without layers, its letter m (multi-token prediction), and a group with
// two numbers. A model without an embedding or a head has no E or L here, and Megatron-LM asks for both.
#pragma once

#include "engine/model/model.h"

#include <string>
#include <string_view>

namespace stagecraft::engine {

std::string layoutOf(const ModelSpec& model, const Partition& partition);

// An error names the place in the text, or the layer of the model that it does not have.
Expected<Partition> partitionOfLayout(const ModelSpec& model, std::string_view layout);

} // namespace stagecraft::engine
