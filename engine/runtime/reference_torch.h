// SPDX-License-Identifier: Apache-2.0
//
// The run's check of itself: the gradients of a step against those of the plain sequential model, or where nothing comes back its
// outputs. The reference knows no stages, boundaries, schedules or hand-offs: it builds the whole model anew from the seed, runs
// the micro-batches one after another on one thread, and lets autograd accumulate. It works between steps, outside of every span
// that is timed, and its memory is booked on no rank. Where weights change while micro-batches are in flight, the weights after the
// step are compared with a plain re-enactment of the update rule. Private to the runtime.
//
//   GradientChecker checker(plan, schedule, partition, batches);
//   if (checker.due(step)) checker.prepare(step, replicas, preparation); // before the step
//   if (checker.due(step)) checker.compare(step, replicas);              // after it
//
// Equal weights, equal data, equal order of accumulation and the same kernels give the same bits. Sums of floats depend on their
// order: a stage adds up in the order of its backwards, so the reference goes through the micro-batches once for each order that
// some stage has; where two directions have a copy of the weights each, it adds up each one's own and then the two, and so it does
// with the two uses of a tied embedding (autograd alone would add them up micro-batch by micro-batch), and with the replicas, the first
// one first. What is left, a sequence cut into slices, rounds differently: then a gradient may be off by kTolerance of the parameter's
// largest one, or by what is below the smallest float with all its bits. The reference computes on the CPU, whatever the run does: on GPUs
// other kernels round otherwise, so there it may be kGpuTolerance, or kTf32Tolerance; in bfloat16 it may be kBf16Tolerance, there and in
// slices. Where the reference itself is no longer finite the run has diverged, as the sequential model would have: that is no fault of the
// pipeline, and is told apart.
#pragma once

#include "engine/checkpoint/checkpoint.h"
#include "engine/runtime/pipeline_torch.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct CheckOutcome {
    engine::GradientCheck result = engine::GradientCheck::Off;
    double maxAbsDiff = 0;
    bool diverged = false;          // the reference has a gradient that is not finite
    engine::FailureMessage failure; // where result is Failed
};

// The update rule of an asynchronous schedule, plainly: the micro-batches one after the other, each through the whole model with the
// version of each stage's weights that the schedule gives it, and an update of a stage's newest version after every group. It keeps
// all versions of a step. Its weights and its optimizers go on from step to step by themselves. Each stage computes where the run's does:
// with other kernels a gradient that is noise alone may have the other sign, and an update by Adam is as large for it as for any.
class Reenactment {
public:
    Reenactment(const engine::Plan& plan, const engine::Schedule& schedule, const engine::Partition& partition, const BatchSource& batches,
                const engine::Checkpoint* resume, const Pipeline& pipeline, const Preparation& preparation);

    void runStep(traces::Step step, const Preparation& preparation);
    [[nodiscard]] const std::vector<at::Tensor>& weights(traces::Stage stage) const { return stages_[traces::index(stage)].versions.back(); }

private:
    struct StageState {
        c10::Device device;
        StageDuties duties;
        std::vector<LayerModule> layers;
        std::vector<std::vector<at::Tensor>> versions; // of the weights, of this step
        std::map<int, std::vector<at::Tensor>> waiting; // gradients by micro-batch, until it is their turn
        std::vector<at::Tensor> gradients;             // of the group so far
        std::size_t collected = 0;                     // gradients of the step
        std::unique_ptr<StageOptimizer> optimizer;
    };
    [[nodiscard]] bool canTake(int microbatch) const;
    void take(int microbatch, traces::Step step);
    static void collect(StageState& stage, double rate);
    static void update(StageState& stage, double rate);

    const engine::Plan& plan_;
    const BatchSource& batches_;
    std::vector<StageState> stages_;
    std::vector<at::Tensor> inputs_; // of the step
    std::vector<at::Tensor> targets_;
};

class GradientChecker {
public:
    static constexpr double kTolerance = 1e-4;
    static constexpr double kGpuTolerance = 1e-3; // other kernels add up in other orders
    static constexpr double kTf32Tolerance = 2e-2; // 10 bits of mantissa: 2^-11 a product, and layers upon layers of them
    static constexpr double kBf16Tolerance = 5e-2; // 8 bits: 2^-9 a value, and each layer rounds what the one before gave
    static double toleranceOf(const engine::RunSpec& run);

    // `resume`: what the run goes on from, and the reference by itself as well; none: both begin with the seed's weights.
    GradientChecker(const engine::Plan& plan, const engine::Schedule& schedule, engine::Partition partition, const BatchSource& batches,
                    const engine::Checkpoint* resume = nullptr);

    [[nodiscard]] bool due(traces::Step step) const;
    void prepare(traces::Step step, const Replicas& replicas, const Preparation& preparation);
    void compare(traces::Step step, const Replicas& replicas);
    [[nodiscard]] const CheckOutcome& outcome() const { return outcome_; }

private:
    // The micro-batches whose gradients a copy of a stage adds up, in that order.
    using Order = std::vector<int>;

    [[nodiscard]] traces::Step firstStep() const { return traces::Step{resume_ ? resume_->step : 0}; }
    void build(const Preparation& preparation);
    void takeWeights(const Replicas& replicas);
    void computeGradients(traces::Step step, const Preparation& preparation);
    void sumTied();
    void clipExpected();
    void computeOutputs(traces::Step step, const Preparation& preparation);
    at::Tensor forward(int microbatch, traces::Step step, const Preparation& preparation) const;
    void compareGradients(traces::Step step, const Replicas& replicas);
    void compareOutputs(traces::Step step, const Replicas& replicas);
    void compareWeights(traces::Step step, Pipeline& pipeline);
    // False where the two differ by more than rounding; otherwise `result` is what it was, or Tolerance.
    // `whole`: what `expected` is a part of. A part may be noise alone (the gradient of a key's bias is 0 but for rounding), and is judged
    // beside the largest of all.
    bool agree(const at::Tensor& given, const at::Tensor& expected, const at::Tensor& whole, engine::GradientCheck& result, double& difference,
               double& scale);

    const engine::Plan& plan_;
    const engine::Schedule& schedule_;
    engine::Partition partition_;
    const engine::Checkpoint* resume_;
    const BatchSource& batches_;
    struct Copy {
        int replica = 0;
        Place place;
    };
    std::map<Order, std::vector<Copy>> orders_; // those of replica 0 come first, of each the direction down: so their micro-batches are numbered
    std::vector<LayerModule> layers_;
    std::vector<std::vector<at::Tensor>> parameters_; // by stage
    std::vector<std::vector<at::Tensor>> expected_;   // gradients by stage; of inference the outputs by micro-batch, one each
    std::vector<at::Tensor> inputs_; // of the step
    std::vector<at::Tensor> targets_;
    std::optional<Reenactment> reenactment_; // asynchronous
    CheckOutcome outcome_;
};

} // namespace stagecraft::runtime
