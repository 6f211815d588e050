// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's own clip_grad_norm_ judges a clipped run: the same model, trained plainly on one thread.
#include "engine/checkpoint/checkpoint.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/layer_torch.h"
#include "tests/runtime/run_plan.h"
#include "tests/traces/temporary_folder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty_like.h>
#include <torch/nn/utils/clip_grad.h>

#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using namespace engine;

TEST(ClippedRun, HasTheWeightsThatPyTorchsClippingGives)
{
    const traces::test::TemporaryFolder folder;
    Plan plan;
    plan.model.layers = {Embedding{50, 16, 32}, TransformerBlock{32, 2, 64}, TransformerBlock{32, 2, 64}, Head{32, 50}};
    plan.model.loss = Loss::CrossEntropy;
    plan.model.microbatchRows = 2;
    plan.pipeline.ranks = 4;
    plan.pipeline.microbatches = 4;
    plan.run.steps = 6;
    plan.run.optimizer = OptimizerKind::Sgd;
    plan.run.learningRate = 0.5;
    plan.run.clipNorm = 0.1;
    plan.run.checkpoint = folder.file("clipped");
    const Outcome outcome = runPlan(plan);
    ASSERT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");

    std::vector<LayerModule> layers;
    std::vector<at::Tensor> parameters;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < plan.model.layers.size(); ++i) {
        const LayerModule& layer = layers.emplace_back(plan.model.layers[i], plan.run.seed, static_cast<int>(i), Accumulation::Autograd);
        parameters.insert(parameters.end(), layer.parameters().begin(), layer.parameters().end());
        for (const std::string& name : layer.parameterNames()) names.push_back("layers." + std::to_string(i) + "." + name);
    }
    const std::vector<at::Tensor> inputs = makeInputs(plan);
    const std::vector<at::Tensor> targets = makeTargets(plan);
    for (int step = 0; step < plan.run.steps; ++step) {
        for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            at::Tensor x = inputs[i];
            for (const LayerModule& layer : layers) x = layer.forward(x);
            shareOfLoss(plan.model.loss, x, targets[i], static_cast<double>(inputs.size())).backward();
        }
        EXPECT_GT(torch::nn::utils::clip_grad_norm_(parameters, plan.run.clipNorm), plan.run.clipNorm); // there is something to clip
        const at::NoGradGuard noGrad;
        for (at::Tensor& parameter : parameters) parameter.sub_(plan.run.learningRate * parameter.grad());
    }

    const Expected<Checkpoint> checkpoint = openCheckpoint(folder.file("clipped"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor found = at::empty_like(parameters[i]);
        ASSERT_TRUE(checkpoint.value()
                        .weights.read(names[i], {static_cast<std::byte*>(found.mutable_data_ptr()), static_cast<std::size_t>(found.nbytes())})
                        .ok());
        EXPECT_TRUE(at::allclose(found, parameters[i], 1e-5, 1e-6)) << names[i] << ": " << (found - parameters[i]).abs().max().item<double>();
    }
}

} // namespace
} // namespace stagecraft::runtime
