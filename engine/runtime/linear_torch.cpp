// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/linear_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>

namespace stagecraft::runtime {

namespace {

using at::Tensor;

struct LinearIntoGradient : torch::autograd::Function<LinearIntoGradient> {
    static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight,
                          const Tensor& bias)
    {
        context->save_for_backward({x});
        context->saved_data["weight"] = weight; // itself, and not a copy that hooks make of it: its gradient is added to
        return at::linear(x, weight, bias);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   torch::autograd::variable_list outputGradients)
    {
        const torch::autograd::variable_list saved = context->get_saved_variables();
        const Tensor& x = saved[0];
        Tensor weight = context->saved_data["weight"].toTensor();
        const Tensor& dy = outputGradients[0];
        const Tensor rows = dy.reshape({-1, dy.size(-1)});
        const Tensor inputs = x.reshape({-1, x.size(-1)});

        Tensor dx;
        if (context->needs_input_grad(0)) dx = dy.matmul(weight);
        const at::NoGradGuard noGrad;
        return {dx, weightGradient(weight, rows, inputs), rows.sum(0)};
    }
};

bool isNarrow(const Tensor& weight) { return weight.size(0) < kNarrow || weight.size(1) < kNarrow; }
bool addsInItsType(const Tensor& weight) { return weight.scalar_type() == at::kFloat; }

} // namespace

Tensor weightGradient(Tensor& weight, const Tensor& outputGradient, const Tensor& input)
{
    if (!addsInItsType(weight)) return outputGradient.t().mm(input);
    if (!weight.is_cpu()) { // there a product may add what is there already, and fresh memory costs nothing
        Tensor& gradient = weight.mutable_grad();
        if (!gradient.defined()) return outputGradient.t().mm(input);
        gradient.addmm_(outputGradient.t(), input);
        return {};
    }
    if (input.size(0) > kFewRows || isNarrow(weight)) return outputGradient.t().mm(input);
    if (Tensor& gradient = weight.mutable_grad(); gradient.defined()) {
        gradient.addmm_(outputGradient.t(), input);
        return {};
    }
    // Adding to zeros is faster than MKL's product into fresh memory, which clears it first, and slower.
    Tensor dw = at::empty(weight.sizes());
    std::memset(dw.mutable_data_ptr(), 0, dw.nbytes());
    dw.addmm_(outputGradient.t(), input);
    return dw;
}

Tensor linearIntoGradient(const Tensor& x, const Tensor& weight, const Tensor& bias)
{
    if (!addsInItsType(weight) || x.numel() > kFewRows * x.size(-1) || isNarrow(weight)) return at::linear(x, weight, bias);
    return LinearIntoGradient::apply(x, weight, bias);
}

} // namespace stagecraft::runtime
