// SPDX-License-Identifier: Apache-2.0
//
// How a plan is run: the part of it that the live engine goes by and a simulation does not.
//
//   RunSpec run{.mode = RunMode::Emulated, .steps = 20, .optimizer = OptimizerKind::Adam};
//   run.rateOf(3) // the learning rate of the fourth step
#pragma once

#include "engine/model/precision.h"
#include "traces/base/trace_level.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

enum class RunMode : std::uint8_t {
    Threads,   // a thread per rank, in one process
    Emulated,  // every action alone, in the order of virtual time
    Processes, // a process per rank, which mpirun or torchrun has started
};
enum class DeviceKind : std::uint8_t {
    Cpu,
    Cuda, // NVIDIA GPUs
};
inline constexpr int kOnCpu = -1; // in the place of a GPU's number
enum class CheckMode : std::uint8_t { Off, First, All };
enum class OptimizerKind : std::uint8_t {
    Sgd,      // w -= rate * gradient
    Momentum, // SGD with a velocity (Polyak's, as PyTorch has it: v = momentum v + gradient, w -= rate * v)
    Adam,     // Kingma and Ba, arXiv 1412.6980; betas 0.9 and 0.999, eps 1e-8
    AdamW,    // Loshchilov and Hutter, arXiv 1711.05101: Adam with a decay of the weights beside it
};
// How the learning rate goes over the steps of a run, after the warm-up: as it is, or down to 0 behind the last step.
enum class RateCourse : std::uint8_t { Constant, Linear, Cosine };
// How a tensor goes from one rank's thread to another's (engine/transport). All carry the same; they differ in who waits, and how.
enum class HandoffKind : std::uint8_t {
    Boxes,     // a place for every tensor of a step, one atomic word each: nobody waits to send
    Mutex,     // a queue per boundary and direction under a mutex, with two condition variables
    Ring,      // a lock-free ring per boundary and direction: head and tail are atomic counters
    Semaphore, // the same ring, whose free and filled places two semaphores count (credits)
};
// How a tensor goes from the GPU of one process to that of another, and what replicas sum in one process (mode threads).
enum class Transport : std::uint8_t {
    Auto, // by NCCL where that can be, else by way of the host; sums by copies, in their order
    Nccl, // from GPU to GPU: each rank needs one of its own
    Host, // through the memory of the hosts, as between processes that compute on the CPU
};
// What tells the activations that a micro-batch keeps.
enum class ActivationAccount : std::uint8_t {
    Allocator,    // the blocks that its forward left behind
    SavedTensors, // and what autograd saved for its backward, tensor by tensor
};
std::string_view runModeText(RunMode mode);
std::string_view deviceText(DeviceKind device);
std::string_view checkModeText(CheckMode check);

struct RunSpec {
    RunMode mode = RunMode::Threads;
    DeviceKind device = DeviceKind::Cpu;
    Precision precision = Precision::Fp32;
    int steps = 5;
    CheckMode check = CheckMode::First;
    OptimizerKind optimizer = OptimizerKind::AdamW;
    double learningRate = 1e-3;
    std::uint64_t seed = 1; // weights and data
    double momentum = 0.9;              // of OptimizerKind::Momentum
    std::optional<double> weightDecay = {}; // nothing: 0.01 for AdamW, 0 for the others (PyTorch's defaults)
    RateCourse rateCourse = RateCourse::Constant;
    int warmupSteps = 0;                // that the rate takes to rise, in even parts (arXiv 1706.02677 sec. 2.2)

    double clipNorm = 0;   // largest Euclidean norm of all gradients of the model together; beyond it they shrink to it; 0: none
    double lossScale = 1;  // of the loss before the backward; gradients are divided by it before they are used: see isLossScale()
    HandoffKind handoff = HandoffKind::Boxes;
    int handoffDepth = 0;  // tensors that may wait at a boundary before the sender has to; 0: as many as the schedule sends
    Transport transport = Transport::Auto; // device cuda
    std::vector<int> gpus = {}; // device cuda: of each rank the number of its GPU, or kOnCpu; empty: spread evenly over those that there are
    traces::TraceLevel tracing = traces::TraceLevel::Events; // device cuda: how much of what the GPUs do is recorded
    bool tf32 = false;          // GPUs may multiply with 10 bits of the 23 of a float32's mantissa (TensorFloat-32): faster, and coarser
    std::vector<double> slowdown = {}; // of each stage: its actions take this many times as long, for studies; empty: 1 each
    ActivationAccount activations = ActivationAccount::Allocator;
    std::string checkpoint = {};       // folder that checkpoints go to; empty: none is written
    int checkpointEvery = 0;      // steps; 0: after the last one alone
    std::string resume = {};           // checkpoint to go on from; empty: fresh weights

    // Of step 0, 1, ...: rate * (step + 1) / (warm-up) while it rises; then with x from 0 to 1 over the steps that are left, linear
    // rate * (1 - x), cosine rate * (1 + cos(pi x)) / 2 (arXiv 1608.03983).
    [[nodiscard]] double rateOf(int step) const;
    // Values that the optimizer keeps for each weight, float32 all: moments, and of weights in bf16 their main copy.
    [[nodiscard]] int moments() const;
    [[nodiscard]] int optimizerValues() const { return moments() + (precision == Precision::Bf16 ? 1 : 0); }

    bool operator==(const RunSpec&) const = default;
};

// A power of two, not so large or small that nothing is left of a gradient: another factor would round every gradient twice.
bool isLossScale(double scale);

} // namespace stagecraft::engine
