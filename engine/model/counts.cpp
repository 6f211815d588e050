// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include "engine/model/tied.h"

#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kTokenBytes = 8; // int64
constexpr auto kMostBytes = static_cast<double>(traces::kMostBytes);

template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};


// What is beyond a number of bytes is refused by checkModel().
Bytes toBytes(double bytes) { return static_cast<Bytes>(std::min(bytes, kMostBytes)); }

// Widths that a layer takes and gives.
int widthIn(const Layer& layer)
{
    return std::visit(Overloaded{[](const Linear& l) { return l.in; }, [](const Embedding&) { return 0; },
                                 [](const TransformerBlock& b) { return b.dim; }, [](const Head& h) { return h.dim; }},
                      layer);
}

int widthOut(const Layer& layer)
{
    return std::visit(Overloaded{[](const Linear& l) { return l.out; }, [](const Embedding& e) { return e.dim; },
                                 [](const TransformerBlock& b) { return b.dim; },
                                 [](const Head& h) { return h.vocabulary; }},
                      layer);
}

Error atLayer(std::size_t i, const Layer& layer, const std::string& what)
{
    return Error{fmt::format("layer {} ({}): {}", i, layerName(layer), what)};
}

Expected<void> checkSizes(std::size_t i, const Layer& layer)
{
    const auto positive = [&](std::string_view name, int value) -> Expected<void> {
        if (value >= 1 && value <= 1 << 20) return {};
        return atLayer(i, layer, fmt::format("{} is {}; 1 to {} is allowed", name, value, 1 << 20));
    };
    const auto all = [&](std::initializer_list<std::pair<std::string_view, int>> sizes) -> Expected<void> {
        for (const auto& [name, value] : sizes)
            if (Expected<void> ok = positive(name, value); !ok.ok()) return ok;
        return {};
    };
    return std::visit(
        Overloaded{[&](const Linear& l) { return all({{"in", l.in}, {"out", l.out}}); },
                   [&](const Embedding& e) {
                       return all({{"vocabulary", e.vocabulary}, {"sequence", e.sequence}, {"dim", e.dim}});
                   },
                   [&](const TransformerBlock& b) -> Expected<void> {
                       if (Expected<void> ok = all({{"dim", b.dim}, {"heads", b.heads}, {"ffn", b.ffn}}); !ok.ok()) return ok;
                       if (b.dim % b.heads == 0) return {};
                       return atLayer(i, layer, fmt::format("dim {} is no multiple of heads {}", b.dim, b.heads));
                   },
                   [&](const Head& h) { return all({{"dim", h.dim}, {"vocabulary", h.vocabulary}}); }},
        layer);
}

} // namespace

std::string layerName(const Layer& layer)
{
    return std::visit(
        Overloaded{[](const Linear& l) {
                       const char* act = l.activation == Activation::Relu   ? ", ReLU"
                                         : l.activation == Activation::Gelu ? ", GELU"
                                                                            : "";
                       return fmt::format("Linear {}→{}{}", l.in, l.out, act);
                   },
                   [](const Embedding& e) { return fmt::format("Embedding {}×{}", e.vocabulary, e.dim); },
                   [](const TransformerBlock& b) { return fmt::format("Block d={}, {} heads", b.dim, b.heads); },
                   [](const Head& h) { return fmt::format("Head {}→{}", h.dim, h.vocabulary); }},
        layer);
}

Expected<void> checkModel(const ModelSpec& model)
{
    if (model.empty()) return Error{"the model has no layers; add some, or take a plan that has a model"};
    if (model.layers.size() > kMostLayers)
        return Error{fmt::format("the model has {} layers; at most {} are possible", model.layers.size(), kMostLayers)};
    if (model.microbatchRows < 1 || model.microbatchRows > 1 << 20)
        return Error{fmt::format("microbatch_rows is {}; 1 to {} is allowed", model.microbatchRows, 1 << 20)};
    const bool tokens = std::holds_alternative<Embedding>(model.layers.front());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const Layer& layer = model.layers[i];
        if (Expected<void> sizes = checkSizes(i, layer); !sizes.ok()) return sizes;
        if (std::holds_alternative<Embedding>(layer) && i != 0)
            return atLayer(i, layer, "an embedding takes tokens, so it must be the first layer");
        if ((std::holds_alternative<TransformerBlock>(layer) || std::holds_alternative<Head>(layer)) && !tokens)
            return atLayer(i, layer, "it works on sequences; the first layer must be an embedding");
        if (i == 0) continue;
        const int given = widthOut(model.layers[i - 1]);
        if (widthIn(layer) != given)
            return atLayer(i, layer, fmt::format("it takes {} values, but layer {} ({}) gives {}", widthIn(layer), i - 1,
                                                 layerName(model.layers[i - 1]), given));
    }
    if (Expected<void> tied = checkTied(model); !tied.ok()) return tied;
    if (model.loss == Loss::CrossEntropy) {
        const auto* embedding = std::get_if<Embedding>(&model.layers.front());
        if (embedding == nullptr)
            return Error{"the loss is cross-entropy on the next token; the first layer must be an embedding, or take mse"};
        if (widthOut(model.layers.back()) < embedding->vocabulary)
            return Error{fmt::format("the loss is cross-entropy over a vocabulary of {}, but the last layer gives {} values",
                                     embedding->vocabulary, widthOut(model.layers.back()))};
    }
    double bytes = 0;
    for (const LayerCounts& layer : layerCounts(model)) {
        bytes += 4 * kFloatBytes * static_cast<double>(layer.parameters); // with gradient and two moments
        bytes += static_cast<double>(layer.activationBytes) + static_cast<double>(layer.outputBytes);
    }
    if (bytes >= kMostBytes)
        return Error{fmt::format("one micro-batch of {} through all layers needs {:.3g} bytes, more than can be counted ({:.3g}); "
                                 "take fewer rows or smaller layers",
                                 traces::counted(model.microbatchRows, "row"), bytes, kMostBytes)};
    return {};
}

std::vector<LayerCounts> layerCounts(const ModelSpec& model)
{
    std::vector<LayerCounts> counts;
    counts.reserve(model.layers.size());
    const double rows = model.microbatchRows;
    double positions = 1;
    for (const Layer& layer : model.layers) {
        LayerCounts c;
        c.name = layerName(layer);
        std::visit(
            Overloaded{[&](const Linear& l) {
                           const double in = l.in;
                           const double out = l.out;
                           c.parameters = static_cast<std::int64_t>(l.in) * l.out + l.out;
                           c.forwardFlops = 2 * rows * positions * in * out;
                           // a ReLU keeps its result, which is the next layer's input; a GELU keeps its own input as well
                           const double kept = in + (l.activation == Activation::Gelu ? out : 0);
                           c.activationBytes = toBytes(kFloatBytes * rows * positions * kept);
                           c.wgradBytes = toBytes(kFloatBytes * rows * positions * (in + out));
                       },
                       [&](const Embedding& e) {
                           positions = e.sequence;
                           c.parameters = (static_cast<std::int64_t>(e.vocabulary) + e.sequence) * e.dim;
                           c.forwardFlops = rows * positions * e.dim; // the one addition
                           c.activationBytes = toBytes(kTokenBytes * rows * positions);
                           c.wgradBytes = toBytes((kTokenBytes + kFloatBytes * e.dim) * rows * positions);
                       },
                       [&](const TransformerBlock& b) {
                           const double d = b.dim;
                           const double f = b.ffn;
                           const std::int64_t dim = b.dim;
                           c.parameters = 4 * dim * dim + 4 * dim + 2 * dim * b.ffn + b.ffn + dim + 4 * dim;
                           // four d x d products and two d x f, and the two of attention (dense, as Megatron-LM counts)
                           c.attentionFlops = 4 * rows * positions * positions * d;
                           c.forwardFlops = 2 * rows * positions * (4 * d * d + 2 * d * f) + c.attentionFlops;
                           // both norms' input and result, q, k, v, attention's result twice (as computed and as laid out
                           // for the projection), the wide layer before and after GELU
                           c.activationBytes = toBytes(kFloatBytes * rows * positions * (9 * d + 2 * f));
                           // into qkv, projection, up and down: 3 d + f; out of them: 5 d + f
                           c.wgradBytes = toBytes(kFloatBytes * rows * positions * (8 * d + 2 * f));
                       },
                       [&](const Head& h) {
                           const double d = h.dim;
                           const double vocabulary = h.vocabulary;
                           c.parameters = 2LL * h.dim + static_cast<std::int64_t>(h.dim) * h.vocabulary + h.vocabulary;
                           c.forwardFlops = 2 * rows * positions * d * vocabulary;
                           c.activationBytes = toBytes(kFloatBytes * rows * positions * (2 * d + vocabulary));
                           c.wgradBytes = toBytes(kFloatBytes * rows * positions * (d + vocabulary));
                       }},
            layer);
        c.backwardFlops = 2 * c.forwardFlops;
        c.outputBytes = toBytes(kFloatBytes * rows * positions * widthOut(layer));
        counts.push_back(std::move(c));
    }
    if (!counts.empty()) counts.back().parameters -= tiedValues(model); // the embedding has it
    return counts;
}

std::vector<std::int64_t> inputShape(const ModelSpec& model, int rows)
{
    if (const auto* e = std::get_if<Embedding>(&model.layers.front())) return {rows, e->sequence};
    return {rows, widthIn(model.layers.front())};
}

std::vector<std::int64_t> outputShape(const ModelSpec& model, int rows)
{
    const int width = widthOut(model.layers.back());
    if (const auto* e = std::get_if<Embedding>(&model.layers.front())) return {rows, e->sequence, width};
    return {rows, width};
}

} // namespace stagecraft::engine
