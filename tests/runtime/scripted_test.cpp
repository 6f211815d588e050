// SPDX-License-Identifier: Apache-2.0
//
// Layers from files of torch.jit.save: those that Python wrote (tests/data/torchscript), and some that this test writes.
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/scripted_torch.h"
#include "tests/traces/temporary_folder.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/jit/api/module.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stagecraft::runtime {
namespace {

using engine::TorchScript;
using at::Tensor;
using testing::HasSubstr;
using traces::test::TemporaryFolder;

std::string fileOf(int stage) { return std::string(STAGECRAFT_TEST_DATA) + "/torchscript/stage_" + std::to_string(stage) + ".pt"; }

TorchScript firstStage() { return {.file = fileOf(0), .in = {6}, .out = {8}, .parameters = 136}; }
TorchScript secondStage() { return {.file = fileOf(1), .in = {8}, .out = {4}, .parameters = 52}; }

std::string errorOf(const TorchScript& layer, engine::Precision precision = engine::Precision::Fp32)
{
    try {
        const ScriptedModule module(layer, {.precision = precision});
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "no error";
}

class ScriptedTest : public testing::Test {
protected:
    void SetUp() override
    {
        installTaggingAllocator();
        at::set_num_threads(1);
    }
};

// Dropout of a module from a file goes by LibTorch's one generator, which is set for each pass.
TEST_F(ScriptedTest, DrawsAlikeForOneSeed)
{
    ScriptedModule module({.file = fileOf(2), .in = {6}, .out = {8}, .parameters = 56});
    const Tensor x = at::linspace(-2, 2, 60).reshape({10, 6});
    const Tensor once = module.forward(x, ScriptDraw{5});
    EXPECT_GT(once.eq(0).sum().item<int>(), 20); // of 80, with probability 1/2
    EXPECT_FALSE(at::equal(module.forward(x, ScriptDraw{6}), once));
    EXPECT_TRUE(at::equal(module.forward(x, ScriptDraw{5}), once));
    ScriptedModule other({.file = fileOf(2), .in = {6}, .out = {8}, .parameters = 56}); // as the reference has one
    EXPECT_TRUE(at::equal(other.forward(x, ScriptDraw{5}), once));
    EXPECT_THROW((void)module.forward(x, ScriptDraw{5, false}), std::runtime_error);
    ScriptedModule first(firstStage()); // draws nothing, so a part of a micro-batch is like the whole
    EXPECT_NO_THROW((void)first.forward(x, ScriptDraw{5, false}));
}

TEST_F(ScriptedTest, TellsInOneLineWhatFailsInAPass)
{
    const TemporaryFolder folder;
    torch::jit::Module table("Table");
    table.register_parameter("values", at::randn({3, 2}).requires_grad_(), false);
    table.define("def forward(self, x):\n    return torch.embedding(self.values, x)\n");
    const std::string file = folder.file("table.pt");
    table.save(file);
    ScriptedModule module({.file = file, .in = {1}, .out = {1, 2}, .vocabulary = 9, .parameters = 6});
    try {
        (void)module.forward(at::ones({2, 1}, at::kLong) * 8);
        ADD_FAILURE() << "there is no entry 8";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr(file + ": RuntimeError: index out of range in self. Its table may have fewer entries than the plan's vocabulary"));
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
    }
    const std::string bytes = traces::test::slurp(file);
    for (const std::size_t at : {bytes.size() / 4, bytes.size() / 2, bytes.size() * 3 / 4}) {
        std::string torn = bytes;
        for (std::size_t i = 0; i < 40; ++i) torn[at + i] = '\x7f';
        traces::test::spill(folder.file("torn.pt"), torn);
        const std::string said = errorOf({.file = folder.file("torn.pt"), .in = {1}, .out = {1, 2}, .vocabulary = 9, .parameters = 6});
        EXPECT_TRUE(said == "no error" || said.starts_with(folder.file("torn.pt").string() + ": ")) << said;
    }
}

// What make.py printed when it wrote the files.
TEST_F(ScriptedTest, ComputesWhatPythonDid)
{
    ScriptedModule first(firstStage());
    ScriptedModule second(secondStage());
    const Tensor y = second.forward(first.forward(at::linspace(-2, 2, 12).reshape({2, 6}))).flatten();
    const double expected[] = {-0.218797, -0.655752, -0.042528, 0.863335, -0.245689, -0.348539, -0.083382, 0.871247};
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(y[i].item<double>(), expected[i], 2e-6);
    (y * y).sum().backward();
    const auto shared = std::find_if(first.parameters().begin(), first.parameters().end(),
                                     [](const Tensor& each) { return each.sizes() == at::IntArrayRef{8, 8}; });
    ASSERT_NE(shared, first.parameters().end());
    EXPECT_NEAR(shared->grad().abs().sum().item<double>(), 19.72422, 1e-4);
}

// The first pass is like every later one: nothing is optimized on the way.
TEST_F(ScriptedTest, ComputesTheSameBitsEachTime)
{
    ScriptedModule module(firstStage());
    const Tensor x = at::randn({3, 6});
    std::vector<Tensor> gradients;
    for (int i = 0; i < 4; ++i) {
        module.forward(x).sum().backward();
        for (std::size_t p = 0; p < module.parameters().size(); ++p) {
            Tensor parameter = module.parameters()[p];
            if (i == 0) gradients.push_back(parameter.grad());
            else EXPECT_TRUE(at::equal(parameter.grad(), gradients[p]));
            parameter.mutable_grad() = Tensor();
        }
    }
}

TEST_F(ScriptedTest, TakesOtherWeights)
{
    LayerModule one(firstStage(), 1, 0, Accumulation::Autograd);
    LayerModule other(firstStage(), 1, 0, Accumulation::Autograd);
    EXPECT_NE(one.parameters()[0].unsafeGetTensorImpl(), other.parameters()[0].unsafeGetTensorImpl()); // each has copies of its own
    const Tensor x = at::randn({2, 6});
    const Tensor before = one.forward(x);
    std::vector<Tensor> weights;
    {
        const at::NoGradGuard noGrad;
        for (const Tensor& parameter : one.parameters()) weights.push_back((parameter * 2).requires_grad_());
    }
    one.setParameters(weights);
    EXPECT_FALSE(at::equal(one.forward(x), before));
    EXPECT_TRUE(at::equal(other.forward(x), before));
    one.forward(x).sum().backward();
    for (const Tensor& weight : weights) EXPECT_TRUE(weight.grad().defined());
}

TEST_F(ScriptedTest, SaysWhatIsWrongWithAFile)
{
    const TemporaryFolder folder;
    EXPECT_THAT(errorOf({.file = "/nowhere/a.pt", .in = {6}, .out = {8}, .parameters = 1}), HasSubstr("/nowhere/a.pt: there is no such file"));
    traces::test::spill(folder.file("b.pt"), "not a module");
    EXPECT_THAT(errorOf({.file = folder.file("b.pt").string(), .in = {6}, .out = {8}, .parameters = 1}),
                HasSubstr("b.pt: this is no module that torch.jit.save has written; make one in Python"));
    TorchScript layer = firstStage();
    layer.parameters = 100;
    EXPECT_THAT(errorOf(layer), HasSubstr("stage_0.pt: it trains 136 parameters, but the plan says 100; write \"parameters\": 136"));
    layer = firstStage();
    layer.in = {7};
    EXPECT_THAT(errorOf(layer), HasSubstr("stage_0.pt: it does not take rows of [7], which the plan gives it as in"));
    layer = firstStage();
    layer.out = {4};
    EXPECT_THAT(errorOf(layer), HasSubstr("it makes [2, 8], but the plan says out [4]"));
}

// All floats become bfloat16, a buffer too, but not the whole numbers beside them, which a table is read by.
TEST_F(ScriptedTest, ComputesInBfloat16WhereTheRunDoes)
{
    const TemporaryFolder folder;
    const auto saved = [&](const char* name, const char* code) {
        torch::jit::Module module(name);
        module.register_parameter("w", at::linspace(0.1, 0.4, 4).requires_grad_(), /*is_buffer=*/false);
        module.register_buffer("shift", at::full({4}, 0.3));
        module.register_buffer("place", at::arange(300, 304));
        module.define(code);
        const std::string file = folder.file(std::string(name) + ".pt").string();
        module.save(file);
        return TorchScript{.file = file, .in = {4}, .out = {4}, .parameters = 4};
    };
    const auto coarse = [](const Tensor& x) { return x.to(at::kBFloat16); };
    ScriptedModule module(saved("Sound", "def forward(self, x):\n    return x * self.w + self.shift * (self.place == 301)\n"),
                          {.precision = engine::Precision::Bf16});
    const Tensor x = coarse(at::linspace(-2, 2, 12).reshape({3, 4}));
    const Tensor expected = x * coarse(at::linspace(0.1, 0.4, 4)) + coarse(at::full({4}, 0.3)) * (at::arange(4) == 1);
    const Tensor y = module.forward(x);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::equal(y, expected));
    y.sum().backward();
    EXPECT_EQ(module.parameters().front().grad().scalar_type(), at::kFloat);

    EXPECT_THAT(errorOf(saved("Widens", "def forward(self, x):\n    return x.float() * self.w\n"), engine::Precision::Bf16),
                HasSubstr("Widens.pt: its output is of Float, and the run computes in BFloat16; let it give what it takes, or take run.precision fp32"));
    EXPECT_THAT(errorOf(saved("Mixes", "def forward(self, x):\n    return torch.mm(x, torch.ones([4, 4])) * self.w\n"), engine::Precision::Bf16),
                HasSubstr("in bfloat16, which run.precision bf16 makes of its floats; try precision fp32: RuntimeError: "));
}

TEST_F(ScriptedTest, SaysWhatCannotBeTrained)
{
    const TemporaryFolder folder;
    const auto saved = [&](const char* name, const Tensor& weight, const char* code) {
        torch::jit::Module module(name);
        module.register_parameter("w", weight, /*is_buffer=*/false);
        module.define(code);
        const std::string file = folder.file(std::string(name) + ".pt").string();
        module.save(file);
        return TorchScript{.file = file, .in = {4}, .out = {4}, .parameters = 4};
    };
    EXPECT_THAT(errorOf(saved("Plain", at::ones({4}), "def forward(self, x):\n    return x * self.w\n")),
                HasSubstr("nothing of it can be trained")); // it asks for no gradient
    EXPECT_THAT(errorOf(saved("Double", at::ones({4}, at::kDouble).requires_grad_(), "def forward(self, x):\n    return x * self.w\n")),
                HasSubstr("its parameter w has values of type Double; a model here is of float32"));
    EXPECT_EQ(errorOf(saved("Sound", at::ones({4}).requires_grad_(), "def forward(self, x):\n    return x * self.w\n")), "no error");
}

} // namespace
} // namespace stagecraft::runtime
