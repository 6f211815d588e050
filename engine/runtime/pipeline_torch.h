// SPDX-License-Identifier: Apache-2.0
//
// The stages of a run, their data and their ledgers: everything that both ways of running share. Private to the runtime.
#pragma once

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
        const Clock& clock;
        std::optional<InjectedFault> fault;
    };
    Pipeline(const Spec& spec, const Preparation& preparation);

    // Executes one action on the calling thread: F, B or the optimizer of a stage. `input` is what arrived from another
    // stage, the result what goes to another one; undefined where there is none. Throws what LibTorch throws.
    at::Tensor execute(const traces::Work& work, traces::Step step, at::Tensor input);

    // Throws where a fault asks for that after the step, or when the thread of a rank is to be started.
    void meetFaultAfter(traces::Step step) const;
    void meetFaultOfThread(traces::Rank rank) const;

    // Does the action take a tensor of another stage; does it give one?
    [[nodiscard]] bool takesInput(const traces::Work& work) const;

    [[nodiscard]] MemoryLedger& ledger(traces::Rank rank) { return *ledgers_[traces::index(rank)]; }
    [[nodiscard]] StageModule& stage(traces::Stage stage) { return *stages_[traces::index(stage)]; }
    [[nodiscard]] int stages() const { return static_cast<int>(stages_.size()); }
    [[nodiscard]] const std::vector<traces::Stage>& stagesOf(traces::Rank rank) const
    {
        return rankStages_[traces::index(rank)];
    }
    [[nodiscard]] double stepLoss() const { return stages_.back()->stepLoss(); }
    [[nodiscard]] std::vector<std::int64_t> outputShape() const { return stages_.back()->outputShape(); }

private:
    [[nodiscard]] const InjectedFault* faultOf(const traces::Work& work, traces::Step step) const;

    std::vector<LedgerHandle> ledgers_; // before the stages: their blocks are booked there
    std::vector<traces::Rank> stageToRank_;
    std::vector<std::vector<traces::Stage>> rankStages_;
    std::vector<std::unique_ptr<StageModule>> stages_;
    std::optional<InjectedFault> fault_;
};

// What a person reads when an action has thrown; to be called in the handler.
engine::FailureMessage describeFailure(const traces::Work& work, traces::Step step, traces::Rank rank,
                                       const std::exception_ptr& error);
// The same for what happens outside of actions ("building the stages").
engine::FailureMessage describeFailure(std::string_view doing, const std::exception_ptr& error);

} // namespace stagecraft::runtime
