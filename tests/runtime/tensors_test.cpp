// SPDX-License-Identifier: Apache-2.0
//
// The parts that work on tensors: allocator, layers, linear, optimizer.
#include "engine/probe/saved_tensors_torch.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/gradient_queue_torch.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/linear_torch.h"
#include "engine/runtime/optimizer_torch.h"
#include "tests/runtime/manual_clock.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/relu.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
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
    reclass(tensor.storage().data_ptr(), MemoryClass::Gradients);
    EXPECT_EQ(held(ledger, MemoryClass::Weights), 0);
    EXPECT_EQ(held(ledger, MemoryClass::Gradients), 4004);
    disown(tensor.storage().data_ptr());
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

// Copies and messages allocate for a rank on threads of their own while it looks at its peak. The thread sanitizer watches.
TEST_F(TensorsTest, ThePeakIsWatchedWhileOthersAllocate)
{
    std::jthread other([&](const std::stop_token& stop) {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Buffers});
        for (int i = 0; !stop.stop_requested(); ++i) const at::Tensor passing = at::empty({1 + i % 1000});
    });
    for (int i = 0; i < 2000; ++i) {
        ledger->watchPeak();
        const Bytes most = ledger->peak().value_or(MemorySample{}).bytes[static_cast<std::size_t>(MemoryClass::Buffers)];
        EXPECT_GE(most, 0);
    }
}

TEST_F(TensorsTest, NoRankHoldsMoreThanItHas)
{
    const LedgerHandle small = MemoryLedger::create(clock, 1000);
    const AllocationScope scope({.ledger = small.get(), .memory = MemoryClass::Activations});
    at::Tensor kept = at::empty({200});
    try {
        const at::Tensor more = at::empty({100});
        ADD_FAILURE() << "1200 bytes of 1000";
    } catch (const c10::OutOfMemoryError& error) {
        EXPECT_NE(std::string(error.what_without_backtrace()).find("the rank has 1000 B of memory and holds 800 B (activations 800 B); 400 B more"),
                  std::string::npos)
            << error.what_without_backtrace();
    }
    EXPECT_EQ(held(small, MemoryClass::Activations), 800);
    const at::Tensor fits = at::empty({50});
    EXPECT_EQ(held(small, MemoryClass::Activations), 1000);
    kept.reset();
    EXPECT_EQ(held(small, MemoryClass::Activations), 200);
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

// Narrow weights among them, for which the kernels add up in another order.
TEST_F(TensorsTest, GradientsAddedInPlaceAreAutogradsToTheBit)
{
    const auto expectSame = [](int rows, int in, int out) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(in) + " to " + std::to_string(out));
        const at::Tensor weight = at::randn({out, in}).requires_grad_();
        const at::Tensor bias = at::randn({out}).requires_grad_();
        const at::Tensor plainWeight = weight.detach().clone().requires_grad_();
        const at::Tensor plainBias = bias.detach().clone().requires_grad_();
        for (int i = 0; i < 3; ++i) { // accumulates
            const at::Tensor x = at::randn({rows, in}).requires_grad_();
            const at::Tensor plainX = x.detach().clone().requires_grad_();
            const at::Tensor dy = at::randn({rows, out});
            linearIntoGradient(x, weight, bias).backward(dy);
            at::linear(plainX, plainWeight, plainBias).backward(dy);
            EXPECT_TRUE(at::equal(x.grad(), plainX.grad()));
        }
        EXPECT_TRUE(at::equal(weight.grad(), plainWeight.grad()));
        EXPECT_TRUE(at::equal(bias.grad(), plainBias.grad()));
    };
    for (const int rows : {1, 8, static_cast<int>(kFewRows), static_cast<int>(kFewRows) + 1})
        for (const auto& [in, out] : {std::pair{96, 48}, {8, 8}, {6, 100}, {100, 2}, {31, 33}, {32, 32}, {1, 1}}) expectSame(rows, in, out);
}

// B, and I with W behind it, are both autograd's gradients to the bit; between I and W nothing is in .grad.
TEST_F(TensorsTest, DeferredGradientsAreAutogradsToTheBit)
{
    const auto backward = [](const at::Tensor& y, const at::Tensor& dy) {
        torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(y)}, {dy}, false, false, true);
    };
    const Layer layers[] = {Linear{96, 48, Activation::Gelu}, Linear{96, 3}, TransformerBlock{32, 2, 64}, Embedding{50, 16, 32}, Head{32, 50}};
    for (const Layer& layer : layers)
        for (const auto& [rows, precision] : {std::pair{1, Precision::Fp32}, {8, Precision::Fp32}, {80, Precision::Fp32}, {1, Precision::Bf16},
                                              {8, Precision::Bf16}, {80, Precision::Bf16}}) {
            SCOPED_TRACE(layerName(layer) + ", " + std::to_string(rows) + " rows" + (precision == Precision::Bf16 ? " in bf16" : ""));
            const bool embeds = std::holds_alternative<Embedding>(layer);
            const TensorKind kind{.precision = precision};
            const LayerModule plain(layer, 3, 0, Accumulation::Autograd, kind);
            const LayerModule whole(layer, 3, 0, Accumulation::Deferred, kind);
            const LayerModule split(layer, 3, 0, Accumulation::Deferred, kind);
            std::vector<GradientQueue> later(3);
            for (GradientQueue& queue : later) { // accumulates
                const auto input = [&](const at::Tensor& of) { return embeds ? of : of.to(scalarType(kind.precision)).clone().requires_grad_(); };
                const at::Tensor values = embeds                                       ? at::randint(50, {rows, 16}, at::kLong)
                                          : std::holds_alternative<Linear>(layer)      ? at::randn({rows, 96})
                                                                                       : at::randn({rows, 16, 32});
                const at::Tensor x[] = {input(values), input(values), input(values)};
                const at::Tensor y = plain.forward(x[0]);
                const at::Tensor dy = at::randn_like(y);
                backward(y, dy);
                backward(whole.forward(x[1]), dy);
                {
                    const GradientQueue::Scope scope(queue);
                    backward(split.forward(x[2]), dy);
                }
                EXPECT_FALSE(queue.empty());
                if (embeds) continue;
                EXPECT_TRUE(at::equal(x[1].grad(), x[0].grad()));
                EXPECT_TRUE(at::equal(x[2].grad(), x[0].grad()));
            }
            for (const at::Tensor& parameter : split.parameters()) EXPECT_FALSE(parameter.grad().defined());
            for (GradientQueue& queue : later) {
                queue.run();
                EXPECT_TRUE(queue.empty());
            }
            for (std::size_t i = 0; i < plain.parameters().size(); ++i) {
                EXPECT_EQ(plain.parameters()[i].grad().scalar_type(), at::kFloat); // the sums, in either precision
                EXPECT_TRUE(at::equal(whole.parameters()[i].grad(), plain.parameters()[i].grad())) << "parameter " << i;
                EXPECT_TRUE(at::equal(split.parameters()[i].grad(), plain.parameters()[i].grad())) << "parameter " << i;
            }
        }
}

// Slices one after the other give what the whole sequence gives.
TEST_F(TensorsTest, ABlockReadsTheSlicesBefore)
{
    const LayerModule block(TransformerBlock{16, 2, 32}, 1, 0, Accumulation::Autograd);
    const at::Tensor x = at::randn({2, 7, 16});
    const at::Tensor whole = block.forward(x);
    std::vector<KeysAndValues> caches(1);
    int first = 0;
    int slice = 0;
    for (const int length : {3, 1, 2, 1}) {
        SlicePass pass{.slice = slice++, .firstPosition = first, .caches = caches};
        EXPECT_TRUE(at::allclose(block.forward(x.narrow(1, first, length), &pass), whole.narrow(1, first, length), 1e-5, 1e-6));
        first += length;
    }
    EXPECT_EQ(caches[0].keys.size(), 4U);
}

TEST_F(TensorsTest, SlicesOfASequenceAddUpToIt)
{
    Plan plan;
    plan.model.layers = {Embedding{50, 17, 8}, Head{8, 50}};
    plan.model.loss = Loss::CrossEntropy;
    plan.pipeline = {.schedule = "seq1f1b", .ranks = 2, .chunks = 1, .microbatches = 2, .customSchedule = {}};
    plan.costs.attentionShare = 0.8;
    for (const Slicing slicing : {Slicing::Equal, Slicing::Balanced})
        for (const int slices : {2, 5, 17}) {
            plan.pipeline.slices = slices;
            plan.pipeline.slicing = slicing;
            const std::vector<int> lengths = sliceLengths(plan);
            EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), 0), 17);
            EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 1);
            EXPECT_TRUE(slicing == Slicing::Equal || slices == 17 || lengths.front() > lengths.back()); // the later ones look back further
            EXPECT_EQ(cutSequences(makeInputs(plan), lengths).size(), 2U * static_cast<std::size_t>(slices));
        }
}

// One step from zero moments: m = (1-b1) g, v = (1-b2) g^2, so m^/(sqrt(v^) + eps) = sign(g), and the decay is decoupled:
// w' = w (1 - rate 0.01) - rate sign(g) (Loshchilov and Hutter, algorithm 2).
TEST_F(TensorsTest, AdamWTakesItsFirstStepByTheFormula)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer({.optimizer = OptimizerKind::AdamW}, {weight});
    weight.mutable_grad() = at::full({3}, -5.0);
    optimizer.step(0.1);
    EXPECT_NEAR(weight[0].item<double>(), 2.0 * (1 - 0.1 * 0.01) + 0.1, 1e-6);
}

TEST_F(TensorsTest, SgdStepsDownTheGradient)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer({.optimizer = OptimizerKind::Sgd}, {weight});
    for (int i = 0; i < 2; ++i) {
        weight.mutable_grad() = at::full({3}, 1.5);
        optimizer.step(0.5);
    }
    EXPECT_NEAR(weight[1].item<double>(), 2.0 - 2 * 0.5 * 1.5, 1e-6);
}

// Below 1 bfloat16 goes in steps of 2^-8: one of 0.001 is less than half of that, and ten of them lead to 0.99, whose nearest is 253 of 256.
TEST_F(TensorsTest, SmallStepsOfAWeightInBfloat16AddUpInItsMainCopy)
{
    at::Tensor weight = trainable(at::full({3}, 1.0, at::kBFloat16));
    StageOptimizer optimizer({.precision = Precision::Bf16, .optimizer = OptimizerKind::Sgd}, {weight});
    for (int i = 0; i < 10; ++i) {
        weight.mutable_grad() = at::full({3}, 1.0);
        optimizer.step(0.001);
        if (i == 0) {
            EXPECT_EQ(weight[0].item<double>(), 1.0);
        }
    }
    EXPECT_EQ(weight[0].item<double>(), 253.0 / 256);
    ASSERT_EQ(optimizer.state().size(), 1U);
    EXPECT_EQ(optimizer.state()[0].name, "fp32_param");
    EXPECT_NEAR(optimizer.state()[0].ofParameters[0][0].item<double>(), 0.99, 1e-6);
}

// v = 0.5 v + g: 2, then 3; w goes down by 0.1 v (PyTorch's SGD with momentum).
TEST_F(TensorsTest, MomentumGoesOnWhereItWent)
{
    at::Tensor weight = at::full({3}, 1.0).requires_grad_();
    StageOptimizer optimizer({.optimizer = OptimizerKind::Momentum, .momentum = 0.5}, {weight});
    for (int i = 0; i < 2; ++i) {
        weight.mutable_grad() = at::full({3}, 2.0);
        optimizer.step(0.1);
    }
    EXPECT_NEAR(weight[2].item<double>(), 1.0 - 0.1 * 2 - 0.1 * 3, 1e-6);
}

// The first step of Adam is rate * sign(g); a decay of the weights is part of the gradient (Kingma and Ba, algorithm 1).
TEST_F(TensorsTest, AdamTakesItsFirstStepByTheFormula)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer({.optimizer = OptimizerKind::Adam, .weightDecay = 1.0}, {weight});
    weight.mutable_grad() = at::full({3}, -1.0); // with the decay 1.0
    optimizer.step(0.1);
    EXPECT_NEAR(weight[0].item<double>(), 2.0 - 0.1, 1e-6);
}

TEST_F(TensorsTest, SgdShrinksTheWeightsWhereItIsToldTo)
{
    at::Tensor weight = at::full({3}, 2.0).requires_grad_();
    StageOptimizer optimizer({.optimizer = OptimizerKind::Sgd, .weightDecay = 0.5}, {weight});
    weight.mutable_grad() = at::full({3}, 0.0);
    optimizer.step(0.1);
    EXPECT_NEAR(weight[0].item<double>(), 2.0 - 0.1 * 0.5 * 2.0, 1e-6);
}

// The engine keeps a leaf for each use of a tied table and adds up the two; autograd with one leaf adds them up micro-batch by
// micro-batch. The same gradient, but for the order; of one micro-batch to the bit.
TEST_F(TensorsTest, TheTwoUsesOfATiedTableAddUpToItsGradient)
{
    const Layer embedding = Embedding{50, 16, 32};
    const Layer head = Head{32, 50};
    const LayerModule first(embedding, 3, 0, Accumulation::Autograd);
    LayerModule shared(head, 3, 1, Accumulation::Autograd);
    LayerModule second(head, 3, 1, Accumulation::Autograd);
    const at::Tensor table = first.parameters()[tiedParameter(embedding)];
    tieHead(shared, head, table);
    tieHead(second, head, table.detach().requires_grad_());
    for (const int microbatches : {1, 5}) {
        std::vector<at::Tensor> tokens;
        for (int i = 0; i < microbatches; ++i) tokens.push_back(at::randint(50, {2, 16}, at::kLong));
        const auto train = [&](const LayerModule& last) {
            for (const LayerModule* layer : {&first, &last})
                for (at::Tensor parameter : layer->parameters()) parameter.mutable_grad() = at::Tensor();
            for (const at::Tensor& each : tokens) last.forward(first.forward(each)).square().mean().backward();
        };
        train(shared);
        const at::Tensor one = table.grad().clone();
        train(second);
        const at::Tensor two = table.grad() + second.parameters()[tiedParameter(head)].grad();
        EXPECT_TRUE(microbatches == 1 ? at::equal(one, two) : at::allclose(one, two, 1e-5, 1e-7));
    }
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

// What a graph saved goes to another rank's memory and comes back, and the backward gives the same bits. Each block counts once, weights do
// not.
TEST_F(TensorsTest, MovesWhatAGraphSavedAwayAndBack)
{
    installSavedTensorHooks();
    const LedgerHandle far = MemoryLedger::create(clock);
    const auto weights = [&] {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Weights});
        return std::array{at::randn({64, 64}).requires_grad_(), at::randn({64}).requires_grad_()};
    }();
    const at::Tensor x = [&] {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
        return at::randn({32, 64}).requires_grad_();
    }();
    const auto gradients = [&](SavedTensors* saved) {
        at::Tensor y;
        {
            const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
            std::optional<SavedTensors::Scope> watch;
            if (saved) watch.emplace(*saved);
            // x is saved twice, by a function of our own and by a product
            y = linearIntoGradient(x, weights[0], weights[1]).relu().mul(x);
        }
        if (saved) {
            saved->settle();
            const Bytes block = 32 * 64 * 4;
            EXPECT_EQ(saved->bytes(), 2 * block); // x, and the result of the relu for itself and the product
            const Bytes before = held(ledger, MemoryClass::Activations);
            saved->copyTo({.ledger = far.get(), .memory = MemoryClass::Activations});
            EXPECT_EQ(held(ledger, MemoryClass::Activations), before);
            saved->letGo();
            EXPECT_EQ(held(ledger, MemoryClass::Activations), before - 2 * block);
            EXPECT_EQ(held(far, MemoryClass::Activations), 2 * block);
            saved->copyTo({.ledger = ledger.get(), .memory = MemoryClass::Activations});
            saved->letGo();
            EXPECT_EQ(held(ledger, MemoryClass::Activations), before);
            EXPECT_EQ(held(far, MemoryClass::Activations), 0);
        }
        y.sum().backward();
        std::vector<at::Tensor> result;
        for (at::Tensor tensor : {weights[0], weights[1], x}) {
            result.push_back(tensor.grad());
            tensor.mutable_grad() = at::Tensor();
        }
        return result;
    };
    const std::vector<at::Tensor> expected = gradients(nullptr);
    SavedTensors saved;
    const std::vector<at::Tensor> moved = gradients(&saved);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(moved[i], expected[i])) << i;
}

} // namespace
} // namespace stagecraft::runtime
