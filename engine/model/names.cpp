// SPDX-License-Identifier: Apache-2.0
#include "engine/model/layers.h"
#include "engine/model/overloaded.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

// "512", "2.1 k", "134 M": a name has room for no more.
std::string shortNumber(double number)
{
    for (const auto& [unit, suffix] : {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
        if (number >= unit) return fmt::format("{:.3g}{}", number / unit, suffix);
    return fmt::format("{:g}", number);
}

} // namespace

const std::vector<LayerType>& layerTypes()
{
    static const std::vector<LayerType> types{
        {"linear", "in, out [activation]", "in × out matrix and bias; activation none, relu or gelu", Linear{}},
        {"embedding", "vocabulary, sequence, dim [positions]", "tokens to vectors; positions learned or rotary; stands first", Embedding{}},
        {"transformer_block", "dim, heads, ffn [key_value_heads, positions, activation]",
         "pre-norm, causal attention, grouped queries; positions learned or rotary; activation gelu or swiglu", TransformerBlock{}},
        {"head", "dim, vocabulary", "LayerNorm and a linear layer on each position", Head{}},
        {"convolution", "in, out [kernel, stride, groups]", "on images, with GroupNorm and ReLU", Convolution{}},
        {"residual_block", "in, out [stride, groups]", "ResNet's basic block: two 3×3 convolutions with GroupNorm and a shortcut", ResidualBlock{}},
        {"pooled_head", "in, classes", "mean over the image and a linear layer", PooledHead{}},
        {"dropout", "[p]", "each value is 0 with probability p in training, the same ones for every schedule; not first", Dropout{}},
        {"synthetic", "in, out [flops, activation_bytes, parameters]", "really does and keeps so much for each row", Synthetic{}},
        {"torchscript", "file, in, out [vocabulary, parameters, flops, activation_bytes]", "a module that torch.jit.save wrote, trained on",
         TorchScript{}},
    };
    return types;
}

std::string layerName(const Layer& layer)
{
    return std::visit(
        Overloaded{[](const Linear& l) {
                       const char* act = l.activation == Activation::Relu   ? ", ReLU"
                                         : l.activation == Activation::Gelu ? ", GELU"
                                                                            : "";
                       return fmt::format("Linear {}→{}{}", l.in, l.out, act);
                   },
                   [](const Embedding& e) {
                       return fmt::format("Embedding {}×{}{}", e.vocabulary, e.dim, e.positions == Positions::Rotary ? ", rotary" : "");
                   },
                   [](const TransformerBlock& b) {
                       return fmt::format("Block d={}, {} heads{}{}", b.dim, b.heads,
                                          b.keyHeads() == b.heads ? "" : fmt::format(", {} of keys", b.keyHeads()),
                                          b.feedForward == FeedForward::SwiGlu ? ", SwiGLU" : "");
                   },
                   [](const Head& h) { return fmt::format("Head {}→{}", h.dim, h.vocabulary); },
                   [](const Convolution& c) {
                       return fmt::format("Convolution {}→{}, {}×{}{}", c.in, c.out, c.kernel, c.kernel,
                                          c.stride == 1 ? "" : fmt::format(", stride {}", c.stride));
                   },
                   [](const ResidualBlock& b) {
                       return fmt::format("Residual {}→{}{}", b.in, b.out, b.stride == 1 ? "" : fmt::format(", stride {}", b.stride));
                   },
                   [](const PooledHead& h) { return fmt::format("Pooled head {}→{}", h.in, h.classes); },
                   [](const Dropout& d) { return fmt::format("Dropout {:g}", d.probability); },
                   [](const Synthetic& s) { return fmt::format("Synthetic {}→{}, {}FLOP", s.in, s.out, shortNumber(s.flops)); },
                   [](const TorchScript& t) { return fmt::format("TorchScript {}", t.file.substr(t.file.find_last_of('/') + 1)); }},
        layer);
}

} // namespace stagecraft::engine
