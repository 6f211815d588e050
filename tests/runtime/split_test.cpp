// SPDX-License-Identifier: Apache-2.0
//
// The backward in two parts against the plain one, on any graph.
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/split_torch.h"
#include "tests/runtime/manual_clock.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <gtest/gtest.h>

#include <random>

namespace stagecraft::runtime {
namespace {

using at::Tensor;
using torch::autograd::Edge;
using torch::autograd::impl::gradient_edge;
using Tensors = std::vector<Tensor>;

constexpr int kWidth = 6;

// What a stage may be: a graph of layers that use weights once, twice, through each other, and in places that the input never sees.
struct Module {
    explicit Module(unsigned number) : seed(number)
    {
        for (int i = 0; i < 4; ++i) matrices.push_back((at::randn({kWidth, kWidth}) * 0.4).requires_grad_());
        for (int i = 0; i < 4; ++i) vectors.push_back(at::randn({kWidth}).requires_grad_());
    }
    [[nodiscard]] Module copy() const
    {
        Module other = *this;
        for (Tensors* list : {&other.matrices, &other.vectors})
            for (Tensor& each : *list) each = each.detach().clone().requires_grad_();
        return other;
    }
    [[nodiscard]] Tensors weights() const
    {
        Tensors all = matrices;
        all.insert(all.end(), vectors.begin(), vectors.end());
        return all;
    }

    // `first`: the edge of the first layer's result.
    [[nodiscard]] Tensor forward(const Tensors& inputs, Edge* first = nullptr) const
    {
        std::mt19937 random(seed);
        const auto pick = [&](const Tensors& from) { return from[random() % from.size()]; };
        const Tensor turned = matrices[0].t();                 // one node that several layers use
        const Tensor product = at::mm(matrices[1], matrices[2]); // a weight made of weights
        const Tensor constant = at::ones({3, kWidth});
        Tensors values = inputs;
        values.push_back(at::linear(pick(inputs), pick(matrices), pick(vectors)));
        if (first) *first = gradient_edge(values.back());
        if (first) values.erase(values.begin(), values.end() - 1); // as in a stage: only the first layer sees the data
        for (int i = 0; i < 9; ++i) {
            const Tensor& a = pick(values);
            const Tensor& b = pick(values);
            switch (random() % 11) {
            case 0: values.push_back(at::linear(a, pick(matrices), pick(vectors))); break;
            case 1: values.push_back(a * pick(vectors)); break;
            case 2: values.push_back(at::layer_norm(a, {kWidth}, pick(vectors), pick(vectors))); break;
            case 3: values.push_back(at::relu(a)); break;
            case 4: values.push_back(at::tanh(a)); break;
            case 5: values.push_back(a + b); break;
            case 6: values.push_back(at::tanh(a) * b); break;
            case 7: values.push_back(at::mm(a, product)); break;
            case 8: values.push_back(at::mm(a, turned)); break;
            case 9: values.push_back(a + at::linear(constant, pick(matrices))); break; // a branch without input
            default: values.push_back(at::gelu(a)); break;
            }
        }
        return values.back() + values[values.size() - 2] * pick(vectors);
    }

    unsigned seed;
    Tensors matrices;
    Tensors vectors;
};

void plainBackward(const Tensor& y, const Tensor& dy)
{
    torch::autograd::Engine::get_default_engine().execute({gradient_edge(y)}, {dy}, false, false, true);
}

bool same(const Tensor& a, const Tensor& b) { return a.defined() == b.defined() && (!a.defined() || at::equal(a, b)); }

class SplitTest : public testing::Test {
protected:
    void SetUp() override
    {
        installTaggingAllocator();
        at::set_num_threads(1);
    }
};

// Three micro-batches, whose Ws come late and in another order than their Is must not: the sums are those of plain backwards, to the bit.
TEST_F(SplitTest, GivesTheGradientsOfThePlainBackwardOnRandomGraphs)
{
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        const Module plain(seed);
        const Module split = plain.copy();
        const bool firstStage = seed % 4 == 0; // whose inputs are data
        std::vector<SplitBackward> later(3);
        for (SplitBackward& each : later) {
            Tensors data{at::randn({3, kWidth}), at::randn({3, kWidth})};
            if (seed % 3 == 0) data.pop_back();
            const auto asLeaves = [&] {
                Tensors leaves;
                for (const Tensor& value : data) leaves.push_back(value.clone().requires_grad_(!firstStage));
                return leaves;
            };
            const Tensors x = asLeaves();
            const Tensors again = asLeaves();
            const Tensor dy = at::randn({3, kWidth});
            Edge ignored;
            plainBackward(plain.forward(x, firstStage ? &ignored : nullptr), dy);
            Edge first;
            const Tensor y = split.forward(again, firstStage ? &first : nullptr);
            each.inputGradients({.roots = {gradient_edge(y)}, .gradients = {dy}, .inputs = again, .end = first});
            for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(same(x[i].grad(), again[i].grad())) << "input " << i;
        }
        for (const Tensor& weight : split.weights()) EXPECT_FALSE(weight.grad().defined());
        for (SplitBackward& each : later) each.weightGradients();
        const Tensors expected = plain.weights();
        const Tensors found = split.weights();
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(expected[i].grad(), found[i].grad())) << "weight " << i;
    }
}

// pytorch#180952: with a weight that two layers use, torch.distributed.pipelining 2.11 counts the lower layer's part twice.
TEST_F(SplitTest, CountsAWeightThatTwoLayersUseOnce)
{
    const Tensor w = at::randn({kWidth, kWidth}).requires_grad_();
    const Tensor scale = at::randn({kWidth}).requires_grad_(); // without a node between weight and layer
    const auto forward = [&](const Tensor& x) { return at::linear(at::relu(at::linear(x, w) * scale), w) * scale; };
    const Tensor x = at::randn({3, kWidth}).requires_grad_();
    const Tensor dy = at::randn({3, kWidth});
    plainBackward(forward(x), dy);
    const Tensors expected{w.grad(), scale.grad()};
    for (Tensor each : {w, scale, x}) each.mutable_grad() = Tensor();
    SplitBackward later;
    later.inputGradients({.roots = {gradient_edge(forward(x))}, .gradients = {dy}, .inputs = {x}});
    later.weightGradients();
    EXPECT_TRUE(at::equal(w.grad(), expected[0]));
    EXPECT_TRUE(at::equal(scale.grad(), expected[1]));
}

// After I what only the input gradient needed is gone; after W everything is but the gradients.
TEST_F(SplitTest, LetsGoOfWhatItKept)
{
    constexpr std::int64_t kImage = 4 * 8 * 8; // values of a micro-batch's row
    ManualClock clock;
    const LedgerHandle ledger = MemoryLedger::create(clock);
    const auto held = [&] { return ledger->held()[static_cast<std::size_t>(MemoryClass::Activations)]; };
    const Tensor kernel = at::randn({4, 4, 3, 3}).requires_grad_();
    const Tensor factor = at::ones({4}).requires_grad_();
    Tensor x = at::randn({2, 4, 8, 8}).requires_grad_();
    const Tensor dy = at::randn({2, 4, 8, 8});
    const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
    for (int i = 0; i < 3; ++i) {
        SplitBackward later;
        {
            Edge root;
            {
                const Tensor y = at::tanh(at::conv2d(at::tanh(at::group_norm(x * 2, 2, factor)), kernel, {}, 1, 1));
                root = gradient_edge(y);
            }
            // the norm's input, mean and deviation; tanh's result, which is the convolution's input as well; the last tanh's
            EXPECT_EQ(held(), 4 * 2 * (3 * kImage + 2 * 2));
            later.inputGradients({.roots = {std::exchange(root, {})}, .gradients = {dy}, .inputs = {x}});
            x.mutable_grad() = Tensor();
        }
        EXPECT_EQ(held(), 4 * 2 * (4 * kImage + 2 * 2)); // the last tanh's result went, two gradients came
        later.weightGradients();
        for (Tensor weight : {kernel, factor}) weight.mutable_grad() = Tensor();
        EXPECT_EQ(held(), 0);
        later.weightGradients(); // has nothing left
        EXPECT_FALSE(kernel.grad().defined());
    }
}

// A chain far deeper than the stack of a thread would take as a recursion.
TEST_F(SplitTest, TakesADeepGraph)
{
    const Tensor w = at::randn({2}).requires_grad_();
    const Tensor x = at::randn({2}).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < 20'000; ++i) y = y * w;
    SplitBackward later;
    later.inputGradients({.roots = {gradient_edge(y)}, .gradients = {at::ones({2})}, .inputs = {x}});
    y = Tensor();
    later.weightGradients();
    EXPECT_TRUE(w.grad().defined());
}

} // namespace
} // namespace stagecraft::runtime
