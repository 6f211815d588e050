// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/synthetic_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::runtime {

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Large enough for a product to run at the machine's speed, small enough for its operands to stay in the cache.
constexpr std::int64_t kSide = 128;
constexpr std::int64_t kSideOnGpu = 1024;

// The last extent becomes `width`: narrower ones are repeated, of wider ones the values that fall on one place are added up. The two
// are each other's transpose, so this is its own backward.
Tensor fitted(const Tensor& x, std::int64_t width)
{
    const std::int64_t has = x.size(-1);
    if (has <= width) return x.repeat({1, (width + has - 1) / has}).narrow(1, 0, width);
    const std::int64_t whole = has / width;
    const Tensor sum = x.narrow(1, 0, whole * width).unflatten(1, {whole, width}).sum(1);
    if (const std::int64_t rest = has % width; rest > 0) sum.narrow(1, 0, rest).add_(x.narrow(1, whole * width, rest));
    return sum;
}

// So that values stay of one size, however many are added up.
double weightScale(std::int64_t parameters, std::int64_t out) { return std::min(1.0, static_cast<double>(out) / static_cast<double>(parameters)); }
double inputScale(std::int64_t in, std::int64_t out) { return std::sqrt(std::min(1.0, static_cast<double>(out) / static_cast<double>(in))); }

struct SyntheticFunction : torch::autograd::Function<SyntheticFunction> {
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weights, std::int64_t out, double flops,
                          std::int64_t activationBytes)
    {
        // the input is kept as if the arithmetic were done on it
        const std::int64_t more = activationBytes - static_cast<std::int64_t>(x.nbytes());
        context->save_for_backward({x, weights, at::empty({std::max<std::int64_t>(0, more)}, x.options().dtype(at::kByte))});
        context->saved_data["out"] = out;
        context->saved_data["flops"] = flops;
        spend(flops, x.options());
        return fitted(x, out) * inputScale(x.size(1), out) + fitted(weights.unsqueeze(0), out) * weightScale(weights.size(0), out);
    }

    static variable_list backward(AutogradContext* context, variable_list outputGradients)
    {
        const variable_list saved = context->get_saved_variables();
        const Tensor& dy = outputGradients[0];
        const std::int64_t in = saved[0].size(1);
        const std::int64_t parameters = saved[1].size(0);
        const std::int64_t out = context->saved_data["out"].toInt();
        const double flops = context->saved_data["flops"].toDouble();
        const at::NoGradGuard noGrad;
        Tensor dx;
        Tensor dw;
        if (context->needs_input_grad(0)) {
            spend(flops, dy.options());
            dx = fitted(dy, in) * inputScale(in, out);
        }
        if (context->needs_input_grad(1)) {
            spend(flops, dy.options());
            dw = fitted(dy.sum(0, /*keepdim=*/true), parameters).squeeze(0) * weightScale(parameters, out);
        }
        return {dx, dw, Tensor(), Tensor(), Tensor()};
    }
};

Tensor newFactor(std::int64_t side, const at::TensorOptions& of) { return at::full({side, side}, 1.0 / static_cast<double>(side), of); }

// Of two matrices that are the same. On the CPU they are there once, for all; on a GPU each stream has to make its own.
Tensor factorOf(std::int64_t side, const at::TensorOptions& of)
{
    if (!of.device().is_cpu()) return newFactor(side, of);
    static const Tensor floats = newFactor(kSide, at::kFloat);
    static const Tensor bfloats = newFactor(kSide, at::kBFloat16);
    return of.dtype() == at::kBFloat16 ? bfloats : floats;
}

} // namespace

double spend(double flops, at::TensorOptions of)
{
    const AllocationScope nobody({}); // what it works on is none of the rank's memory
    const at::NoGradGuard noGrad;
    const std::int64_t side = of.device().is_cpu() ? kSide : kSideOnGpu;
    const double ofColumn = 2.0 * static_cast<double>(side * side);
    auto columns = static_cast<std::int64_t>(flops / ofColumn);
    const double done = static_cast<double>(columns) * ofColumn;
    if (columns == 0) return done;
    const Tensor factor = factorOf(side, of);
    Tensor product = at::empty({side, side}, factor.options());
    for (; columns >= side; columns -= side) at::mm_out(product, factor, factor);
    if (columns > 0) {
        Tensor narrow = at::empty({side, columns}, factor.options());
        at::mm_out(narrow, factor, factor.narrow(1, 0, columns));
    }
    return done;
}

Tensor synthetic(const engine::Synthetic& layer, const Tensor& x, const Tensor& weights)
{
    const auto rows = static_cast<double>(x.size(0));
    return SyntheticFunction::apply(x, weights, std::int64_t{layer.out}, layer.flops * rows, layer.activationBytes * x.size(0));
}

} // namespace stagecraft::runtime
