// SPDX-License-Identifier: Apache-2.0
//
// Which action of which step and run a launch belongs to, in the 64 bits that CUPTI carries from the thread that launches to
// the kernel's record:
//
//   63      58 57            40 39         34 33         23 22                    7 6      2 1   0
//   [ run: 6 ] [   step: 18   ] [replica: 6] [ stage: 11 ] [ microbatch + 1: 16   ] [kind:5] [flow]
//
// All of a Work fits, so that nothing of it is lost: slices of a sequence are numbered among the micro-batches. Run and step
// count on from 0 behind their last number; stepNear() finds the step again among those that a run can still be in. Of an
// OVERLAP each of its two actions is marked by itself. Pure.
//
//   const std::optional<WorkId> id = packWork({.run = 1, .step = Step{12}, .work = forward(Stage{0}, MicroBatch{3}).work});
//   const MarkedWork back = *unpackWork(*id);
//   stepNear(back.step, newestStep) == Step{12}
#pragma once

#include "traces/base/action.h"

#include <cstdint>
#include <optional>

namespace stagecraft::runtime {

using WorkId = std::uint64_t;
inline constexpr WorkId kNoWork = 0; // no id is 0: the kind None is not packed

struct MarkedWork {
    std::uint32_t run = 0; // modulo kRuns
    traces::Step step{};   // modulo kSteps
    traces::Work work{};
    std::int32_t replica = 0; // of the pipeline, where there are several in one process

    bool operator==(const MarkedWork&) const = default;
};

inline constexpr std::uint32_t kRuns = 1U << 6;
inline constexpr std::int32_t kSteps = 1 << 18;
inline constexpr std::int32_t kMostMarkedReplica = (1 << 6) - 1;
inline constexpr std::int32_t kMostMarkedStage = (1 << 11) - 1;
inline constexpr std::int32_t kMostMarkedMicroBatch = (1 << 16) - 2;

// None where replica, stage or micro-batch are beyond those limits, or the kind is None. Run and step may be any that are not negative.
std::optional<WorkId> packWork(const MarkedWork& marked);

// None for what packWork() does not make: another library's ids.
std::optional<MarkedWork> unpackWork(WorkId id);

// Of the steps that pack to the same bits, the one nearest to `newest`.
traces::Step stepNear(traces::Step packed, traces::Step newest);

} // namespace stagecraft::runtime
