// SPDX-License-Identifier: Apache-2.0
//
// One stage of the pipeline: its layers, the graphs of the micro-batches in flight, its optimizer. One thread at a time.
// Private to the runtime.
//
//   Tensor y = stage.forward(i, x);       // goes to the next stage; undefined on the last
//   Tensor dx = stage.backward(i, dy);    // goes to the stage before; undefined on the first
//   stage.optimize();                     // after the last backward of the step
//
// Boundary tensors are handed over without a copy: the output is detached and requires a gradient, so the next stage's
// graph starts at it. What the stage keeps of a micro-batch is the graph's root and its input, not the output.
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/optimizer_torch.h"
#include "engine/runtime/preparation.h"

#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

class StageModule {
public:
    struct Spec {
        const engine::Plan& plan;
        int firstLayer = 0;
        int layers = 0;
    };
    // Weights and the optimizer's state are booked in `ledger`.
    StageModule(const Spec& spec, MemoryLedger* ledger, const Preparation& preparation);

    // The first stage's inputs, the last stage's targets: one per micro-batch.
    void giveInputs(std::vector<at::Tensor> inputs) { inputs_ = std::move(inputs); }
    void giveTargets(std::vector<at::Tensor> targets) { targets_ = std::move(targets); }

    at::Tensor forward(int microbatch, at::Tensor input);
    at::Tensor backward(int microbatch, at::Tensor outputGradient);
    void optimize();

    // Loss of the step whose forwards have run, the last stage's; and the shape of its whole output.
    [[nodiscard]] double stepLoss() const;
    [[nodiscard]] std::vector<std::int64_t> outputShape() const;

    [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
    // Moves the gradients out; they belong to no rank's memory from then on. optimize() without it drops them.
    void keepGradients(bool keep) { keepGradients_ = keep; }
    std::vector<at::Tensor> takeGradients() { return std::move(kept_); }

private:
    struct InFlight {
        at::Tensor input;
        torch::autograd::Edge root;
    };

    engine::Loss loss_;
    std::vector<LayerModule> layers_;
    std::vector<at::Tensor> parameters_;
    std::optional<StageOptimizer> optimizer_;
    std::vector<at::Tensor> inputs_;
    std::vector<at::Tensor> targets_;
    std::vector<InFlight> inFlight_; // by micro-batch
    std::vector<double> losses_;     // by micro-batch, so that the sum does not depend on the order
    std::vector<std::int64_t> outputShape_; // of one micro-batch
    at::Tensor one_;                        // gradient of the loss
    bool keepGradients_ = false;
    std::vector<at::Tensor> kept_;
};

} // namespace stagecraft::runtime
