// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/precision_torch.h"

#include <utility>

namespace stagecraft::runtime {

at::Tensor trainable(at::Tensor values)
{
    values.requires_grad_();
    if (values.scalar_type() != at::kFloat) values.set_grad_dtype(at::kFloat);
    return values;
}

at::ScalarType gradientType(const at::Tensor& parameter) { return parameter.grad_dtype().value_or(parameter.scalar_type()); }

} // namespace stagecraft::runtime
