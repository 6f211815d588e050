// SPDX-License-Identifier: Apache-2.0
//
// A model as a plan describes it: a list of layers, an input, a loss. The runtime builds LibTorch modules from it; here
// only sizes are counted.
//
//   ModelSpec model{.layers = {Linear{1024, 2048, Activation::Relu}, Linear{2048, 1024}}, .microbatchRows = 8};
//   layerCounts(model)[0].parameters == 2'099'200
#pragma once

#include "engine/model/layers.h"
#include "engine/model/precision.h"
#include "traces/base/expected.h"
#include "traces/base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::engine {

using traces::Bytes;
using traces::Error;
using traces::Expected;
using traces::TimeNs;

enum class Loss : std::uint8_t {
    MeanSquaredError, // float target of the output's shape
    CrossEntropy,     // int64 target: (rows, sequence) the next token, or (rows) a class
};

inline constexpr std::size_t kMostLayers = 4096;

// The images that a model takes: (rows, channels, height, width).
struct ImageSize {
    int channels = 0;
    int height = 0;
    int width = 0;
    bool operator==(const ImageSize&) const = default;
};

// Data is made from the plan's seed: float inputs are N(0,1), tokens and classes are uniform.
struct ModelSpec {
    std::vector<Layer> layers; // expanded: a repeated layer stands here several times
    std::optional<ImageSize> image = {}; // where the first layer takes images
    Loss loss = Loss::MeanSquaredError;
    int microbatchRows = 1;
    bool tiedEmbeddings = false; // the head's matrix is the embedding's table (Press and Wolf, arXiv 1608.05859)

    [[nodiscard]] bool empty() const { return layers.empty(); }
    bool operator==(const ModelSpec&) const = default;
};

// Sizes of one layer for one micro-batch; FLOPs count 2 for a multiply-add (Megatron-LM, arXiv 2104.04473 appendix).
struct LayerCounts {
    std::int64_t parameters = 0;
    double forwardFlops = 0;
    double attentionFlops = 0;   // of the forward's, what grows with the position: queries times keys, and their values
    double backwardFlops = 0;    // twice the forward's: input and weight gradient
    Bytes outputBytes = 0;       // what is handed to the next layer
    Bytes activationBytes = 0;   // kept from F until B: inputs of matrix products, norms, attention, activations
    // What a weight gradient that comes later needs: the inputs of matrix products, which F kept, and the gradients of their outputs,
    // which the input gradient makes. Gradients of norms are small sums that come with the input gradient.
    Bytes wgradBytes = 0;
    std::string name = {};       // "Linear 1024→2048, ReLU"
};

// An error names the layer that does not fit the one before it ("layer 2 takes 512 values, layer 1 gives 2048").
Expected<void> checkModel(const ModelSpec& model);
std::vector<LayerCounts> layerCounts(const ModelSpec& model, Precision precision = Precision::Fp32); // which bytes alone go by

// Extents of one row: {sequence} tokens, {values}, {sequence, values} or {channels, height, width}.
using RowShape = std::vector<std::int64_t>;
// In front of the first layer and behind each. Precondition: the model is sound.
std::vector<RowShape> rowShapes(const ModelSpec& model);

// Shape of what enters the first layer, of what the last gives, and of what that is compared with, for `rows` rows.
std::vector<std::int64_t> inputShape(const ModelSpec& model, int rows);
std::vector<std::int64_t> outputShape(const ModelSpec& model, int rows);
std::vector<std::int64_t> targetShape(const ModelSpec& model, int rows);

// Of a model that takes tokens: how many there are, and how many a row has. Nothing: it takes floats.
struct TokenInput {
    int vocabulary = 0;
    int sequence = 0;
};
std::optional<TokenInput> tokenInput(const ModelSpec& model);

// How many of the layers each stage takes.
using Partition = std::vector<int>;

// What the stages of a partition are to have as equal as can be.
enum class PartitionRule : std::uint8_t {
    Flops,
    Uniform,    // the number of layers
    Parameters,
    Time,       // measured, from the plan's costs
    Memory,     // weights, optimizer and the activations that the schedule has in flight
};

// Contiguous, with the largest sum of `weight` over a stage as small as possible; no stage is empty.
// Linear partition by dynamic programming; among equal solutions later stages get more layers. An error where there are
// more stages than layers.
Expected<Partition> balancedPartition(const std::vector<double>& weight, int stages);

} // namespace stagecraft::engine
