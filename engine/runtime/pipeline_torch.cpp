// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/pipeline_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/run_messages.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <system_error>

namespace stagecraft::runtime {

using namespace traces;

Pipeline::Pipeline(const Spec& spec, const Preparation& preparation)
    : stageToRank_(spec.schedule.stageToRank), rankStages_(static_cast<std::size_t>(spec.schedule.ranks)),
      fault_(spec.fault)
{
    for (int r = 0; r < spec.schedule.ranks; ++r) ledgers_.push_back(MemoryLedger::create(spec.clock));
    int firstLayer = 0;
    for (std::size_t s = 0; s < stageToRank_.size(); ++s) {
        rankStages_[index(stageToRank_[s])].push_back(Stage{s});
        const int layers = spec.partition[s];
        stages_.push_back(std::make_unique<StageModule>(StageModule::Spec{spec.plan, firstLayer, layers},
                                                        &ledger(stageToRank_[s]), preparation));
        firstLayer += layers;
    }
    preparation.goOn();
    {
        const AllocationScope scope({.ledger = &ledger(stageToRank_.front())});
        stages_.front()->giveInputs(makeInputs(spec.plan));
    }
    const AllocationScope scope({.ledger = &ledger(stageToRank_.back())});
    stages_.back()->giveTargets(makeTargets(spec.plan));
}

bool Pipeline::takesInput(const Work& work) const
{
    if (work.kind == ActionKind::Forward) return index(work.stage) > 0;
    return work.kind == ActionKind::Backward && index(work.stage) + 1 < stages_.size();
}

const InjectedFault* Pipeline::faultOf(const Work& work, Step step) const
{
    const bool hit = fault_ && fault_->action == work.kind && fault_->stage == work.stage &&
                     fault_->microbatch == work.microbatch && fault_->step == step;
    return hit ? &*fault_ : nullptr;
}

void Pipeline::meetFaultAfter(Step step) const
{
    if (fault_ && fault_->kind == InjectedFault::Kind::ExceptionAfterStep && fault_->step == step)
        throw std::runtime_error("exception injected");
}

void Pipeline::meetFaultOfThread(Rank rank) const
{
    if (fault_ && fault_->kind == InjectedFault::Kind::NoThread && stageToRank_[index(fault_->stage)] == rank)
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

at::Tensor Pipeline::execute(const Work& work, Step step, at::Tensor input)
{
    using Kind = InjectedFault::Kind;
    const InjectedFault* fault = faultOf(work, step);
    // What a forward allocates and keeps is what its backward needs. A backward's own blocks are short-lived, but for the
    // gradients, which get their class at its end.
    const bool isForward = work.kind == ActionKind::Forward;
    const AllocationScope scope({.ledger = &ledger(stageToRank_[index(work.stage)]),
                                 .memory = isForward ? MemoryClass::Activations : MemoryClass::Other,
                                 .failIn = fault && fault->kind == Kind::AllocationFailure ? fault->allocation : 0});
    if (fault && fault->kind == Kind::Exception) throw std::runtime_error("exception injected");

    StageModule& stage = *stages_[index(work.stage)];
    switch (work.kind) {
    case ActionKind::Forward: return stage.forward(work.microbatch.value, std::move(input));
    case ActionKind::Backward: {
        at::Tensor result = stage.backward(work.microbatch.value, std::move(input));
        if (fault && fault->kind == Kind::WrongGradient && !stage.parameters().empty()) {
            const at::NoGradGuard noGrad;
            stage.parameters().front().mutable_grad().add_(1);
        }
        return result;
    }
    case ActionKind::Optimizer: stage.optimize(); return {};
    default: throw std::logic_error("the engine has no way to execute " + std::string(kindName(work.kind)));
    }
}

namespace {

std::string reasonOf(const std::exception_ptr& error)
{
    try {
        std::rethrow_exception(error);
    } catch (const c10::OutOfMemoryError& e) {
        return std::string(e.what_without_backtrace()) +
               ". Take smaller micro-batches, more stages, or a schedule that keeps fewer of them.";
    } catch (const c10::Error& e) {
        return e.what_without_backtrace();
    } catch (const std::bad_alloc&) {
        return "not enough memory. Take smaller micro-batches, more stages, or a schedule that keeps fewer of them.";
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception of unknown type";
    }
}

} // namespace

engine::FailureMessage describeFailure(const Work& work, Step step, Rank rank, const std::exception_ptr& error)
{
    return actionFailure(work, step, rank, reasonOf(error));
}

engine::FailureMessage describeFailure(std::string_view doing, const std::exception_ptr& error)
{
    engine::FailureMessage failure;
    failure.text = std::string(doing) + " failed: " + reasonOf(error);
    return failure;
}

} // namespace stagecraft::runtime
