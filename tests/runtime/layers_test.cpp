// SPDX-License-Identifier: Apache-2.0
//
// Every kind of layer as LibTorch computes it: what it gives, how many parameters it has, what it keeps.
#include "engine/model/model.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/rotation_torch.h"
#include "engine/runtime/split_torch.h"
#include "engine/runtime/synthetic_torch.h"
#include "tests/runtime/manual_clock.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/sigmoid.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <gtest/gtest.h>

#include <cmath>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using at::Tensor;
using Bytes = traces::Bytes;

constexpr int kRows = 2;
constexpr DataPlace kAnywhere{.seed = 7, .step = 1, .microbatch = 3};

const TransformerBlock kModern{
    .dim = 32, .heads = 8, .ffn = 48, .keyValueHeads = 2, .positions = Positions::Rotary, .feedForward = FeedForward::SwiGlu};

// A model of every layer that LibTorch makes from the plan alone.
std::vector<ModelSpec> models()
{
    ModelSpec gpt{.layers = {Embedding{50, 16, 32}, TransformerBlock{32, 4, 64}, Head{32, 50}}, .loss = Loss::CrossEntropy};
    ModelSpec modern{.layers = {Embedding{50, 16, 32, Positions::Rotary}, kModern, Head{32, 50}}, .loss = Loss::CrossEntropy};
    ModelSpec rotary = modern;
    std::get<TransformerBlock>(rotary.layers[1]).keyValueHeads = 0;
    ModelSpec grouped = gpt;
    std::get<TransformerBlock>(grouped.layers[1]).keyValueHeads = 1;
    ModelSpec resnet{.layers = {Convolution{.in = 3, .out = 16}, ResidualBlock{.in = 16, .out = 16}, ResidualBlock{.in = 16, .out = 32, .stride = 2},
                                PooledHead{32, 10}},
                     .image = ImageSize{3, 9, 8},
                     .loss = Loss::CrossEntropy};
    ModelSpec synthetic{.layers = {Synthetic{.in = 7, .out = 30, .flops = 2e5, .activationBytes = 5000, .parameters = 100},
                                   Synthetic{.in = 30, .out = 4, .parameters = 3}, Synthetic{.in = 4, .out = 4}}};
    ModelSpec dropping = gpt;
    dropping.layers.insert(dropping.layers.begin() + 1, Dropout{0.1});
    dropping.layers.insert(dropping.layers.begin() + 3, Dropout{0.5});
    std::vector<ModelSpec> all{gpt, modern, rotary, grouped, resnet, synthetic, dropping};
    for (ModelSpec& model : all) model.microbatchRows = kRows;
    return all;
}

class LayersTest : public testing::Test {
protected:
    void SetUp() override
    {
        installTaggingAllocator();
        at::set_num_threads(1);
    }
    [[nodiscard]] Bytes held() const
    {
        Bytes sum = 0;
        for (const Bytes bytes : ledger_->held()) sum += bytes;
        return sum;
    }

    ManualClock clock_;
    LedgerHandle ledger_ = MemoryLedger::create(clock_);
};

Tensor inputOf(const ModelSpec& model, std::size_t layer, Precision precision)
{
    std::vector<std::int64_t> shape{model.microbatchRows};
    const RowShape row = rowShapes(model)[layer];
    shape.insert(shape.end(), row.begin(), row.end());
    if (const auto tokens = tokenInput(model); tokens && layer == 0) return at::randint(tokens->vocabulary, shape, at::kLong);
    return at::randn(shape).to(scalarType(precision));
}

std::vector<std::pair<ModelSpec, Precision>> modelsInEveryPrecision()
{
    std::vector<std::pair<ModelSpec, Precision>> all;
    for (const ModelSpec& model : models())
        for (const Precision precision : {Precision::Fp32, Precision::Bf16}) all.emplace_back(model, precision);
    return all;
}

TEST_F(LayersTest, HaveTheShapesAndParametersThatTheModelCounts)
{
    for (const auto& [model, precision] : modelsInEveryPrecision()) {
        ASSERT_TRUE(checkModel(model).ok()) << checkModel(model).error().message;
        const std::vector<LayerCounts> counts = layerCounts(model, precision);
        for (std::size_t i = 0; i < model.layers.size(); ++i) {
            const LayerModule layer(model.layers[i], 1, static_cast<int>(i), Accumulation::Autograd, {.precision = precision});
            std::int64_t parameters = 0;
            for (const Tensor& parameter : layer.parameters()) parameters += parameter.numel();
            EXPECT_EQ(parameters, counts[i].parameters) << counts[i].name;
            const Tensor y = layer.forward(inputOf(model, i, precision));
            const RowShape row = rowShapes(model)[i + 1];
            EXPECT_EQ(y.sizes().slice(1), at::IntArrayRef(row)) << counts[i].name;
            EXPECT_EQ(static_cast<Bytes>(y.nbytes()), counts[i].outputBytes) << counts[i].name;
        }
    }
}

// What a forward leaves behind is what the model counts: to the byte where the count says all, else but for a norm's mean and deviation
// of each position. After I it is what a W needs.
TEST_F(LayersTest, KeepWhatTheModelCounts)
{
    for (const auto& [model, precision] : modelsInEveryPrecision()) {
        const std::vector<LayerCounts> counts = layerCounts(model, precision);
        for (std::size_t i = 0; i < model.layers.size(); ++i) {
            const Layer& layer = model.layers[i];
            SCOPED_TRACE(counts[i].name + (precision == Precision::Bf16 ? " in bf16" : ""));
            const LayerModule module(layer, 1, static_cast<int>(i), Accumulation::Autograd, {.precision = precision});
            const Tensor given = inputOf(model, i, precision);
            const bool tokens = !given.is_floating_point();
            if (!tokens) given.requires_grad_();
            SplitBackward later;
            Tensor dy;
            torch::autograd::Edge root;
            double kept = 0;
            double keptForWeights = 0;
            {
                const AllocationScope scope({.ledger = ledger_.get(), .memory = MemoryClass::Activations});
                {
                    const Tensor y = module.forward(tokens ? given.clone() : given * 1, nullptr, &kAnywhere); // the layer's own input, as that of another layer
                    root = torch::autograd::impl::gradient_edge(y);
                    const AllocationScope nobody({});
                    dy = at::randn_like(y);
                }
                kept = static_cast<double>(held());
                if (!canDefer(layer)) {
                    later.inputGradients({.roots = {std::exchange(root, {})}, .gradients = {dy}, .inputs = {given}});
                    given.mutable_grad() = Tensor();
                    keptForWeights = static_cast<double>(held());
                    later.weightGradients();
                    for (Tensor parameter : module.parameters()) parameter.mutable_grad() = Tensor();
                }
                root = {};
            }
            EXPECT_EQ(held(), 0);
            auto expected = static_cast<double>(counts[i].activationBytes);
            auto expectedForWeights = static_cast<double>(counts[i].wgradBytes) - static_cast<double>(counts[i].outputBytes); // dy is the caller's
            const bool logits = std::holds_alternative<Head>(layer) || std::holds_alternative<PooledHead>(layer);
            if (logits) expected -= 4.0 * static_cast<double>(dy.numel()); // the loss keeps them, in float32
            if (std::holds_alternative<Convolution>(layer) || std::holds_alternative<ResidualBlock>(layer)) {
                expected += static_cast<double>(counts[i].outputBytes); // the last ReLU keeps its result, which the next layer counts
                expectedForWeights += static_cast<double>(counts[i].outputBytes); // here ReLU's gradient is not the caller's
            }
            if (std::holds_alternative<Head>(layer) || std::holds_alternative<TransformerBlock>(layer)) {
                EXPECT_GE(kept, expected);
                EXPECT_LE(kept, 1.06 * expected); // small widths: the norms' means weigh in
            } else {
                EXPECT_EQ(kept, expected);
            }
            if (!canDefer(layer)) {
                EXPECT_EQ(keptForWeights, expectedForWeights);
            }
        }
    }
}

// The same values drop out wherever the micro-batch is cut, and others in the next step, micro-batch and layer. The mean stays.
TEST_F(LayersTest, DropWhatTheirPlaceInTheDataSays)
{
    const Tensor x = at::ones({4, 6, 50});
    const auto dropped = [&](const Tensor& from, DataPlace at, int place = 2) {
        return LayerModule(Dropout{0.25}, 7, place, Accumulation::Autograd).forward(from, nullptr, &at);
    };
    const Tensor whole = dropped(x, kAnywhere);
    EXPECT_NEAR(whole.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.05);
    EXPECT_TRUE(whole.eq(0).logical_or(whole.isclose(at::full({}, 4.0 / 3))).all().item<bool>());
    EXPECT_TRUE(at::equal(dropped(x, kAnywhere), whole));

    DataPlace part = kAnywhere;
    part.positions = 6;
    part.firstPosition = 2;
    EXPECT_TRUE(at::equal(dropped(x.narrow(1, 2, 3), part), whole.narrow(1, 2, 3)));
    part = kAnywhere;
    part.rows = 4;
    part.firstRow = 2;
    EXPECT_TRUE(at::equal(dropped(x.narrow(0, 2, 2), part), whole.narrow(0, 2, 2)));

    DataPlace other = kAnywhere;
    ++other.step;
    EXPECT_FALSE(at::equal(dropped(x, other), whole));
    other = kAnywhere;
    ++other.microbatch;
    EXPECT_FALSE(at::equal(dropped(x, other), whole));
    EXPECT_FALSE(at::equal(dropped(x, kAnywhere, 3), whole));
    other.training = false;
    EXPECT_TRUE(at::equal(dropped(x, other), x));
    EXPECT_TRUE(at::equal(LayerModule(Dropout{0.25}, 7, 2, Accumulation::Autograd).forward(x), x)); // an evaluation
}

// q(p) times k(p') of the same two vectors at all positions: only the distance p - p' counts. And each pair turns by the paper's angle.
TEST_F(LayersTest, RotaryPositionsTellHowFarApart)
{
    const Tensor q = at::randn({1, 1, 1, 8}).expand({1, 1, 12, 8});
    const Tensor k = at::randn({1, 1, 1, 8}).expand({1, 1, 12, 8});
    const Tensor scores = at::matmul(turnedByPosition(q, 5), turnedByPosition(k, 5).transpose(-1, -2)).squeeze();
    for (std::int64_t i = 1; i < 12; ++i)
        for (std::int64_t j = 1; j < 12; ++j) EXPECT_NEAR(scores[i][j].item<double>(), scores[i - 1][j - 1].item<double>(), 1e-5);
    EXPECT_GT((scores[3][3] - scores[3][4]).abs().item<double>(), 1e-3);

    const Tensor turned = turnedByPosition(q, 5);
    for (const std::int64_t position : {0, 7})
        for (const std::int64_t pair : {0, 3}) {
            const double angle = static_cast<double>(5 + position) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 8);
            const double x = q[0][0][position][2 * pair].item<double>();
            const double y = q[0][0][position][2 * pair + 1].item<double>();
            EXPECT_NEAR(turned[0][0][position][2 * pair].item<double>(), x * std::cos(angle) - y * std::sin(angle), 1e-6);
            EXPECT_NEAR(turned[0][0][position][2 * pair + 1].item<double>(), x * std::sin(angle) + y * std::cos(angle), 1e-6);
        }
}

// A turn is orthogonal, so the gradient's way back is the turn back.
TEST_F(LayersTest, RotaryPositionsTurnGradientsBack)
{
    const Tensor x = at::randn({2, 3, 5, 6}).requires_grad_();
    const Tensor y = turnedByPosition(x, 2);
    y.backward(y.detach());
    EXPECT_TRUE(at::allclose(x.grad(), x, 1e-5, 1e-6));
}

// A key head serves its group: the same as a block with all heads, whose keys and values are repeated.
TEST_F(LayersTest, GroupedQueriesReadRepeatedKeys)
{
    const TransformerBlock few{.dim = 24, .heads = 4, .ffn = 8, .keyValueHeads = 2};
    const TransformerBlock all{.dim = 24, .heads = 4, .ffn = 8};
    LayerModule grouped(few, 5, 0, Accumulation::Autograd);
    LayerModule repeated(all, 5, 0, Accumulation::Autograd);
    std::vector<Tensor> weights = grouped.parameters();
    for (const std::size_t place : {2U, 3U}) { // of queries, keys and values: matrix and bias; 6 values a head
        const Tensor& w = weights[place];
        std::vector<Tensor> parts{w.narrow(0, 0, 24)};
        for (const std::int64_t first : {24, 36})
            for (const std::int64_t head : {0, 0, 1, 1}) parts.push_back(w.narrow(0, first + head * 6, 6));
        weights[place] = at::cat(parts, 0);
    }
    repeated.setParameters(weights);
    const Tensor x = at::randn({2, 9, 24});
    EXPECT_TRUE(at::allclose(grouped.forward(x), repeated.forward(x), 1e-5, 1e-6));
}

// Attention switched off by a projection of zeros: what is left is x + down(silu(gate) * up).
TEST_F(LayersTest, SwiGluGatesWhatItLetsThrough)
{
    LayerModule block(TransformerBlock{.dim = 12, .heads = 2, .ffn = 20, .feedForward = FeedForward::SwiGlu}, 5, 0, Accumulation::Autograd);
    const at::NoGradGuard noGrad;
    const std::vector<Tensor>& w = block.parameters();
    for (const std::size_t place : {4U, 5U}) Tensor(w[place]).zero_();
    const Tensor x = at::randn({2, 3, 12});
    const Tensor mean = x.mean(-1, /*keepdim=*/true);
    const Tensor norm = (x - mean) / (x.var(-1, /*unbiased=*/false, /*keepdim=*/true) + 1e-5).sqrt();
    const Tensor gate = at::linear(norm, w[8].narrow(0, 0, 20), w[9].narrow(0, 0, 20));
    const Tensor up = at::linear(norm, w[8].narrow(0, 20, 20), w[9].narrow(0, 20, 20));
    const Tensor expected = x + at::linear(gate * at::sigmoid(gate) * up, w[10], w[11]);
    EXPECT_TRUE(at::allclose(block.forward(x), expected, 1e-5, 1e-6));
}

// Slices one after the other give what the whole sequence gives, whatever the block is like.
TEST_F(LayersTest, EveryBlockReadsTheSlicesBefore)
{
    for (TransformerBlock block : {kModern, TransformerBlock{.dim = 32, .heads = 4, .ffn = 48, .positions = Positions::Rotary},
                                   TransformerBlock{.dim = 32, .heads = 4, .ffn = 48, .keyValueHeads = 1}}) {
        SCOPED_TRACE(layerName(block));
        const LayerModule module(block, 1, 0, Accumulation::Autograd);
        const Tensor x = at::randn({2, 7, 32});
        const Tensor whole = module.forward(x);
        std::vector<KeysAndValues> caches(1);
        int first = 0;
        int slice = 0;
        for (const int length : {3, 1, 2, 1}) {
            SlicePass pass{.slice = slice++, .firstPosition = first, .caches = caches};
            EXPECT_TRUE(at::allclose(module.forward(x.narrow(1, first, length), &pass), whole.narrow(1, first, length), 1e-5, 1e-6));
            first += length;
        }
        EXPECT_EQ(caches[0].keys[0].size(1), block.keyHeads());
    }
}

// A layer of a chosen size: linear in its input and its weights, so that a change of either shows in the output as its gradient says.
TEST_F(LayersTest, SyntheticGradientsAreRight)
{
    for (const auto& [in, out, parameters] : {std::tuple{5, 12, 7}, {12, 5, 23}, {6, 6, 6}, {1, 3, 1}}) {
        const Synthetic layer{.in = in, .out = out, .parameters = parameters};
        const Tensor x = at::randn({3, in}).requires_grad_();
        const Tensor w = at::randn({parameters}).requires_grad_();
        const Tensor y = synthetic(layer, x, w);
        const Tensor dy = at::randn_like(y);
        y.backward(dy);
        const at::NoGradGuard noGrad;
        const Tensor moveX = at::randn_like(x);
        const Tensor moveW = at::randn_like(w);
        EXPECT_NEAR(((synthetic(layer, x + moveX, w) - y) * dy).sum().item<double>(), (moveX * x.grad()).sum().item<double>(), 1e-4);
        EXPECT_NEAR(((synthetic(layer, x, w + moveW) - y) * dy).sum().item<double>(), (moveW * w.grad()).sum().item<double>(), 1e-4);
        EXPECT_GT(w.grad().abs().min().item<double>(), 0); // every weight has a part
    }
}

TEST_F(LayersTest, SyntheticWorkIsWhatWasAskedFor)
{
    constexpr double kColumn = 2 * 128 * 128;
    EXPECT_EQ(spend(0), 0);
    EXPECT_EQ(spend(kColumn - 1), 0);
    for (const double flops : {1e5, 4.2e6, 1e7 + 1}) {
        EXPECT_LE(spend(flops), flops);
        EXPECT_GT(spend(flops), flops - kColumn);
    }
    EXPECT_EQ(held(), 0);
}

} // namespace
} // namespace stagecraft::runtime
