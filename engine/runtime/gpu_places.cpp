// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gpu_places.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::runtime {

using namespace engine;
using traces::counted;

namespace {

Error noGpu(const DeviceSource& devices) { return Error{fmt::format("run.device: no GPU can be used: {}. Take the device cpu", devices.whyNone())}; }

Expected<void> checkNumber(int gpu, const DeviceSource& devices)
{
    const int count = static_cast<int>(devices.gpus().size());
    if (gpu < count) return {};
    return Error{fmt::format("run.gpus: there is no GPU {}: this machine has {}, numbered from 0", gpu, counted(count, "GPU"))};
}

Expected<std::vector<int>> placeOfProcess(const Plan& plan, const DeviceSource& devices, const ProcessGroup& group)
{
    const auto own = static_cast<std::size_t>(group.rank());
    std::vector<int> places(static_cast<std::size_t>(group.size()), kOnCpu);
    if (!plan.run.gpus.empty() && plan.run.gpus[own] == kOnCpu) return places;
    const int count = static_cast<int>(devices.gpus().size());
    if (count == 0) return noGpu(devices);
    places[own] = plan.run.gpus.empty() ? group.placeOnHost() % count : plan.run.gpus[own];
    if (const auto there = checkNumber(places[own], devices); !there.ok()) return there.error();
    return places;
}

} // namespace

Expected<std::vector<int>> gpuPlaces(const Plan& plan, const DeviceSource& devices, const ProcessGroup* group)
{
    if (plan.run.mode == RunMode::Processes && group != nullptr) return placeOfProcess(plan, devices, *group);
    const int ranks = plan.machine.replicas * plan.pipeline.ranks;
    const int count = static_cast<int>(devices.gpus().size());
    if (count == 0) return noGpu(devices);
    if (!plan.run.gpus.empty()) {
        for (const int gpu : plan.run.gpus)
            if (const auto there = checkNumber(gpu, devices); !there.ok()) return there.error();
        return plan.run.gpus;
    }
    std::vector<int> places;
    for (int rank = 0; rank < ranks; ++rank) {
        const int spread = count >= ranks ? rank : static_cast<int>(static_cast<long long>(rank) * count / ranks);
        places.push_back(plan.run.mode == RunMode::Emulated ? 0 : spread);
    }
    return places;
}

RankPlace placeOfRank(const std::vector<int>& gpus, const ProcessGroup& group, const DeviceSource& devices)
{
    const int gpu = gpus[static_cast<std::size_t>(group.rank())];
    return {.host = group.member(group.rank()).host, .gpu = gpu == kOnCpu ? "" : devices.gpus()[static_cast<std::size_t>(gpu)].bus};
}

} // namespace stagecraft::runtime
