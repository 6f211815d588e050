// SPDX-License-Identifier: Apache-2.0
//
// The layers that a plan's model is made of, as values. Tensors are floats of the run's precision; shapes are (rows, ...) with rows =
// micro-batch size.
//
//   const Layer layer = TransformerBlock{.dim = 64, .heads = 8, .ffn = 176, .keyValueHeads = 2, .feedForward = FeedForward::SwiGlu};
//   layerName(layer) == "Block d=64, 8 heads, 2 of keys, SwiGLU"
#pragma once

#include "traces/base/units.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stagecraft::engine {

enum class Activation : std::uint8_t { None, Relu, Gelu };

// How a model of sequences knows where in its sequence a token stands.
enum class Positions : std::uint8_t {
    Learned, // a table that the embedding adds
    Rotary,  // every block turns its queries and keys by their position (Su et al., arXiv 2104.09864)
};

// What a block has behind its attention.
enum class FeedForward : std::uint8_t {
    Gelu,   // down(gelu(up(x)))
    SwiGlu, // down(silu(gate(x)) * up(x)) (Shazeer, arXiv 2002.05202); with biases, as all linear layers here
};

// (rows, [sequence,] in) -> (rows, [sequence,] out), with bias.
struct Linear {
    int in = 0;
    int out = 0;
    Activation activation = Activation::None;
    bool operator==(const Linear&) const = default;
};

// Token embedding, with a table of positions where they are learned: (rows, sequence) int64 -> (rows, sequence, dim).
struct Embedding {
    int vocabulary = 0;
    int sequence = 0;
    int dim = 0;
    Positions positions = Positions::Learned;
    bool operator==(const Embedding&) const = default;
};

// Pre-norm transformer block, causal attention: x + o(sdpa(qkv(norm(x)))), then x + feedForward(norm(x)).
struct TransformerBlock {
    int dim = 0;
    int heads = 0;
    int ffn = 0;
    int keyValueHeads = 0; // each read by a group of query heads (Ainslie et al., arXiv 2305.13245); 0: as many as heads
    Positions positions = Positions::Learned; // the same as the embedding's
    FeedForward feedForward = FeedForward::Gelu;

    [[nodiscard]] int headDim() const { return dim / heads; }
    [[nodiscard]] int keyHeads() const { return keyValueHeads == 0 ? heads : keyValueHeads; }
    [[nodiscard]] int keyWidth() const { return keyHeads() * headDim(); } // of the keys of one position, and of the values
    [[nodiscard]] int wideWidth() const { return feedForward == FeedForward::SwiGlu ? 2 * ffn : ffn; } // that the first product gives
    bool operator==(const TransformerBlock&) const = default;
};

// LayerNorm over dim, then Linear(dim, vocabulary).
struct Head {
    int dim = 0;
    int vocabulary = 0;
    bool operator==(const Head&) const = default;
};

// relu(norm(conv(x))): (rows, in, height, width) -> (rows, out, height / stride, width / stride), rounded up. Square kernel with zeros
// around the image, no bias. GroupNorm (Wu and He, arXiv 1803.08494), because what BatchNorm computes depends on how a batch is cut into
// micro-batches.
struct Convolution {
    int in = 0;
    int out = 0;
    int kernel = 3; // odd
    int stride = 1;
    int groups = 8; // of the norm; they divide `out`
    bool operator==(const Convolution&) const = default;
};

// ResNet's basic block (He et al., arXiv 1512.03385 fig. 5): relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)), 3x3 kernels, the first
// with the stride. The shortcut is x itself, or where stride or channels change norm(conv(x)) with a 1x1 kernel.
struct ResidualBlock {
    int in = 0;
    int out = 0;
    int stride = 1;
    int groups = 8;
    [[nodiscard]] bool projects() const { return in != out || stride != 1; }
    bool operator==(const ResidualBlock&) const = default;
};

// Mean over the image, then Linear(in, classes): (rows, in, height, width) -> (rows, classes).
struct PooledHead {
    int in = 0;
    int classes = 0;
    bool operator==(const PooledHead&) const = default;
};

// Each value is 0 with a probability, and the others grow so that the mean stays (Srivastava et al., JMLR 15, 2014). Which ones follows
// from the run's seed, the step and the value's place in the batch and the model: it is the same for every pipeline, and when it is
// computed again. Where nothing is trained all values pass. Of any shape; not the first layer.
struct Dropout {
    double probability = 0.1; // below 1
    bool operator==(const Dropout&) const = default;
};

// A layer for studies, of a chosen size: (rows, in) -> (rows, out). It really does so much arithmetic, in matrix products, keeps so many
// bytes and has so many weights, whose gradients are right.
struct Synthetic {
    int in = 0;
    int out = 0;
    double flops = 0;              // of a forward, for one row; the input gradient and the weight gradient take as many each
    traces::Bytes activationBytes = 0; // what a forward keeps for one row, its input in it; at least that
    std::int64_t parameters = 1;
    bool operator==(const Synthetic&) const = default;
};

// A module that Python wrote with torch.jit.script(...).save(file): trained from the values that it was saved with. What it is like
// inside only its file knows, so the plan says what is counted.
struct TorchScript {
    std::string file = {};
    std::vector<int> in = {};  // extents of one row, without the rows: {784}, {16, 64}, {3, 32, 32}
    std::vector<int> out = {};
    int vocabulary = 0;            // not 0: it takes tokens, int64 below this, and stands first
    std::int64_t parameters = 0;   // that are trained; a run says so where there are more or fewer
    double flops = 0;              // of a forward, for one row; 0: two for each parameter
    traces::Bytes activationBytes = 0; // what a forward keeps for one row; 0: input and output
    bool operator==(const TorchScript&) const = default;
};

using Layer = std::variant<Linear, Embedding, TransformerBlock, Head, Convolution, ResidualBlock, PooledHead, Dropout, Synthetic, TorchScript>;

// What kinds of layers there are, in the variant's order.
struct LayerType {
    std::string_view name;  // of a plan file: "linear"
    std::string_view keys;  // that it must have, and in brackets those that it may have
    std::string_view about;
    Layer blank;
};
const std::vector<LayerType>& layerTypes();

// As figures and messages show it: "Linear 1024→2048, ReLU".
std::string layerName(const Layer& layer);

} // namespace stagecraft::engine
