// SPDX-License-Identifier: Apache-2.0
//
// One stage of the pipeline: its layers, the graphs of what is in flight, its optimizer. A unit is a micro-batch, or a slice of its
// sequences. One thread at a time, but for a forward and a backward of an overlapped pair, which are of different units. Private to
// the runtime.
//
//   Tensor y = stage.forward(i, x, step); // F: goes to the next stage; undefined on the last
//   stage.recompute(i, step);             // where the forward kept its input alone
//   Tensor dx = stage.backward(i, dy);    // B: goes to the stage before; undefined on the first
//   Tensor dx = stage.inputGrad(i, dy);   // or I, and later
//   stage.weightGrad(i);                  // W
//   stage.optimize(rate);                 // after the last of the step
//
// Boundary tensors are handed over without a copy: the output is detached and requires a gradient, so the next stage's
// graph starts at it. What the stage keeps of a unit is the graph's root and its input, not the output.
// A slice reads the keys and values of the slices before; their gradients wait in leaves for the backwards of those, so that a
// slice's graph has them as further roots.
//
// What a unit keeps for its backward is told tensor by tensor where the run asks for that, and where it moves:
//   stage.keptBytes(i);                   // 0 before its F and after its B or W
//   stage.saved(i).copyTo(host); stage.saved(i).letGo();   // OFFLOAD
// There, what goes from stage to stage belongs to one rank at a time: the maker gives it away, or a copy where its own backward needs it,
// and the taker books it as its own.
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/probe/saved_tensors_torch.h"
#include "engine/runtime/gradient_queue_torch.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/optimizer_torch.h"
#include "engine/runtime/own_parts_torch.h"
#include "engine/runtime/preparation.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/split_torch.h"
#include "engine/runtime/weight_stash_torch.h"
#include "engine/session/session_message.h"

#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

class StageModule {
public:
    struct Spec {
        const engine::Plan& plan;
        int firstLayer = 0;
        int layers = 0;
        StageDuties duties;
        std::vector<int> lengths; // positions of each slice; empty: sequences are whole
        int replica = 0;          // of those of the plan's machine
        int firstMicrobatch = 0;  // its micro-batch 0, among those of all replicas and directions
        c10::Device device = c10::DeviceType::CPU; // whose stream is the calling thread's current one, here and in all that follows
        // Where units compute on one of two streams: lets the other wait for the current one, before memory is given back that may be its.
        std::function<void()> letOtherWait = {};
    };
    // Weights and the optimizer's state are booked in `ledger`.
    StageModule(const Spec& spec, MemoryLedger* ledger, const Preparation& preparation);

    // The first stage's inputs, the last stage's targets: one per unit.
    void giveInputs(std::vector<at::Tensor> inputs) { inputs_ = std::move(inputs); }
    void giveTargets(std::vector<at::Tensor> targets) { targets_ = std::move(targets); }

    at::Tensor forward(int unit, at::Tensor input, traces::Step step);
    void recompute(int unit, traces::Step step);
    at::Tensor backward(int unit, at::Tensor outputGradient);
    at::Tensor inputGrad(int unit, at::Tensor outputGradient);
    void weightGrad(int unit);
    // Once all gradients are there: adds up those of the two uses of a table, and takes the loss's scale off. Throws std::domain_error
    // where one is no finite number then.
    void settleGradients();
    // Of the settled gradients; squares of norms, by layer.
    [[nodiscard]] std::vector<double> squaredNorms() const;
    // The next update takes so much of the gradients.
    void shrinkGradients(double factor);
    void optimize(double rate); // the learning rate; settles the gradients where that is still to do

    // Beside the steps: through these weights, as many as the parameters, without a trace of it. No action is being executed.
    at::Tensor evaluate(at::Tensor x, const std::vector<at::Tensor>& weights);

    // Where the run asks for it, or moves them: what autograd saved of a unit, or after its I what its W takes.
    [[nodiscard]] SavedTensors& saved(int unit) { return at(unit).saved; }
    [[nodiscard]] Bytes keptBytes(int unit) const;
    Bytes takeKeptChange(int unit); // since it was taken last
    // The most of all units so far, and what the allocator had booked as activations after a forward that it had not before it (of the
    // middle one; others may let go of theirs meanwhile).
    [[nodiscard]] engine::StageActivations activations() const;

    // Losses of the step whose forwards have run, by unit; the last stage's. And the shape of its whole output. On a GPU they are not
    // there before readLosses(), which waits for the device.
    [[nodiscard]] const std::vector<double>& losses() const { return losses_; }
    void readLosses();
    [[nodiscard]] std::vector<std::int64_t> outputShape() const;

    [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
    // What is updated, and what a checkpoint holds: all of them, but of a table that one stage uses twice one.
    [[nodiscard]] std::vector<at::Tensor> updated() const { return withoutSecondUse(parameters_); }
    [[nodiscard]] const std::vector<std::string>& updatedNames() const { return names_; } // in the model: "layers.3.qkv.weight"
    [[nodiscard]] StageOptimizer* optimizer() { return optimizer_ ? &*optimizer_ : nullptr; } // none where nothing is trained
    // Where replicas divide the update, else none.
    [[nodiscard]] const OwnParts* ownParts() const { return parts_ ? &*parts_ : nullptr; }
    [[nodiscard]] bool dividesWeights() const { return duties_.gathers && parts_.has_value(); }
    // UNSHARD and RESHARD, as far as they are the rank's own (own_parts_torch.h); nothing where replicas do not divide the weights.
    void takeRoomForWeights();
    void giveUpWeights();
    // Once they are summed: lets go of what others update, where the plan divides gradients.
    void keepOwnGradients();
    // What is updated and, in its place, a second use of the table: one for each of the parameters.
    [[nodiscard]] std::vector<at::Tensor> withSecondUse(std::vector<at::Tensor> updated) const;
    [[nodiscard]] std::vector<at::Tensor> withoutSecondUse(std::vector<at::Tensor> all) const;
    // One for each parameter; the own parts from keepOwnGradients() on.
    [[nodiscard]] std::vector<at::Tensor> gradients() const;
    // Of the parameters, the one that the first and the last stage share.
    [[nodiscard]] std::size_t tied() const { return *tied_; }
    // Instead of its own: what all copies of the stage come to together. One for each parameter.
    void setGradients(std::vector<at::Tensor> gradients);
    // Called as the last backward of a step goes through the layers, with the one (of the stage) whose gradients and those of the layers
    // behind it are final by then: with each but the first within the backward, on its thread, with the first by endGradients().
    void onFinalGradients(std::function<void(int layer)> call) { finalGradients_ = std::move(call); }
    void endGradients(int unit); // the unit's gradients are all added up
    // Whether the unit is the last of a step to add to the gradients.
    [[nodiscard]] bool isLast(int unit) const { return !duties_.gradientOrder.empty() && duties_.gradientOrder.back() == unit; }
    // How many values each parameter has, by layer.
    [[nodiscard]] std::vector<std::vector<std::int64_t>> parameterSizes() const;
    // Gradients, or values, of these parameters, without gaps: a gradient that is not there, or has some, is made anew.
    [[nodiscard]] std::vector<at::Tensor> wholeGradients(const std::vector<std::size_t>& parameters);
    [[nodiscard]] std::vector<at::Tensor> values(const std::vector<std::size_t>& parameters) const;

    // Moves the gradients out, where replicas divide the update the own parts; they belong to no rank's memory from then on. optimize()
    // without it drops them.
    void keepGradients(bool keep) { keepGradients_ = keep; }
    std::vector<at::Tensor> takeGradients() { return std::move(kept_); }
    // The last stage's outputs of the step, by unit.
    void keepOutputs(bool keep) { keepOutputs_ = keep; }
    std::vector<at::Tensor> takeOutputs() { return std::exchange(outputs_, std::vector<at::Tensor>(outputs_.size())); }

private:
    // Something that a graph made and whose gradient others bring to a leaf.
    struct Cut {
        torch::autograd::Edge made;
        at::Tensor leaf;
    };
    struct InFlight {
        at::Tensor input;
        torch::autograd::Edge root;
        std::vector<Cut> cuts;
        GradientQueue weightGradients;                          // of I, until W
        SplitBackward split;                                    // the same, where the graph is split
        torch::autograd::Edge firstOutput;                      // and there, on the first stage: of its first layer
        SavedTensors saved;
        Bytes forWeights = 0; // of weightGradients
        std::shared_ptr<WeightVersion> weights; // asynchronous: those of its forward
    };

    void tieLayers(const Spec& spec);
    [[nodiscard]] std::vector<at::Tensor> settled() const; // gradients of what is updated
    // Through the layers; on the last stage the loss. Notes the graph's root, and where it is asked for what autograd saves.
    at::Tensor run(int unit, InFlight& kept, traces::Step step);
    at::Tensor runWatched(int unit, InFlight& kept, traces::Step step);
    void settleSaved(int unit, InFlight& kept);
    [[nodiscard]] at::Tensor givenAway(at::Tensor output, const InFlight& kept) const;
    [[nodiscard]] Bytes bookedActivations() const { return ledger_->held()[static_cast<std::size_t>(MemoryClass::Activations)]; }
    at::Tensor runLayers(int unit, InFlight& kept, traces::Step step);
    // `later`: takes the weights' part, which otherwise is done at once.
    at::Tensor goBack(int unit, InFlight& work, at::Tensor outputGradient, SplitBackward* later = nullptr);
    [[nodiscard]] DataPlace dataPlace(int unit, traces::Step step) const;
    [[nodiscard]] double lossDivisor(int unit) const;
    [[nodiscard]] double shareOfStep(std::size_t unit) const;
    void markGradients();
    void sayFinal(int layer);
    void watchGradients(int unit, const at::Tensor& layerInput, int layer);
    void setOptimizer(const Spec& spec);
    void dropGradients();
    void beforeGivingBack() const
    {
        if (letOtherWait_) letOtherWait_();
    }
    [[nodiscard]] InFlight& at(int unit) { return inFlight_[static_cast<std::size_t>(unit)]; }
    // Of the micro-batch, where sequences come in slices.
    [[nodiscard]] std::vector<KeysAndValues>& cachesOf(int unit) { return caches_[static_cast<std::size_t>(unit / duties_.slices)]; }
    [[nodiscard]] bool isRecomputed(int unit) const
    {
        return !duties_.recomputed.empty() && duties_.recomputed[static_cast<std::size_t>(unit)];
    }

    StageDuties duties_;
    bool splitsGraph_ = false; // a layer's weight gradients do not wait by themselves
    MemoryLedger* ledger_; // of the rank
    bool watches_;         // what autograd saves
    engine::Loss loss_;
    int microbatches_; // of a step, in all directions and replicas: what the loss is a mean over
    std::vector<LayerModule> layers_;
    std::vector<at::Tensor> parameters_;
    std::optional<std::size_t> tied_; // of the parameters: the table, where this is the first or the last stage of those that share one
    // Of the parameters: the head's use of the table where one stage has both. A leaf of its own in the table's memory, so that the
    // gradients of the two uses add up each in their order, as those of two stages do.
    std::optional<std::size_t> secondUse_;
    std::optional<std::size_t> ofHead_; // of the two, the one that is the head's matrix
    std::vector<std::string> names_; // of what is updated
    std::optional<StageOptimizer> optimizer_;
    std::optional<OwnParts> parts_; // where replicas divide the update
    bool dividesGradients_ = false;
    std::function<void(int)> finalGradients_;
    int finalFrom_ = 0; // the layer from which on gradients of this step are said to be final
    std::vector<at::Tensor> inputs_;
    std::vector<at::Tensor> targets_;
    std::vector<int> lengths_;      // of slices; empty: sequences are whole
    DataPlace firstData_;           // of its micro-batch 0, in step 0
    int rows_;                      // of a micro-batch
    std::vector<std::vector<KeysAndValues>> caches_; // by micro-batch, then by block
    std::optional<WeightStash> stash_;               // asynchronous
    std::vector<InFlight> inFlight_; // by unit
    std::vector<double> losses_;     // by unit, so that the sum does not depend on the order
    c10::Device device_;
    std::function<void()> letOtherWait_; // none: there is one stream
    std::vector<at::Tensor> unread_; // losses by unit, of a GPU
    std::vector<std::int64_t> outputShape_; // of one unit
    double lossScale_;
    at::Tensor lossGradient_; // a scalar: the scale
    bool settled_ = false;    // the gradients
    engine::StageActivations most_;
    std::vector<Bytes> booked_; // of each forward so far in this step
    std::vector<Bytes> told_;   // by unit, of keptBytes()
    bool keepGradients_ = false;
    std::vector<at::Tensor> kept_;
    bool keepOutputs_ = false;
    std::vector<at::Tensor> outputs_;
};

// Where they lie: of the CPU, without gaps.
[[nodiscard]] std::vector<std::span<std::byte>> memoryOf(const std::vector<at::Tensor>& tensors);

} // namespace stagecraft::runtime
