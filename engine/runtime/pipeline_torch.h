// SPDX-License-Identifier: Apache-2.0
//
// The stages of a run, their data and their ledgers: everything that both ways of running share. Private to the runtime.
#pragma once

#include "engine/runtime/data_torch.h"
#include "engine/runtime/local_session.h"
#include "engine/runtime/preparation.h"
#include "engine/runtime/stage_torch.h"
#include "engine/session/session_message.h"

#include <exception>
#include <memory>
#include <vector>

namespace stagecraft::runtime {

class Pipeline {
public:
    struct Spec {
        const engine::Plan& plan;
        const engine::Schedule& schedule;
        const engine::Partition& partition;
        const BatchSource& batches;
        const Clock& clock;
        std::optional<InjectedFault> fault;
        int replica = 0; // of those of the plan's machine
    };
    Pipeline(const Spec& spec, const Preparation& preparation);

    // Before a step: the first one, and each whose batch is another one.
    void giveData(traces::Step step);

    // Executes one action on the calling thread: F, B, I, W, RECOMPUTE or the optimizer of a stage. `input` is what arrived from
    // another stage, the result what goes to another one; undefined where there is none. Throws what LibTorch throws.
    at::Tensor execute(const traces::Work& work, traces::Step step, at::Tensor input);

    // Throws where a fault asks for that after the step, or when the thread of a rank is to be started.
    void meetFaultAfter(traces::Step step) const;
    void meetFaultOfThread(traces::Rank rank) const;

    // Gradients of weights of which there are two copies: those of all where the other is the same stage, those of the table where it is
    // the stage at the other end. The sum takes the place of the own ones.
    [[nodiscard]] std::vector<at::Tensor> sharedGradients(const Place& own, const Place& other);
    void addShared(const Place& own, const Place& other, const std::vector<at::Tensor>& ofTheOther);
    void sumBoth(const Place& one, const Place& other); // of a rank that holds both

    // Settles the gradients of the rank's stages and tells the squares of their norms by layer of the model: 0 for layers of others, and
    // for the second copy of a layer.
    [[nodiscard]] at::Tensor squaredNorms(traces::Rank rank);
    // With the squares of all layers: shrinks the gradients of the rank's stages to the norm that the plan allows. Throws
    // std::domain_error where that is no finite number.
    void clipGradients(traces::Rank rank, const at::Tensor& squares);

    [[nodiscard]] MemoryLedger& ledger(traces::Rank rank) { return *ledgers_[traces::index(rank)]; }
    [[nodiscard]] StageModule& stage(const Place& place)
    {
        return *stages_[traces::index(place.stage) + (place.flow == traces::Flow::Up ? stageCount() : 0)];
    }
    [[nodiscard]] const engine::Schedule& schedule() const { return schedule_; }
    // The last stages: one for each direction.
    [[nodiscard]] double stepLoss();
    [[nodiscard]] std::vector<std::int64_t> outputShape();

private:
    [[nodiscard]] const InjectedFault* faultOf(const traces::Work& work, traces::Step step) const;
    [[nodiscard]] std::size_t stageCount() const { return schedule_.stageToRank.size(); }
    [[nodiscard]] MemoryLedger& ledgerOf(const Place& place) { return ledger(schedule_.rankOf(place.flow, place.stage)); }

    const engine::RunSpec& run_;
    const engine::Schedule& schedule_;
    const int replica_;
    std::vector<int> firstLayer_; // of each stage, and behind the last the number of all
    const BatchSource& batches_;
    std::vector<int> lengths_; // of slices; empty: sequences are whole
    std::vector<LedgerHandle> ledgers_; // before the stages: their blocks are booked there
    std::vector<std::unique_ptr<StageModule>> stages_; // of the direction down, then up
    std::optional<InjectedFault> fault_;
};

// Those of a run, replica by replica; each holds all weights and trains them on its own part of the batch.
using Replicas = std::vector<std::unique_ptr<Pipeline>>;
[[nodiscard]] double stepLoss(const Replicas& replicas);
[[nodiscard]] std::vector<std::int64_t> outputShape(const Replicas& replicas);

// What a person reads when an action has thrown; to be called in the handler.
engine::FailureMessage describeFailure(const traces::Work& work, traces::Step step, traces::Rank rank,
                                       const std::exception_ptr& error);
// The same for what happens outside of actions ("building the stages").
engine::FailureMessage describeFailure(std::string_view doing, const std::exception_ptr& error);

} // namespace stagecraft::runtime
