// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/gpu_memory.h"

#include <algorithm>
#include <map>

namespace stagecraft::traces {

void GpuPeaks::take(const Record& record)
{
    if (std::holds_alternative<InfoRecord>(record)) peaks_.clear(); // another run
    if (const auto* point = std::get_if<GpuMemoryRecord>(&record)) take(point->gpu, point->time, point->memory);
}

void GpuPeaks::take(GpuId gpu, TimeNs time, const GpuMemory& memory)
{
    auto peak = std::lower_bound(peaks_.begin(), peaks_.end(), gpu, [](const GpuPeak& p, GpuId id) { return p.gpu < id; });
    if (peak == peaks_.end() || peak->gpu != gpu) peak = peaks_.insert(peak, GpuPeak{.gpu = gpu, .at = time});
    peak->active = std::max(peak->active, memory.active);
    peak->reserved = std::max(peak->reserved, memory.reserved);
    peak->other = std::max(peak->other, memory.other());
    if (memory.used <= peak->used) return;
    peak->used = memory.used;
    peak->at = time;
}

std::vector<GpuPeak> gpuPeaks(const Trace& trace)
{
    GpuPeaks peaks;
    for (std::size_t g = 0; g < trace.gpus().size(); ++g) {
        const GpuSeries& series = trace.gpus()[g];
        for (std::size_t i = 0; i < series.time.size(); ++i) peaks.take(GpuId{g}, series.time[i], series.value[i]);
    }
    return peaks.all();
}

std::vector<std::string> gpuNames(const Trace& trace)
{
    std::vector<std::string> names;
    for (const GpuSeries& series : trace.gpus()) names.push_back("GPU " + std::to_string(series.gpu.number));
    const auto tellApart = [&](auto&& more) {
        std::map<std::string, int> times;
        for (const std::string& name : names) ++times[name];
        for (std::size_t g = 0; g < names.size(); ++g)
            if (times[names[g]] > 1) names[g] += more(trace.gpus()[g].gpu);
    };
    tellApart([](const Gpu& gpu) { return gpu.host.empty() ? std::string() : " of " + gpu.host; });
    tellApart([](const Gpu& gpu) { return gpu.bus.empty() ? std::string() : " (" + gpu.bus + ")"; });
    return names;
}

std::optional<GpuId> gpuOfRank(const Trace& trace, Rank rank)
{
    for (std::size_t g = 0; g < trace.gpus().size(); ++g)
        if (std::binary_search(trace.gpus()[g].gpu.ranks.begin(), trace.gpus()[g].gpu.ranks.end(), rank)) return GpuId{g};
    return std::nullopt;
}

} // namespace stagecraft::traces
