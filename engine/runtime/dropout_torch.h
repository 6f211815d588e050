// SPDX-License-Identifier: Apache-2.0
//
// Dropout whose choice follows from where it is in the run's data (data_place.h). Private to the runtime.
//
//   Tensor y = dropOut(x, 0.1, layer, at);
#pragma once

#include "engine/runtime/data_place.h"

#include <ATen/core/Tensor.h>

namespace stagecraft::runtime {

// Keeps a byte for each value for its backward. `layer`: its place in the model.
at::Tensor dropOut(const at::Tensor& x, double probability, std::uint64_t layer, const DataPlace& at);

} // namespace stagecraft::runtime
