// SPDX-License-Identifier: Apache-2.0
//
// DeepSpeed's instruction lists (deepspeed/runtime/pipe/schedule.py): TrainSchedule, which is 1F1B, and InferenceSchedule. Each stage
// goes through the same number of steps; an instruction names the buffer of its micro-batch, not the micro-batch. The text form is what
// Python prints of the steps, under a line that names the stage:
//
//   stage 0
//   [LoadMicroBatch(buffer_id=0), ForwardPass(buffer_id=0)]
//   [SendActivation(buffer_id=0)]
//
// TrainSchedule, step t on stage s of p (m micro-batches): a forward where t and s are both even or both odd, else a backward, so that
// neighbours always do the opposite; whole divisions:
//   forward of micro-batch   t/2 - s/2  (t even),  (t-1)/2 - s/2  (t odd)
//   backward of micro-batch  t/2 - p + (s+1)/2  (t even),  (t-1)/2 - p + 1 + s/2  (t odd)
// An id outside 0..m-1 is a step without computation. What the step before it computed is sent in the step itself.
//
//   std::cout << deepSpeedText(generate({.name = "1f1b"}).value()).value();
#pragma once

#include "engine/schedule/schedule.h"

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

enum class DeepSpeedKind : std::uint8_t {
    LoadMicroBatch,
    ForwardPass,
    BackwardPass,
    SendActivation,
    RecvActivation,
    SendGrad,
    RecvGrad,
    ReduceTiedGrads, // the last three close a step of training and have no buffer
    ReduceGrads,
    OptimizerStep,
};

struct DeepSpeedInstruction {
    DeepSpeedKind kind = DeepSpeedKind::LoadMicroBatch;
    int buffer = -1; // -1: it has none
    bool operator==(const DeepSpeedInstruction&) const = default;
};

using DeepSpeedSteps = std::vector<std::vector<DeepSpeedInstruction>>;

// The rules above, for one stage. Stages and micro-batches at least 1.
DeepSpeedSteps deepSpeedTrainSteps(int stages, int microbatches, int stage);
DeepSpeedSteps deepSpeedInferenceSteps(int stages, int microbatches, int stage);

// The list of all stages for a schedule of 1F1B or forward-only; an error for others, which DeepSpeed does not have.
Expected<std::string> deepSpeedText(const Schedule& schedule);

// Whether a text is such a list, rather than PyTorch's action text.
bool looksLikeDeepSpeed(std::string_view text);

// The orders of such a list, with SEND and RECV; what loads data or closes the step is not part of a schedule. For parseSchedule(),
// which finds out the shape. Errors name line and stage: an instruction that is unknown, or whose buffer does not hold what it takes.
Expected<Schedule> readDeepSpeed(std::string_view text, std::string name);

} // namespace stagecraft::engine
