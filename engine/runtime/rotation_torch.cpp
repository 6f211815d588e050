// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rotation_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/autograd/custom_function.h>

namespace stagecraft::runtime {

namespace {

using at::Tensor;

constexpr double kBase = 10000;

// A pair of values is a complex number, and turning it is a product, in float32 (as in Llama). `direction`: 1, or -1 to turn back.
Tensor turned(const Tensor& x, std::int64_t firstPosition, double direction)
{
    const std::int64_t values = x.size(-1);
    const auto doubles = x.options().dtype(at::kDouble);
    const Tensor speed = at::pow(kBase, at::arange(0, values, 2, doubles) * (-1.0 / static_cast<double>(values)));
    const Tensor angle = at::outer(at::arange(firstPosition, firstPosition + x.size(-2), doubles), speed * direction);
    const Tensor factor = at::polar(at::ones_like(angle), angle).to(at::kComplexFloat);
    const Tensor dense = (x.stride(-1) == 1 ? x : x.contiguous()).to(at::kFloat);
    return at::view_as_real(at::view_as_complex(dense.unflatten(-1, {values / 2, 2})) * factor).flatten(-2).to(x.scalar_type());
}

struct Rotation : torch::autograd::Function<Rotation> {
    static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, std::int64_t firstPosition)
    {
        context->saved_data["first"] = firstPosition;
        return turned(x, firstPosition, 1);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list outputGradients)
    {
        return {turned(outputGradients[0], context->saved_data["first"].toInt(), -1), Tensor()};
    }
};

} // namespace

Tensor turnedByPosition(const Tensor& x, std::int64_t firstPosition) { return Rotation::apply(x, firstPosition); }

} // namespace stagecraft::runtime
