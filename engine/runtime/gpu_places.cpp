// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gpu_places.h"

#include "engine/schedule/offload.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::runtime {

using namespace engine;
using traces::counted;

namespace {

// What the engine does on the CPU alone so far.
Expected<void> checkAbilities(const Plan& plan, const Schedule& schedule)
{
    const auto refuse = [](std::string_view what, std::string_view instead) {
        return Error{fmt::format("run.device: {}, and the engine does that on the CPU alone; take the device cpu, or {}", what, instead)};
    };
    if (plan.run.mode == RunMode::Processes) return refuse("the ranks are processes", "mode threads or emulated");
    if (plan.machine.replicas > 1) return refuse(fmt::format("the plan has {} replicas", plan.machine.replicas), "1 replica");
    if (hasOffload(schedule)) return refuse(fmt::format("schedule {} offloads activations", schedule.name), "a schedule without OFFLOAD");
    return {};
}

} // namespace

Expected<std::vector<int>> gpuPlaces(const Plan& plan, const Schedule& schedule, const DeviceSource& devices)
{
    const int ranks = plan.pipeline.ranks;
    const int count = static_cast<int>(devices.gpus().size());
    if (count == 0) return Error{fmt::format("run.device: no GPU can be used: {}. Take the device cpu", devices.whyNone())};
    if (const auto able = checkAbilities(plan, schedule); !able.ok()) return able.error();
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
