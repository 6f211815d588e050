// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/deferred_torch.h"

#include "engine/runtime/gradient_queue_torch.h"
#include "engine/runtime/linear_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace stagecraft::runtime {

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kNormEpsilon = 1e-5; // at::layer_norm's

// The parameters themselves, whose gradients are added up later: a saved variable may be a copy that hooks have made (saved_tensors_torch.h).
void keep(AutogradContext* context, const Tensor& weight, const Tensor& bias)
{
    context->saved_data["weight"] = weight;
    context->saved_data["bias"] = bias;
}

Tensor asRows(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

struct DeferredLinear : torch::autograd::Function<DeferredLinear> {
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias)
    {
        context->save_for_backward({x});
        keep(context, weight, bias);
        return at::linear(x, weight, bias);
    }

    static variable_list backward(AutogradContext* context, variable_list outputGradients)
    {
        const variable_list saved = context->get_saved_variables();
        const Tensor& x = saved[0];
        Tensor weight = context->saved_data["weight"].toTensor();
        Tensor bias = context->saved_data["bias"].toTensor();
        const Tensor& dy = outputGradients[0];
        Tensor dx;
        if (context->needs_input_grad(0)) dx = dy.matmul(weight);
        GradientQueue* const queue = GradientQueue::current();
        if (queue == nullptr) {
            const at::NoGradGuard noGrad;
            return {dx, weightGradient(weight, asRows(dy), asRows(x)), asRows(dy).sum(0)};
        }
        queue->add({asRows(x), asRows(dy)}, [weight, bias](const std::vector<Tensor>& kept) mutable {
            if (const Tensor dw = weightGradient(weight, kept[1], kept[0]); dw.defined()) addGradient(weight, dw);
            addGradient(bias, kept[1].sum(0));
        });
        return {dx, Tensor(), Tensor()};
    }
};

struct DeferredNorm : torch::autograd::Function<DeferredNorm> {
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias)
    {
        auto [y, mean, deviation] = at::native_layer_norm(x, {x.size(-1)}, weight, bias, kNormEpsilon);
        context->save_for_backward({x, mean, deviation});
        keep(context, weight, bias);
        return y;
    }

    static variable_list backward(AutogradContext* context, variable_list outputGradients)
    {
        const variable_list saved = context->get_saved_variables();
        const Tensor& x = saved[0];
        Tensor weight = context->saved_data["weight"].toTensor();
        Tensor bias = context->saved_data["bias"].toTensor();
        auto [dx, dw, db] = at::native_layer_norm_backward(outputGradients[0], x, {x.size(-1)}, saved[1], saved[2], weight, bias,
                                                           {context->needs_input_grad(0), true, true});
        GradientQueue* const queue = GradientQueue::current();
        if (queue == nullptr) return {dx, dw, db};
        queue->add({dw, db}, [weight, bias](const std::vector<Tensor>& kept) mutable {
            addGradient(weight, kept[0]);
            addGradient(bias, kept[1]);
        });
        return {dx, Tensor(), Tensor()};
    }
};

struct DeferredEmbedding : torch::autograd::Function<DeferredEmbedding> {
    static Tensor forward(AutogradContext* context, const Tensor& weight, const Tensor& tokens)
    {
        context->save_for_backward({tokens});
        context->saved_data["weight"] = weight;
        return at::embedding(weight, tokens);
    }

    static variable_list backward(AutogradContext* context, variable_list outputGradients)
    {
        const variable_list saved = context->get_saved_variables();
        Tensor weight = context->saved_data["weight"].toTensor();
        const auto gradient = [](const Tensor& table, const Tensor& dy, const Tensor& tokens) {
            return at::embedding_dense_backward(dy, tokens, table.size(0), /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
        };
        GradientQueue* const queue = GradientQueue::current();
        if (queue == nullptr) return {gradient(weight, outputGradients[0], saved[0]), Tensor()};
        queue->add({outputGradients[0], saved[0]},
                   [weight, gradient](const std::vector<Tensor>& kept) mutable { addGradient(weight, gradient(weight, kept[0], kept[1])); });
        return {Tensor(), Tensor()};
    }
};

} // namespace

Tensor deferredLinear(const Tensor& x, const Tensor& weight, const Tensor& bias) { return DeferredLinear::apply(x, weight, bias); }
Tensor deferredNorm(const Tensor& x, const Tensor& weight, const Tensor& bias) { return DeferredNorm::apply(x, weight, bias); }
Tensor deferredEmbedding(const Tensor& weight, const Tensor& tokens) { return DeferredEmbedding::apply(weight, tokens); }

} // namespace stagecraft::runtime
