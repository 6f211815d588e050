// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/layer_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/deferred_torch.h"
#include "engine/runtime/dropout_torch.h"
#include "engine/runtime/linear_torch.h"
#include "engine/runtime/rotation_torch.h"
#include "engine/runtime/scripted_torch.h"
#include "engine/runtime/synthetic_torch.h"
#include "engine/simulate/split_mix.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <type_traits>

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
    if (l.positions == engine::Positions::Learned) to.push_back(at::empty({l.sequence, l.dim}).normal_(0, kDeviation, g));
}

// Places of a block's parameters.
enum BlockParameter : std::size_t { kNorm1 = 0, kQkv = 2, kProjection = 4, kNorm2 = 6, kUp = 8, kDown = 10 };

void addParameters(Tensors& to, const engine::TransformerBlock& l, at::Generator& g)
{
    addNorm(to, l.dim);
    addLinear(to, l.dim, l.dim + 2 * l.keyWidth(), g);
    addLinear(to, l.dim, l.dim, g);
    addNorm(to, l.dim);
    addLinear(to, l.dim, l.wideWidth(), g);
    addLinear(to, l.ffn, l.dim, g);
}

void addParameters(Tensors& to, const engine::Head& l, at::Generator& g)
{
    addNorm(to, l.dim);
    addLinear(to, l.dim, l.vocabulary, g);
}

// nn.Conv2d's own start, without bias: U(-1/sqrt(n), 1/sqrt(n)) with n values under the kernel. And the norm behind it.
void addConvolution(Tensors& to, int in, int out, int kernel, at::Generator& generator)
{
    const double bound = 1.0 / std::sqrt(static_cast<double>(in) * kernel * kernel);
    to.push_back(at::empty({out, in, kernel, kernel}).uniform_(-bound, bound, generator));
    addNorm(to, out);
}

void addParameters(Tensors& to, const engine::Convolution& l, at::Generator& g) { addConvolution(to, l.in, l.out, l.kernel, g); }

// Places of a residual block's parameters.
enum ResidualParameter : std::size_t { kFirst = 0, kSecond = 3, kShortcut = 6 };

void addParameters(Tensors& to, const engine::ResidualBlock& l, at::Generator& g)
{
    addConvolution(to, l.in, l.out, 3, g);
    addConvolution(to, l.out, l.out, 3, g);
    if (l.projects()) addConvolution(to, l.in, l.out, 1, g);
}

void addParameters(Tensors& to, const engine::PooledHead& l, at::Generator& g) { addLinear(to, l.in, l.classes, g); }

void addParameters(Tensors&, const engine::Dropout&, at::Generator&) {}

void addParameters(Tensors& to, const engine::Synthetic& l, at::Generator& g)
{
    to.push_back(at::empty({l.parameters}).normal_(0, 0.02, g));
}

void addParameters(Tensors&, const engine::TorchScript&, at::Generator&) {} // its file has them

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
std::vector<std::string> namesOf(const engine::Embedding& l)
{
    if (l.positions == engine::Positions::Rotary) return {"tokens"};
    return {"tokens", "positions"};
}
std::vector<std::string> namesOf(const engine::TransformerBlock&) { return namesOf({"norm1.", "qkv.", "projection.", "norm2.", "up.", "down."}); }
std::vector<std::string> namesOf(const engine::Head&) { return namesOf({"norm.", "linear."}); }
std::vector<std::string> namesOf(const engine::Convolution&) { return {"kernel", "norm.weight", "norm.bias"}; }
std::vector<std::string> namesOf(const engine::ResidualBlock& l)
{
    std::vector<std::string> names{"first.kernel", "first.norm.weight", "first.norm.bias", "second.kernel", "second.norm.weight", "second.norm.bias"};
    if (l.projects())
        for (const char* name : {"shortcut.kernel", "shortcut.norm.weight", "shortcut.norm.bias"}) names.emplace_back(name);
    return names;
}
std::vector<std::string> namesOf(const engine::PooledHead&) { return namesOf({""}); }
std::vector<std::string> namesOf(const engine::Dropout&) { return {}; }
std::vector<std::string> namesOf(const engine::Synthetic&) { return {"weights"}; }
std::vector<std::string> namesOf(const engine::TorchScript&) { return {}; } // its file names them

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
    [[nodiscard]] Tensor convolution(const Tensor& x, std::size_t at, int stride, int groups) const
    {
        const Tensor& kernel = all[at];
        const Tensor y = at::conv2d(x, kernel, {}, stride, kernel.size(-1) / 2);
        return at::group_norm(y, groups, all[at + 1], all[at + 2]);
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

Tensor forward(const engine::Embedding& l, const Weights& w, const Tensor& tokens, SlicePass* pass)
{
    if (l.positions == engine::Positions::Rotary) return w.embedding(tokens, 0);
    const std::int64_t first = pass ? pass->firstPosition : 0;
    return w.embedding(tokens, 0) + w.embedding(at::arange(first, first + tokens.size(1), tokens.options()), 1);
}

// Each key head serves a group of query heads, which get copies of it.
Tensor forEachQuery(const Tensor& ofKeys, std::int64_t heads)
{
    if (ofKeys.size(1) == heads) return ofKeys;
    const auto group = heads / ofKeys.size(1);
    return ofKeys.unsqueeze(2).expand({ofKeys.size(0), ofKeys.size(1), group, ofKeys.size(2), ofKeys.size(3)}).flatten(1, 2);
}

struct Attended {
    Tensor queries; // (rows, heads, positions, values of a head)
    Tensor keys;    // (rows, key heads, positions, values of a head)
    Tensor values;
};

// Causal.
Tensor attend(const Attended& of)
{
    const auto heads = of.queries.size(1);
    return at::scaled_dot_product_attention(of.queries, forEachQuery(of.keys, heads), forEachQuery(of.values, heads), {}, 0.0,
                                            /*is_causal=*/true);
}

// Over the slices before as well: their keys and values stand before the own ones.
Tensor attendBack(const Attended& of, SlicePass& pass)
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
    const Attended whole{of.queries, withEarlier(of.keys, cache.keys), withEarlier(of.values, cache.values)};
    if (slice == 0) return attend(whole);
    const auto heads = of.queries.size(1);
    const Tensor mask = at::ones({of.queries.size(2), whole.keys.size(2)}, of.queries.options().dtype(at::kBool)).tril(pass.firstPosition);
    return at::scaled_dot_product_attention(of.queries, forEachQuery(whole.keys, heads), forEachQuery(whole.values, heads), mask);
}

Tensor attention(const engine::TransformerBlock& l, const Weights& w, const Tensor& x, SlicePass* pass)
{
    const auto rows = x.size(0);
    const auto positions = x.size(1);
    const std::vector<Tensor> parts = w.linear(x, kQkv).split_with_sizes({l.dim, l.keyWidth(), l.keyWidth()}, -1);
    const auto byHead = [&](const Tensor& part, int heads) { return part.view({rows, positions, heads, l.headDim()}).transpose(1, 2); };
    Attended of{byHead(parts[0], l.heads), byHead(parts[1], l.keyHeads()), byHead(parts[2], l.keyHeads())};
    if (l.positions == engine::Positions::Rotary) {
        const int first = pass ? pass->firstPosition : 0;
        of.queries = turnedByPosition(of.queries, first);
        of.keys = turnedByPosition(of.keys, first);
    }
    const Tensor mixed = pass ? attendBack(of, *pass) : attend(of);
    return w.linear(mixed.transpose(1, 2).reshape({rows, positions, l.dim}), kProjection);
}

Tensor feedForward(const engine::TransformerBlock& l, const Weights& w, const Tensor& x)
{
    const Tensor wide = w.linear(x, kUp);
    if (l.feedForward == engine::FeedForward::Gelu) return w.linear(at::gelu(wide), kDown);
    const std::vector<Tensor> gateAndUp = wide.split(l.ffn, -1);
    return w.linear(at::silu(gateAndUp[0]) * gateAndUp[1], kDown);
}

Tensor forward(const engine::TransformerBlock& l, const Weights& w, const Tensor& x, SlicePass* pass)
{
    const Tensor attended = x + attention(l, w, w.norm(x, kNorm1), pass);
    return attended + feedForward(l, w, w.norm(attended, kNorm2));
}

Tensor forward(const engine::Head&, const Weights& w, const Tensor& x, SlicePass*) { return w.linear(w.norm(x, 0), 2); }

Tensor forward(const engine::Convolution& l, const Weights& w, const Tensor& x, SlicePass*)
{
    return at::relu(w.convolution(x, 0, l.stride, l.groups));
}

Tensor forward(const engine::ResidualBlock& l, const Weights& w, const Tensor& x, SlicePass*)
{
    const Tensor inner = at::relu(w.convolution(x, kFirst, l.stride, l.groups));
    const Tensor shortcut = l.projects() ? w.convolution(x, kShortcut, l.stride, l.groups) : x;
    return at::relu(w.convolution(inner, kSecond, 1, l.groups) + shortcut);
}

Tensor forward(const engine::PooledHead&, const Weights& w, const Tensor& x, SlicePass*)
{
    return w.linear(x.mean(at::IntArrayRef{2, 3}), 0);
}

Tensor forward(const engine::Synthetic& l, const Weights& w, const Tensor& x, SlicePass*) { return synthetic(l, x, w.all[0]); }

} // namespace

bool canDefer(const engine::Layer& layer)
{
    return std::visit(
        [](const auto& l) {
            using L = std::decay_t<decltype(l)>;
            return std::is_same_v<L, engine::Linear> || std::is_same_v<L, engine::Embedding> || std::is_same_v<L, engine::TransformerBlock> ||
                   std::is_same_v<L, engine::Head> || std::is_same_v<L, engine::Dropout>;
        },
        layer);
}

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

// The same values wherever they are to be: they are drawn on the CPU, in float32.
LayerModule::LayerModule(const engine::Layer& layer, std::uint64_t seed, int place, Accumulation accumulation, TensorKind kind)
    : layer_(layer), place_(static_cast<std::uint64_t>(place)), accumulation_(accumulation)
{
    auto generator = at::make_generator<at::CPUGeneratorImpl>(mixedSeed(seed, place_));
    {
        const bool stays = kind.device.is_cpu() && kind.precision == engine::Precision::Fp32;
        const AllocationScope scope(stays ? currentAllocationTag() : AllocationTag{});
        std::visit([&](const auto& l) { addParameters(parameters_, l, generator); }, layer_);
    }
    for (Tensor& parameter : parameters_) parameter = trainable(parameter.to(kind.device, scalarType(kind.precision)));
    if (const auto* scripted = std::get_if<engine::TorchScript>(&layer_)) {
        script_ = std::make_shared<ScriptedModule>(*scripted, kind);
        parameters_ = script_->parameters();
    }
}

void LayerModule::setParameters(std::vector<Tensor> parameters)
{
    parameters_ = std::move(parameters);
    if (script_) script_->setParameters(parameters_);
}

std::vector<std::string> parameterNames(const engine::Layer& layer)
{
    return std::visit([](const auto& l) { return namesOf(l); }, layer);
}

std::vector<std::string> LayerModule::parameterNames() const { return script_ ? script_->names() : runtime::parameterNames(layer_); }

Tensor LayerModule::forward(const Tensor& x, SlicePass* pass, const DataPlace* at) const
{
    if (script_) return script_->forward(x, at != nullptr ? std::optional(ScriptDraw{drawSeed(*at, place_), at->rows == 0}) : std::nullopt);
    return std::visit(
        [&](const auto& l) -> Tensor {
            using L = std::decay_t<decltype(l)>;
            if constexpr (std::is_same_v<L, engine::TorchScript>) return {};
            else if constexpr (std::is_same_v<L, engine::Dropout>) return at != nullptr ? dropOut(x, l.probability, place_, *at) : x;
            else return runtime::forward(l, Weights{parameters_, accumulation_}, x, pass);
        },
        layer_);
}

} // namespace stagecraft::runtime
