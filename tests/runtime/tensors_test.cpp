// SPDX-License-Identifier: Apache-2.0
//
// The parts that work on tensors: allocator, layers, linear, optimizer.
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/linear_torch.h"
#include "engine/runtime/optimizer_torch.h"
#include "tests/runtime/manual_clock.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace engine;

class TensorsTest : public testing::Test {
protected:
    void SetUp() override
    {
        installTaggingAllocator();
        at::set_num_threads(1); // as in every run; no thread of OpenMP ever starts
    }
    static Bytes held(const LedgerHandle& ledger, MemoryClass memory)
    {
        return ledger->held()[static_cast<std::size_t>(memory)];
    }
    ManualClock clock;
    LedgerHandle ledger = MemoryLedger::create(clock);
};

TEST_F(TensorsTest, BooksTheBytesThatWereAskedForWhereTheScopeSays)
{
    at::Tensor tensor;
    {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Weights});
        tensor = at::empty({1001});
    }
    const at::Tensor elsewhere = at::empty({5000});
    EXPECT_EQ(held(ledger, MemoryClass::Weights), 4004);
    reclass(tensor.storage().mutable_data(), MemoryClass::Gradients);
    EXPECT_EQ(held(ledger, MemoryClass::Weights), 0);
    EXPECT_EQ(held(ledger, MemoryClass::Gradients), 4004);
    disown(tensor.storage().mutable_data());
    EXPECT_EQ(held(ledger, MemoryClass::Gradients), 0);
}

TEST_F(TensorsTest, AFreeOnAnotherThreadIsTakenOffItsOwner)
{
    at::Tensor tensor;
    {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
        tensor = at::empty({256});
    }
    std::jthread([&] {
        const LedgerHandle other = MemoryLedger::create(clock);
        const AllocationScope scope({.ledger = other.get()});
        tensor.reset();
        EXPECT_EQ(other->held(), BytesByClass{});
    }).join();
    EXPECT_EQ(held(ledger, MemoryClass::Activations), 0);
}

TEST_F(TensorsTest, ATensorMayOutliveTheHandleOfItsLedger)
{
    at::Tensor tensor;
    {
        const AllocationScope scope({.ledger = ledger.get()});
        tensor = at::empty({256});
    }
    ledger.reset();
    tensor.reset(); // the address sanitizer would object to a ledger freed too early
}

TEST_F(TensorsTest, RemembersThePeakWithinAnAction)
{
    const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
    const at::Tensor kept = at::empty({100});
    ledger->watchPeak();
    EXPECT_FALSE(ledger->peak());
    { const at::Tensor passing = at::empty({1000}); }
    ASSERT_TRUE(ledger->peak());
    EXPECT_EQ(ledger->peak()->bytes[static_cast<std::size_t>(MemoryClass::Activations)], 4400);
    EXPECT_EQ(held(ledger, MemoryClass::Activations), 400);
}

TEST_F(TensorsTest, TheAllocationThatWasChosenFailsAndNoOther)
{
    const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Other, .failIn = 2});
    const at::Tensor first = at::empty({10});
    EXPECT_THROW(at::empty({10}), c10::OutOfMemoryError);
    const at::Tensor third = at::empty({10});
    EXPECT_EQ(held(ledger, MemoryClass::Other), 80);
}

TEST_F(TensorsTest, WeightsFollowFromSeedAndPlaceAlone)
{
    const Layer layer = Linear{8, 4};
    const LayerModule first(layer, 7, 3, Accumulation::Autograd);
    const LayerModule again(layer, 7, 3, Accumulation::InPlace);
    const LayerModule elsewhere(layer, 7, 4, Accumulation::Autograd);
    const LayerModule otherSeed(layer, 8, 3, Accumulation::Autograd);
    EXPECT_TRUE(at::equal(first.parameters()[0], again.parameters()[0]));
    EXPECT_FALSE(at::equal(first.parameters()[0], elsewhere.parameters()[0]));
    EXPECT_FALSE(at::equal(first.parameters()[0], otherSeed.parameters()[0]));
    EXPECT_LE(first.parameters()[0].abs().max().item<double>(), 1 / std::sqrt(8.0));
}

TEST_F(TensorsTest, EveryLayerHasTheParametersThatTheModelCounts)
{
    ModelSpec model;
    model.layers = {Embedding{50, 16, 32}, TransformerBlock{32, 2, 64}, Head{32, 50}};
    model.loss = Loss::CrossEntropy;
    const std::vector<LayerCounts> counts = layerCounts(model);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const LayerModule layer(model.layers[i], 1, static_cast<int>(i), Accumulation::Autograd);
        std::int64_t parameters = 0;
        for (const at::Tensor& parameter : layer.parameters()) parameters += parameter.numel();
        EXPECT_EQ(parameters, counts[i].parameters) << counts[i].name;
    }
}

// Causal attention: what comes later in a sequence changes nothing that came before.
TEST_F(TensorsTest, ABlockLooksOnlyBack)
{
    const LayerModule block(TransformerBlock{16, 2, 32}, 1, 0, Accumulation::Autograd);
    const at::Tensor x = at::randn({1, 6, 16});
    at::Tensor changed = x.clone();
    changed.select(1, 5).add_(1);
    const at::Tensor before = block.forward(x);
    const at::Tensor after = block.forward(changed);
    EXPECT_TRUE(at::equal(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
    EXPECT_FALSE(at::equal(before.select(1, 5), after.select(1, 5)));
}

TEST_F(TensorsTest, GradientsAddedInPlaceAreAutogradsToTheBit)
{
    for (const int rows : {1, 8, static_cast<int>(kFewRows), static_cast<int>(kFewRows) + 1}) {
        const at::Tensor weight = at::randn({48, 96}).requires_grad_();
        const at::Tensor bias = at::randn({48}).requires_grad_();
        const at::Tensor plainWeight = weight.detach().clone().requires_grad_();
        const at::Tensor plainBias = bias.detach().clone().requires_grad_();
        for (int i = 0; i < 3; ++i) { // accumulates
            const at::Tensor x = at::randn({rows, 96}).requires_grad_();
            const at::Tensor plainX = x.detach().clone().requires_grad_();
            const at::Tensor dy = at::randn({rows, 48});
            linearIntoGradient(x, weight, bias).backward(dy);
            at::linear(plainX, plainWeight, plainBias).backward(dy);
            EXPECT_TRUE(at::equal(x.grad(), plainX.grad())) << rows;
        }
        EXPECT_TRUE(at::equal(weight.grad(), plainWeight.grad())) << rows;
        EXPECT_TRUE(at::equal(bias.grad(), plainBias.grad())) << rows;
    }
}

// One step from zero moments: m = (1-b1) g, v = (1-b2) g^2, so m^/(sqrt(v^) + eps) = sign(g), and the decay is decoupled:
// w' = w (1 - rate 0.01) - rate sign(g) (Loshchilov and Hutter, algorithm 2).
TEST_F(TensorsTest, AdamWTakesItsFirstStepByTheFormula)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer(OptimizerKind::AdamW, 0.1, {weight});
    weight.mutable_grad() = at::full({3}, -5.0);
    optimizer.step();
    EXPECT_NEAR(weight[0].item<double>(), 2.0 * (1 - 0.1 * 0.01) + 0.1, 1e-6);
}

TEST_F(TensorsTest, SgdStepsDownTheGradient)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer(OptimizerKind::Sgd, 0.5, {weight});
    for (int i = 0; i < 2; ++i) {
        weight.mutable_grad() = at::full({3}, 1.5);
        optimizer.step();
    }
    EXPECT_NEAR(weight[1].item<double>(), 2.0 - 2 * 0.5 * 1.5, 1e-6);
}

TEST_F(TensorsTest, TargetsOfTokensAreTheNextTokens)
{
    Plan plan;
    plan.model.layers = {Embedding{50, 6, 8}, Head{8, 50}};
    plan.model.loss = Loss::CrossEntropy;
    plan.model.microbatchRows = 2;
    plan.pipeline.microbatches = 3;
    const auto inputs = makeInputs(plan);
    const auto targets = makeTargets(plan);
    ASSERT_EQ(inputs.size(), 3U);
    EXPECT_EQ(inputs[0].sizes(), (std::vector<std::int64_t>{2, 6}));
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(at::equal(targets[i].narrow(1, 0, 5), inputs[i].narrow(1, 1, 5)));
}

} // namespace
} // namespace stagecraft::runtime
