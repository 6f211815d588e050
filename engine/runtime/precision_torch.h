// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a run's precision. Private to the runtime.
//
//   Tensor weight = trainable(at::empty({4, 3}, scalarType(Precision::Bf16)));
//   // after two backwards: weight.grad() is float32, the sum of two bfloat16 gradients
#pragma once

#include "engine/model/precision.h"

#include <ATen/core/Tensor.h>

namespace stagecraft::runtime {

// Where tensors live, and of what type they are.
struct TensorKind {
    c10::Device device = c10::DeviceType::CPU;
    engine::Precision precision = engine::Precision::Fp32;
};

inline at::ScalarType scalarType(engine::Precision precision) { return precision == engine::Precision::Bf16 ? at::kBFloat16 : at::kFloat; }

// Becomes a leaf that asks for gradients. Of whatever type it is, autograd adds them up in float32: the sum of many small gradients would
// not grow any more in bfloat16.
at::Tensor trainable(at::Tensor values);

// The type of the leaf's gradient.
at::ScalarType gradientType(const at::Tensor& parameter);

} // namespace stagecraft::runtime
