// SPDX-License-Identifier: Apache-2.0
//
// bf16_steps FOLDER: trains a little GPT in bfloat16, for a judge, by each optimizer: FOLDER/adamw/step-0000001 and so on are the
// checkpoints after each step, and FOLDER/begin.safetensors has the weights at the start and each micro-batch: "inputs.0", "targets.0".
#include "engine/checkpoint/tensor_file.h"
#include "engine/plan/plan_words.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/local_session.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <filesystem>
#include <iostream>

using namespace stagecraft;
using namespace stagecraft::engine;

namespace {

Plan littlePlan()
{
    Plan plan;
    plan.model.layers = {Embedding{50, 16, 32}, TransformerBlock{32, 2, 64}, TransformerBlock{32, 2, 64}, Head{32, 50}};
    plan.model.loss = Loss::CrossEntropy;
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = "zb-h1", .ranks = 2, .microbatches = 4, .customSchedule = {}};
    plan.run.precision = Precision::Bf16;
    plan.run.steps = 3;
    plan.run.learningRate = 0.01;
    plan.run.checkpointEvery = 1;
    return plan;
}

Expected<void> writeBegin(const Plan& plan, const std::filesystem::path& file)
{
    at::set_num_threads(1);
    std::vector<runtime::LayerModule> layers;
    std::vector<std::pair<TensorInfo, at::Tensor>> all;
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
        const at::Tensor dense = tensor.detach().contiguous();
        all.push_back({{name, dense.scalar_type() == at::kLong ? TensorType::I64 : TensorType::BF16, dense.sizes().vec()}, dense});
    };
    for (std::size_t i = 0; i < plan.model.layers.size(); ++i) {
        layers.emplace_back(plan.model.layers[i], plan.run.seed, static_cast<int>(i), runtime::Accumulation::Autograd,
                            runtime::TensorKind{.precision = plan.run.precision});
        const std::vector<std::string> names = layers.back().parameterNames();
        for (std::size_t k = 0; k < names.size(); ++k) add("layers." + std::to_string(i) + "." + names[k], layers.back().parameters()[k]);
    }
    const std::vector<at::Tensor> inputs = runtime::makeInputs(plan);
    const std::vector<at::Tensor> targets = runtime::makeTargets(plan);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        add("inputs." + std::to_string(i), inputs[i]);
        add("targets." + std::to_string(i), targets[i]);
    }
    std::vector<TensorData> data;
    for (const auto& [info, tensor] : all) data.push_back({info, tensor.const_data_ptr()});
    return writeTensorFile(file, std::move(data));
}

Expected<void> train(const Plan& plan)
{
    const std::unique_ptr<Session> session = runtime::makeLocalSession({});
    if (Expected<void> started = session->start(plan); !started.ok()) return started;
    while (!finished(session->state())) {
        session->waitForRecords(std::chrono::milliseconds(20));
        session->takeRecords();
    }
    if (session->state() != SessionState::Finished) return Error{"the run failed"};
    return {};
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 2) return 2;
    const std::filesystem::path folder = arguments[1];
    Plan plan = littlePlan();
    Expected<void> done = writeBegin(plan, folder / "begin.safetensors");
    for (const auto& [word, optimizer] : kOptimizerWords) {
        if (!done.ok()) break;
        plan.run.optimizer = optimizer;
        plan.run.checkpoint = folder / word;
        done = train(plan);
    }
    if (!done.ok()) std::cerr << done.error().message << '\n';
    return done.ok() ? 0 : 1;
}
