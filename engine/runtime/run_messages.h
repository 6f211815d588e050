// SPDX-License-Identifier: Apache-2.0
//
// What a run says about itself, in words.
#pragma once

#include "engine/runtime/device_watch.h"
#include "engine/runtime/preparation.h"
#include "engine/runtime/runnable.h"
#include "engine/session/session_message.h"
#include "traces/store/trace.h"

#include <string>
#include <string_view>

namespace stagecraft::runtime {

// The opening of the run's trace.
traces::TraceInfo openingInfo(const RunnablePlan& runnable);

engine::ProgressMessage progressAfter(int completedSteps, int allSteps);
engine::ProgressMessage preparationProgress(const PreparationPiece& piece);

// Gradients of a step are no longer finite, while its loss still was.
std::string divergenceNote(traces::Step step, double learningRate);
// Why a loss that is no finite number ends the run, and what to do. `updated`: the weights are no longer those that it began with.
std::string divergedLoss(double loss, bool updated, double learningRate);
// The same for gradients: of a scaled loss, or all of the model together.
std::string overflownGradient(std::string_view parameter, double lossScale);
std::string divergedNorm(int layer, double learningRate);
// The same for a weight that is to be kept.
std::string divergedWeight(std::string_view name, double learningRate);

// Emulated actions took `excess` (0.2: a fifth) longer than they computed.
std::string busyNote(double excess);

// A thread could not be started for `whom` ("rank 3").
engine::FailureMessage threadFailure(std::string_view whom, std::string_view reason);

// The ranks wait for each other; `circle` says how.
engine::FailureMessage deadlockFailure(const std::string& circle, const engine::RunSpec& run);

engine::FailureMessage actionFailure(const traces::Work& work, traces::Step step, traces::Rank rank,
                                     std::string_view reason);

// A rank has waited for its GPU, or one on the CPU for that of another, for so long that it is given up.
engine::FailureMessage silentGpuFailure(const DeviceWatch::Awaited& awaited, int gpu, TimeNs patience);

// Said with the failure of a run that has left its process without its GPUs: why, in the words of the device.
std::string spentNote(std::string_view why);

engine::FailureMessage checkpointFailure(traces::Step step, const engine::Error& error);

struct GradientDifference {
    int stage = 0;
    std::size_t parameter = 0; // of the stage
    traces::Step step{};
    double difference = 0; // largest
    double scale = 0;      // largest expected gradient
};
engine::FailureMessage gradientFailure(const GradientDifference& found);

engine::FailureMessage weightFailure(const GradientDifference& found); // after the step, by the schedule's update rule

struct OutputDifference {
    int microbatch = 0;
    traces::Step step{};
    double difference = 0; // largest
    double scale = 0;      // largest expected value
};
engine::FailureMessage outputFailure(const OutputDifference& found);

} // namespace stagecraft::runtime
