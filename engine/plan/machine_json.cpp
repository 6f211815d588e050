// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/machine_json.h"

#include "engine/plan/plan_words.h"
#include "engine/schedule/schedule.h"
#include "traces/base/text.h"
#include "traces/store/bounds.h"

namespace stagecraft::engine {

using traces::Error;
using traces::Expected;

namespace {

constexpr TimeNs kMostTime = 1'000'000'000'000'000; // ns: eleven days
constexpr double kMostScale = 1e6;
constexpr int kMostReplicas = 1 << 20;

void readLink(JsonObject& object, std::string_view name, Link& link)
{
    object.parsed(fmt::format("{}_latency", name), link.latency, &traces::parseDuration);
    object.parsed(fmt::format("{}_bandwidth", name), link.bytesPerSecond, &traces::parseBandwidth);
}

void writeLink(nlohmann::ordered_json& json, const std::string& name, const Link& link)
{
    if (link.latency != 0) json[name + "_latency"] = traces::exactDuration(link.latency);
    if (link.bytesPerSecond > 0) json[name + "_bandwidth"] = fmt::format("{}B/s", link.bytesPerSecond);
}

Expected<void> checkTime(std::string_view key, TimeNs time)
{
    if (time >= 0 && time <= kMostTime) return {};
    return Error{fmt::format("machine.{}: {} is not allowed; 0 to {}", key, traces::formatDuration(time), traces::formatDuration(kMostTime))};
}

Expected<void> checkLength(std::string_view key, std::size_t length, int ranks)
{
    if (length == 0 || length == static_cast<std::size_t>(ranks)) return {};
    return Error{fmt::format("machine.{}: it has {}, the plan has {}; give one per rank", key, traces::counted(length, "entry"),
                             traces::counted(ranks, "rank"))};
}

Expected<void> checkBytes(std::string_view key, Bytes bytes, Bytes least)
{
    if (bytes >= least && bytes <= traces::kMostBytes) return {};
    return Error{fmt::format("machine.{}: {} is not allowed; {} to {} bytes", key, traces::counted(bytes, "byte"), least, traces::kMostBytes)};
}

} // namespace

Expected<void> readMachine(const Json& json, MachineModel& machine)
{
    JsonObject object(json, "machine");
    object.integer("ranks_per_node", machine.ranksPerNode, 0, kMaxStages);
    readLink(object, "node", machine.between);
    object.choice("transfers", machine.transfers, std::span<const Word<TransferPlace>>(kTransferPlaceWords));
    object.boolean("shared_links", machine.sharedLinks);
    object.choice("send", machine.send, std::span<const Word<SendMode>>(kSendModeWords));
    object.array("rank_scale", [&](const Json& factor, const std::string& path) -> Expected<void> {
        if (!factor.is_number() || !(factor.get<double>() >= 0) || !(factor.get<double>() <= kMostScale))
            return Error{fmt::format("{}: {} is not allowed; a number from 0 to {:g}", path, JsonObject::shown(factor), kMostScale)};
        machine.rankScale.push_back(factor.get<double>());
        return {};
    });
    object.array("late_start", [&](const Json& time, const std::string& path) -> Expected<void> {
        if (!time.is_string()) return Error{fmt::format("{}: must be a text with a number and its unit, not {}", path, JsonObject::shown(time))};
        const Expected<TimeNs> parsed = traces::parseDuration(time.get_ref<const std::string&>());
        if (!parsed.ok()) return parsed.error().in(path);
        machine.lateStart.push_back(parsed.value());
        return {};
    });
    object.parsed("memory", machine.memory, &traces::parseSize);
    readLink(object, "host", machine.host);
    object.integer("replicas", machine.replicas, 1, kMostReplicas);
    readLink(object, "replica", machine.replica);
    object.parsed("bucket_bytes", machine.bucketBytes, &traces::parseSize);
    object.boolean("barrier", machine.barrier);
    return object.finish();
}

nlohmann::ordered_json machineJson(const MachineModel& machine)
{
    const MachineModel defaults;
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    if (machine.ranksPerNode != 0) json["ranks_per_node"] = machine.ranksPerNode;
    writeLink(json, "node", machine.between);
    if (machine.transfers != defaults.transfers) json["transfers"] = wordOf(kTransferPlaceWords, machine.transfers);
    if (machine.sharedLinks) json["shared_links"] = true;
    if (machine.send != defaults.send) json["send"] = wordOf(kSendModeWords, machine.send);
    if (!machine.rankScale.empty()) json["rank_scale"] = machine.rankScale;
    for (const TimeNs late : machine.lateStart) json["late_start"].push_back(traces::exactDuration(late));
    if (machine.memory != 0) json["memory"] = traces::exactSize(machine.memory);
    writeLink(json, "host", machine.host);
    if (machine.replicas != 1) json["replicas"] = machine.replicas;
    writeLink(json, "replica", machine.replica);
    if (machine.bucketBytes != defaults.bucketBytes) json["bucket_bytes"] = traces::exactSize(machine.bucketBytes);
    if (machine.barrier) json["barrier"] = true;
    return json;
}

Expected<void> checkMachine(const MachineModel& machine, int ranks)
{
    for (const auto& [key, time] : {std::pair{"node_latency", machine.between.latency},
                                    std::pair{"host_latency", machine.host.latency},
                                    std::pair{"replica_latency", machine.replica.latency}})
        if (Expected<void> ok = checkTime(key, time); !ok.ok()) return ok;
    if (Expected<void> ok = checkLength("rank_scale", machine.rankScale.size(), ranks); !ok.ok()) return ok;
    if (Expected<void> ok = checkLength("late_start", machine.lateStart.size(), ranks); !ok.ok()) return ok;
    for (const double scale : machine.rankScale)
        if (!(scale >= 0 && scale <= kMostScale))
            return Error{fmt::format("machine.rank_scale: {} is not allowed; a number from 0 to {:g}", scale, kMostScale)};
    for (const TimeNs late : machine.lateStart)
        if (Expected<void> ok = checkTime("late_start", late); !ok.ok()) return ok;
    if (Expected<void> ok = checkBytes("memory", machine.memory, 0); !ok.ok()) return ok;
    if (Expected<void> ok = checkBytes("bucket_bytes", machine.bucketBytes, 1); !ok.ok()) return ok;
    if (machine.ranksPerNode < 0 || machine.ranksPerNode > kMaxStages)
        return Error{fmt::format("machine.ranks_per_node: {} is not allowed; 0 to {}", machine.ranksPerNode, kMaxStages)};
    if (machine.replicas < 1 || machine.replicas > kMostReplicas)
        return Error{fmt::format("machine.replicas: {} is not allowed; 1 to {}", machine.replicas, kMostReplicas)};
    return {};
}

} // namespace stagecraft::engine
