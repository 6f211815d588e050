// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/layer_torch.h"

#include "engine/runtime/deferred_torch.h"
#include "engine/runtime/linear_torch.h"
#include "engine/simulate/split_mix.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace stagecraft::runtime {

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// nn.Linear's own start: U(-1/sqrt(in), 1/sqrt(in)) for weight and bias.
void addLinear(Tensors& to, int in, int out, at::Generator& generator)
{
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    to.push_back(at::empty({out, in}).uniform_(-bound, bound, generator));
    to.push_back(at::empty({out}).uniform_(-bound, bound, generator));
}

void addNorm(Tensors& to, int dim)
{
    to.push_back(at::ones({dim}));
    to.push_back(at::zeros({dim}));
}

void addParameters(Tensors& to, const engine::Linear& l, at::Generator& g) { addLinear(to, l.in, l.out, g); }

void addParameters(Tensors& to, const engine::Embedding& l, at::Generator& g)
{
    constexpr double kDeviation = 0.02; // GPT-2's
    to.push_back(at::empty({l.vocabulary, l.dim}).normal_(0, kDeviation, g));
    to.push_back(at::empty({l.sequence, l.dim}).normal_(0, kDeviation, g));
}

// Places of a block's parameters.
enum BlockParameter : std::size_t { kNorm1 = 0, kQkv = 2, kProjection = 4, kNorm2 = 6, kUp = 8, kDown = 10 };

void addParameters(Tensors& to, const engine::TransformerBlock& l, at::Generator& g)
{
    addNorm(to, l.dim);
    addLinear(to, l.dim, 3 * l.dim, g);
    addLinear(to, l.dim, l.dim, g);
    addNorm(to, l.dim);
    addLinear(to, l.dim, l.ffn, g);
    addLinear(to, l.ffn, l.dim, g);
}

void addParameters(Tensors& to, const engine::Head& l, at::Generator& g)
{
    addNorm(to, l.dim);
    addLinear(to, l.dim, l.vocabulary, g);
}

// The names of what addParameters() adds: part by part, each with a weight and a bias.
std::vector<std::string> namesOf(std::initializer_list<const char*> parts)
{
    std::vector<std::string> names;
    for (const std::string part : parts) {
        names.push_back(part + "weight");
        names.push_back(part + "bias");
    }
    return names;
}
std::vector<std::string> namesOf(const engine::Linear&) { return namesOf({""}); }
std::vector<std::string> namesOf(const engine::Embedding&) { return {"tokens", "positions"}; }
std::vector<std::string> namesOf(const engine::TransformerBlock&) { return namesOf({"norm1.", "qkv.", "projection.", "norm2.", "up.", "down."}); }
std::vector<std::string> namesOf(const engine::Head&) { return namesOf({"norm.", "linear."}); }

// The parameters of a layer, as its forward uses them.
struct Weights {
    const Tensors& all;
    Accumulation accumulation;

    [[nodiscard]] Tensor linear(const Tensor& x, std::size_t at) const
    {
        switch (accumulation) {
        case Accumulation::Autograd: break;
        case Accumulation::InPlace: return linearIntoGradient(x, all[at], all[at + 1]);
        case Accumulation::Deferred: return deferredLinear(x, all[at], all[at + 1]);
        }
        return at::linear(x, all[at], all[at + 1]);
    }
    [[nodiscard]] Tensor norm(const Tensor& x, std::size_t at) const
    {
        if (accumulation == Accumulation::Deferred) return deferredNorm(x, all[at], all[at + 1]);
        return at::layer_norm(x, {x.size(-1)}, all[at], all[at + 1]);
    }
    [[nodiscard]] Tensor embedding(const Tensor& tokens, std::size_t at) const
    {
        return accumulation == Accumulation::Deferred ? deferredEmbedding(all[at], tokens) : at::embedding(all[at], tokens);
    }
};

Tensor forward(const engine::Linear& l, const Weights& w, const Tensor& x, SlicePass*)
{
    Tensor y = w.linear(x, 0);
    switch (l.activation) {
    case engine::Activation::None: return y;
    case engine::Activation::Relu: return at::relu(y);
    case engine::Activation::Gelu: return at::gelu(y);
    }
    return y;
}

Tensor forward(const engine::Embedding&, const Weights& w, const Tensor& tokens, SlicePass* pass)
{
    const std::int64_t first = pass ? pass->firstPosition : 0;
    return w.embedding(tokens, 0) + w.embedding(at::arange(first, first + tokens.size(1), at::kLong), 1);
}

// Causal, over the slices before as well: their keys and values stand before the own ones.
Tensor attendBack(const Tensor& queries, const Tensor& keys, const Tensor& values, SlicePass& pass)
{
    KeysAndValues& cache = pass.caches[pass.nextBlock++];
    const auto slice = static_cast<std::size_t>(pass.slice);
    const auto withEarlier = [&](const Tensor& made, std::vector<Tensor>& known) {
        if (known.size() == slice) known.push_back(made.detach().requires_grad_()); // else it is computed again
        pass.own.emplace_back(made, known[slice]);
        std::vector<Tensor> all(known.begin(), known.begin() + pass.slice);
        all.push_back(made);
        return at::cat(all, 2);
    };
    const Tensor allKeys = withEarlier(keys, cache.keys);
    const Tensor allValues = withEarlier(values, cache.values);
    if (slice == 0) return at::scaled_dot_product_attention(queries, allKeys, allValues, {}, 0.0, /*is_causal=*/true);
    const Tensor mask = at::ones({queries.size(2), allKeys.size(2)}, at::kBool).tril(pass.firstPosition);
    return at::scaled_dot_product_attention(queries, allKeys, allValues, mask);
}

Tensor attention(const engine::TransformerBlock& l, const Weights& w, const Tensor& x, SlicePass* pass)
{
    const auto rows = x.size(0);
    const auto sequence = x.size(1);
    const Tensor qkv =
        w.linear(x, kQkv).view({rows, sequence, 3, l.heads, l.dim / l.heads}).permute({2, 0, 3, 1, 4});
    const Tensor mixed = pass ? attendBack(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), *pass)
                              : at::scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), {}, 0.0,
                                                                 /*is_causal=*/true);
    return w.linear(mixed.transpose(1, 2).reshape({rows, sequence, l.dim}), kProjection);
}

Tensor forward(const engine::TransformerBlock& l, const Weights& w, const Tensor& x, SlicePass* pass)
{
    const Tensor attended = x + attention(l, w, w.norm(x, kNorm1), pass);
    return attended + w.linear(at::gelu(w.linear(w.norm(attended, kNorm2), kUp)), kDown);
}

Tensor forward(const engine::Head&, const Weights& w, const Tensor& x, SlicePass*) { return w.linear(w.norm(x, 0), 2); }

} // namespace

void setParameters(std::vector<LayerModule>& layers, const std::vector<Tensor>& parameters)
{
    auto next = parameters.begin();
    for (LayerModule& layer : layers) {
        const auto end = next + static_cast<std::ptrdiff_t>(layer.parameters().size());
        layer.setParameters({next, end});
        next = end;
    }
}

std::size_t tiedParameter(const engine::Layer& layer)
{
    constexpr std::size_t kTable = 0;
    constexpr std::size_t kHeadMatrix = 2; // behind its norm
    return std::holds_alternative<engine::Embedding>(layer) ? kTable : kHeadMatrix;
}

void tieHead(LayerModule& head, const engine::Layer& layer, Tensor table)
{
    Tensors parameters = head.parameters();
    parameters[tiedParameter(layer)] = std::move(table);
    head.setParameters(std::move(parameters));
}

std::uint64_t mixedSeed(std::uint64_t seed, std::uint64_t place)
{
    return engine::mixed(seed + place * engine::kSplitMixStep);
}

LayerModule::LayerModule(const engine::Layer& layer, std::uint64_t seed, int place, Accumulation accumulation)
    : layer_(layer), accumulation_(accumulation)
{
    auto generator = at::make_generator<at::CPUGeneratorImpl>(mixedSeed(seed, static_cast<std::uint64_t>(place)));
    std::visit([&](const auto& l) { addParameters(parameters_, l, generator); }, layer_);
    for (Tensor& parameter : parameters_) parameter.requires_grad_();
}

std::vector<std::string> parameterNames(const engine::Layer& layer)
{
    return std::visit([](const auto& l) { return namesOf(l); }, layer);
}

Tensor LayerModule::forward(const Tensor& x, SlicePass* pass) const
{
    return std::visit([&](const auto& l) { return runtime::forward(l, Weights{parameters_, accumulation_}, x, pass); }, layer_);
}

} // namespace stagecraft::runtime
