// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/step_keeper_torch.h"

#include "engine/runtime/run_messages.h"

#include <utility>

namespace stagecraft::runtime {

using namespace traces;

StepKeeper::StepKeeper(const engine::Plan& plan, const Replicas& replicas, GradientChecker& checker, RunRecorder& recorder,
                       RunControl& control, const BatchSource& batches, OtherStates* others)
    : plan_(plan), replicas_(replicas), checker_(checker), recorder_(recorder), control_(control), batches_(batches), others_(others)
{
}

bool StepKeeper::giveData(Step step)
{
    if (std::exchange(prepared_, true) && !batches_.changes()) return true;
    try {
        for (const auto& pipeline : replicas_) pipeline->giveData(step);
        return true;
    } catch (...) {
        control_.fail(describeFailure("giving the stages their data", std::current_exception()));
        return false;
    }
}

void StepKeeper::prepare(Step step, const Preparation& preparation)
{
    if (!giveData(step) || !checker_.due(step)) return;
    try {
        checker_.prepare(step, replicas_, preparation);
    } catch (const PreparationStopped&) { // the control knows
    } catch (...) {
        control_.fail(describeFailure("computing the reference gradients", std::current_exception()));
    }
}

void StepKeeper::finish(Step step, Interval span)
{
    replicas_.front()->meetFaultAfter(step);
    ++completed_;
    recorder_.post(StepRecord{{step, span, loss()}});
    recorder_.post(SessionRecord{engine::writeMessage(progressAfter(step.value + 1, plan_.run.steps))});
    if (checker_.due(step)) {
        try {
            checker_.compare(step, replicas_);
        } catch (const PreparationStopped&) { // the control knows
            return;
        } catch (...) {
            control_.fail(describeFailure("comparing the gradients", std::current_exception()));
            return;
        }
        if (checker_.outcome().result == engine::GradientCheck::Failed) return control_.fail(checker_.outcome().failure);
    }
    if (checker_.outcome().diverged && !std::exchange(saidDiverged_, true))
        recorder_.post(NoteRecord{divergenceNote(step, plan_.run.learningRate)});
    if (keeps(step)) keepCheckpoint(step);
}

bool StepKeeper::keeps(Step step) const
{
    const engine::RunSpec& run = plan_.run;
    const int done = step.value + 1;
    return !run.checkpoint.empty() && (done == run.steps || (run.checkpointEvery > 0 && done % run.checkpointEvery == 0));
}

void StepKeeper::keepCheckpoint(Step step)
{
    try {
        const auto written = saveCheckpoint(replicas_, plan_, step, others_);
        // A run that goes on would lose what its owner thinks is safe; the older checkpoints are whole.
        if (!written.ok()) control_.fail(checkpointFailure(step, written.error()));
    } catch (const PreparationStopped&) { // the control knows
    } catch (...) {
        control_.fail(describeFailure("writing a checkpoint", std::current_exception()));
    }
}

} // namespace stagecraft::runtime
