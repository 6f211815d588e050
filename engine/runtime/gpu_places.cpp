// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gpu_places.h"

#include "engine/plan/gpu_runs.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::runtime {

using namespace engine;
using traces::counted;

Expected<std::vector<int>> gpuPlaces(const Plan& plan, const Schedule& schedule, const DeviceSource& devices)
{
    const int ranks = plan.pipeline.ranks;
    const int count = static_cast<int>(devices.gpus().size());
    if (count == 0) return Error{fmt::format("run.device: no GPU can be used: {}. Take the device cpu", devices.whyNone())};
    if (const auto able = checkGpuRun(plan, schedule); !able.ok()) return able.error();
    if (!plan.run.gpus.empty()) {
        for (const int gpu : plan.run.gpus)
            if (gpu >= count)
                return Error{fmt::format("run.gpus: there is no GPU {}: this machine has {}, numbered from 0", gpu, counted(count, "GPU"))};
        return plan.run.gpus;
    }
    std::vector<int> places;
    for (int rank = 0; rank < ranks; ++rank) {
        const int spread = count >= ranks ? rank : static_cast<int>(static_cast<long long>(rank) * count / ranks);
        places.push_back(plan.run.mode == RunMode::Emulated ? 0 : spread);
    }
    return places;
}

} // namespace stagecraft::runtime
