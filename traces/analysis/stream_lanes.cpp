// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/stream_lanes.h"

#include "traces/base/text.h"

#include <algorithm>
#include <charconv>

namespace stagecraft::traces {

namespace {

constexpr std::string_view kGaps = ", gaps";
constexpr std::string_view kGpu = "GPU ";
constexpr std::string_view kOperators = " operators";
constexpr std::string_view kNccl = ", NCCL";
constexpr std::string_view kBeside = ", beside";
constexpr std::string_view kExchanges = " exchanges";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

} // namespace

std::optional<StreamGapCause> streamGapCauseOf(std::string_view text)
{
    const auto cause = std::find_if(kStreamGapCauses.begin(), kStreamGapCauses.end(), [&](StreamGapCause each) { return streamGapText(each) == text; });
    return cause != kStreamGapCauses.end() ? std::optional(*cause) : std::nullopt;
}

bool holdsStreamWork(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && contains(lowered(lane.name), "stream") && !holdsGaps(lane); }

bool holdsKernels(const LaneInfo& lane) { return holdsStreamWork(lane) && !contains(lowered(lane.name), "of no action") && !holdsNccl(lane); }

bool holdsNccl(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && contains(lane.name, kNccl); }

std::string ncclLaneName(std::string_view stream) { return std::string(stream).append(kNccl); }

bool holdsExchanges(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && lane.name.ends_with(kExchanges); }

std::string exchangesLaneName(std::string_view rank) { return std::string(rank).append(kExchanges); }

bool holdsGaps(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && contains(lane.name, kGaps); }

std::string gapsLaneName(std::string_view stream) { return std::string(stream).append(kGaps); }

bool holdsOperators(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && contains(lane.name, kOperators); }

std::string operatorsLaneName(std::string_view rank, int beside)
{
    std::string name = std::string(rank).append(kOperators);
    if (beside > 0) name += " (" + std::to_string(beside + 1) + ")";
    return name;
}

bool isBeside(const LaneInfo& lane) { return contains(lane.name, kBeside) || (holdsOperators(lane) && lane.depth > 0); }

std::string besideLaneName(std::string_view stream) { return std::string(stream).append(kBeside); }

std::string_view streamName(const LaneInfo& lane)
{
    if (lane.kind == LaneKind::Stream)
        for (const std::string_view suffix : {kGaps, kNccl, kBeside})
            if (const std::size_t at = lane.name.find(suffix); at != std::string::npos) return std::string_view(lane.name).substr(0, at);
    return lane.name;
}

std::optional<int> gpuOf(const LaneInfo& lane)
{
    const std::string_view name = lane.name;
    int number = 0;
    if (!name.starts_with(kGpu)) return std::nullopt;
    const auto read = std::from_chars(name.data() + kGpu.size(), name.data() + name.size(), number);
    return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

bool isCopyName(std::string_view name)
{
    for (const std::string_view each : {"host to device", "device to host", "device to device", "host to host", "array copy", "copy"})
        if (name == each) return true;
    return name.starts_with("copy GPU ") || name.starts_with("Memcpy ");
}

bool isNcclName(std::string_view name) { return name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel"); }

bool isExchangeName(std::string_view name) { return isNcclName(name) && contains(name, "SendRecv"); }

bool isSumName(std::string_view name) { return isNcclName(name) && contains(name, "AllReduce"); }

} // namespace stagecraft::traces
