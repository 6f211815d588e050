// SPDX-License-Identifier: Apache-2.0
//
// What belongs to a whole step and to no rank: its span and loss in the trace, the progress that is told, the check before
// and after it, a checkpoint of what it came to. One thread at a time; the ranks rest meanwhile. Private to the runtime.
#pragma once

#include "engine/runtime/checkpoint_torch.h"
#include "engine/runtime/reference_torch.h"
#include "engine/runtime/run_control.h"
#include "engine/runtime/run_recorder.h"

namespace stagecraft::runtime {

class StepKeeper {
public:
    StepKeeper(const engine::Plan& plan, const Replicas& replicas, GradientChecker& checker, RunRecorder& recorder,
               RunControl& control, const BatchSource& batches, OtherStates* others = nullptr);

    // Before the step, with time to compute: its data, where they are others than before, and the reference of the check. Failures go to the run's control.
    void prepare(traces::Step step, const Preparation& preparation);
    // The data alone, for a process whose steps another one checks. False: it failed, as above.
    bool giveData(traces::Step step);
    // After it.
    void finish(traces::Step step, traces::Interval span);

    [[nodiscard]] bool checks(traces::Step step) const { return checker_.due(step); }
    [[nodiscard]] bool keeps(traces::Step step) const; // a checkpoint of what it came to
    [[nodiscard]] double loss() const { return stepLoss(replicas_); } // of the step that is over
    [[nodiscard]] int completed() const { return completed_; }

private:
    void keepCheckpoint(traces::Step step);

    const engine::Plan& plan_;
    const Replicas& replicas_;
    GradientChecker& checker_;
    RunRecorder& recorder_;
    RunControl& control_;
    const BatchSource& batches_;
    OtherStates* others_; // of other processes; not owned, none where all stages are here
    bool prepared_ = false; // any step
    int completed_ = 0;
    bool saidDiverged_ = false;
};

} // namespace stagecraft::runtime
