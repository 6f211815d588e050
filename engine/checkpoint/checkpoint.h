// SPDX-License-Identifier: Apache-2.0
//
// What a run leaves behind to go on from (docs/checkpoints.md): a folder for each step that it was written after.
//
//   DIR/step-0000010/checkpoint.json         the plan and how many steps are done
//                    model.safetensors       weights, named by their layer in the model: "layers.3.qkv.weight"
//                    optimizer.safetensors   what the optimizer keeps of each: "layers.3.qkv.weight.exp_avg"
//
// Nothing in it depends on stages, ranks, schedule or mode, so any other pipeline of the same model can go on from it. All that is
// random in a run, and where in its data it is, follows from the plan's seed and the step.
//
//   Expected<std::filesystem::path> written = writeCheckpoint("runs/a", {.step = 10, .plan = plan, .weights = ..., .optimizer = ...});
//   Expected<Checkpoint> checkpoint = openCheckpoint("runs/a"); // the latest one; or of "runs/a/step-0000010"
#pragma once

#include "engine/checkpoint/tensor_file.h"
#include "engine/plan/plan.h"

#include <filesystem>
#include <vector>

namespace stagecraft::engine {

struct CheckpointContent {
    int step = 0; // steps that are done
    const Plan& plan;
    std::vector<TensorData> weights;
    std::vector<TensorData> optimizer;
};

// Whole or not at all, on the disk when it returns; the path is that of the step's own folder. One that is there already is replaced.
Expected<std::filesystem::path> writeCheckpoint(const std::filesystem::path& folder, const CheckpointContent& content);

struct Checkpoint {
    std::filesystem::path folder; // the step's own
    int step = 0;                 // steps that are done, so the next one has this number
    Plan plan;
    TensorFile weights;
    TensorFile optimizer;
};

Expected<Checkpoint> openCheckpoint(const std::filesystem::path& folder);

} // namespace stagecraft::engine
