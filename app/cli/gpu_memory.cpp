// SPDX-License-Identifier: Apache-2.0
#include "app/cli/gpu_memory.h"

#include "app/cli/table.h"
#include "traces/base/text.h"
#include "traces/base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::cli {

using traces::Gpu;
using traces::GpuPeak;

namespace {

using traces::MemoryOperations;

Json sumsJson(const MemoryOperations& sums)
{
    return {{"allocations", sums.allocations},
            {"allocated_bytes", sums.allocated},
            {"releases", sums.releases},
            {"released_bytes", sums.released},
            {"calls_ns", sums.inCalls}};
}

std::string kindOf(traces::ActionKind kind) { return kind == traces::ActionKind::None ? "no action" : std::string(traces::kindName(kind)); }

const Gpu& gpuOf(const traces::Trace& trace, const GpuPeak& peak) { return trace.gpus()[index(peak.gpu)].gpu; }

std::vector<std::int32_t> ranksOn(const Gpu& gpu)
{
    std::vector<std::int32_t> ranks;
    for (const traces::Rank rank : gpu.ranks) ranks.push_back(rank.value);
    return ranks;
}

} // namespace

Json gpuMemoryJson(const traces::Trace& trace, const std::vector<GpuPeak>& peaks)
{
    Json json = Json::array();
    for (const GpuPeak& peak : peaks) {
        const Gpu& gpu = gpuOf(trace, peak);
        json.push_back({{"gpu", gpu.number},
                        {"host", gpu.host},
                        {"name", gpu.name},
                        {"ranks", ranksOn(gpu)},
                        {"total_bytes", gpu.total > 0 ? Json(gpu.total) : Json()},
                        {"peak_active_bytes", peak.active},
                        {"peak_reserved_bytes", peak.reserved},
                        {"peak_other_bytes", peak.other},
                        {"peak_used_bytes", peak.used},
                        {"peak_used_ns", peak.at}});
    }
    return json;
}

std::string gpuMemoryText(const traces::Trace& trace, const std::vector<GpuPeak>& peaks)
{
    const std::vector<std::string> names = gpuNames(trace);
    Table table({{"GPU", Align::Left},
                 {"ranks", Align::Left},
                 {"active", Align::Right},
                 {"reserved", Align::Right},
                 {"other", Align::Right},
                 {"used", Align::Right},
                 {"of", Align::Right},
                 {"", Align::Right}});
    for (const GpuPeak& peak : peaks) {
        const Gpu& gpu = gpuOf(trace, peak);
        const bool known = gpu.total > 0;
        table.add({traces::harmless(names[index(peak.gpu)]), fmt::format("{}", fmt::join(ranksOn(gpu), ",")), traces::formatSize(peak.active),
                   traces::formatSize(peak.reserved), traces::formatSize(peak.other), traces::formatSize(peak.used), known ? traces::formatSize(gpu.total) : "",
                   known ? traces::formatPercent(static_cast<double>(peak.used) / static_cast<double>(gpu.total)) : ""});
    }
    return "\nmemory of the GPUs, the most of each: active in LibTorch's allocator, reserved by it, of others, and used altogether\n" + table.text();
}

Json memoryOperationsJson(const std::vector<traces::RankMemoryOperations>& ranks)
{
    Json json = Json::array();
    for (const traces::RankMemoryOperations& rank : ranks) {
        Json one{{"rank", rank.rank.value}};
        one.update(sumsJson(rank.all));
        one["by_kind"] = Json::array();
        for (const auto& [kind, sums] : rank.byKind) {
            Json part{{"kind", kindOf(kind)}};
            part.update(sumsJson(sums));
            one["by_kind"].push_back(std::move(part));
        }
        json.push_back(std::move(one));
    }
    return json;
}

std::string memoryOperationsText(const std::vector<traces::RankMemoryOperations>& ranks)
{
    Table table({{"rank", Align::Right},
                 {"for", Align::Left},
                 {"allocations", Align::Right},
                 {"of", Align::Right},
                 {"releases", Align::Right},
                 {"of", Align::Right},
                 {"in calls", Align::Right}});
    for (const traces::RankMemoryOperations& rank : ranks)
        for (const auto& [kind, sums] : rank.byKind)
            table.add({std::to_string(rank.rank.value), kindOf(kind), std::to_string(sums.allocations), traces::formatSize(sums.allocated),
                       std::to_string(sums.releases), traces::formatSize(sums.released), traces::formatDuration(sums.inCalls)});
    return "\nmemory that the driver was asked for, by kind of action\n" + table.text();
}

} // namespace stagecraft::cli
