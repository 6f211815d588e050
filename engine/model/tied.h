// SPDX-License-Identifier: Apache-2.0
//
// Tied embeddings: the head's matrix is the embedding's table (Press and Wolf, arXiv 1608.05859), one parameter with two uses. The
// model has it once. In a pipeline of several stages the first and the last have a copy each, whose gradients are summed before
// the update, so that both stay equal (as in Megatron-LM, arXiv 1909.08053).
//
//   tiedValues(model)                 // values of the table; 0 where the model ties nothing
//   heldCounts(model, 4).back()       // the head's counts, with the copy that the last of 4 stages holds
#pragma once

#include "engine/model/model.h"

#include <cstdint>
#include <vector>

namespace stagecraft::engine {

std::int64_t tiedValues(const ModelSpec& model);

// layerCounts() as stages hold the layers: in more than one, the last layer has its own copy of a tied table.
std::vector<LayerCounts> heldCounts(const ModelSpec& model, std::size_t stages, Precision precision = Precision::Fp32);

// An error says why the first and the last layer cannot share a table.
Expected<void> checkTied(const ModelSpec& model);

} // namespace stagecraft::engine
