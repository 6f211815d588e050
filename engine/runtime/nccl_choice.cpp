// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_choice.h"

#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/replica_part.h"
#include "engine/transport/rank_places.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace stagecraft::runtime {

using namespace engine;

namespace {

// Of all replicas.
std::vector<RankPlace> placesOf(const RunnablePlan& runnable, const DeviceSource& devices)
{
    std::vector<RankPlace> places;
    for (const int gpu : runnable.gpus)
        places.push_back({.host = "this host", .gpu = gpu == kOnCpu ? "" : devices.gpus()[static_cast<std::size_t>(gpu)].bus});
    return places;
}

Error cannotSum(const std::string& why, const std::string& otherwise)
{
    return Error{fmt::format("run.transport: NCCL cannot sum the replicas' gradients: {}. Take transport auto, which sums by copies, or {}", why, otherwise)};
}

} // namespace

Expected<const NcclSource*> ncclOf(const LocalSessionOptions& options)
{
    if (options.nccl != nullptr) return options.nccl;
    if (options.devices != nullptr) return Error{"the GPUs are none of NVIDIA's"};
    return ncclOfProcess();
}

bool sumsByTransport(const RunnablePlan& runnable)
{
    const RunSpec& run = runnable.plan.run;
    return run.mode == RunMode::Threads && run.device == DeviceKind::Cuda && runnable.hasCollectives();
}

Expected<void> chooseSums(RunnablePlan& runnable, const LocalSessionOptions& options)
{
    if (runnable.plan.run.transport != Transport::Nccl || !sumsByTransport(runnable)) return {};
    if (runnable.plan.pipeline.sharding != Sharding::None)
        return cannotSum("what replicas divide goes by copies alone", "sharding none");
    const auto apart = checkOneRankPerGpu(placesOf(runnable, devicesOr(options.devices)));
    if (!apart.ok()) return cannotSum(apart.error().message, "give each rank of each replica a GPU of its own");
    const Expected<const NcclSource*> source = ncclOf(options);
    if (!source.ok()) return cannotSum(source.error().message, "make NCCL be there");
    runnable.ncclSums = source.value();
    runnable.information.push_back(fmt::format("the gradients of the replicas are summed by NCCL {}", source.value()->version));
    return {};
}

} // namespace stagecraft::runtime
