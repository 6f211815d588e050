// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/step_keeper_torch.h"

#include "engine/runtime/run_messages.h"

#include <utility>

namespace stagecraft::runtime {

using namespace traces;

StepKeeper::StepKeeper(const engine::Plan& plan, Pipeline& pipeline, GradientChecker& checker, RunRecorder& recorder,
                       RunControl& control)
    : plan_(plan), pipeline_(pipeline), checker_(checker), recorder_(recorder), control_(control)
{
}

void StepKeeper::prepare(Step step, const Preparation& preparation)
{
    if (!checker_.due(step)) return;
    try {
        checker_.prepare(step, pipeline_, preparation);
    } catch (const PreparationStopped&) { // the control knows
    } catch (...) {
        control_.fail(describeFailure("computing the reference gradients", std::current_exception()));
    }
}

void StepKeeper::finish(Step step, Interval span)
{
    pipeline_.meetFaultAfter(step);
    ++completed_;
    recorder_.post(StepRecord{{step, span, pipeline_.stepLoss()}});
    recorder_.post(SessionRecord{engine::writeMessage(progressAfter(completed_, plan_.run.steps))});
    if (checker_.due(step)) {
        try {
            checker_.compare(step, pipeline_);
        } catch (...) {
            control_.fail(describeFailure("comparing the gradients", std::current_exception()));
            return;
        }
        if (checker_.outcome().result == engine::GradientCheck::Failed) control_.fail(checker_.outcome().failure);
    }
    if (checker_.outcome().diverged && !std::exchange(saidDiverged_, true))
        recorder_.post(NoteRecord{divergenceNote(step, plan_.run.learningRate)});
}

} // namespace stagecraft::runtime
