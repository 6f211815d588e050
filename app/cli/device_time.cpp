// SPDX-License-Identifier: Apache-2.0
#include "app/cli/device_time.h"

#include "app/cli/table.h"
#include "traces/base/units.h"

#include <algorithm>

namespace stagecraft::cli {

using traces::DeviceTime;
using traces::StreamGapCause;
using traces::TimeNs;

namespace {

std::string shareOf(TimeNs part, TimeNs whole)
{
    return whole > 0 ? traces::formatPercent(static_cast<double>(part) / static_cast<double>(whole)) : "";
}

} // namespace

Json deviceTimeJson(const std::vector<traces::RankDeviceTime>& times)
{
    Json json = Json::array();
    for (const auto& [rank, time] : times)
        json.push_back({{"rank", rank.value},
                        {"blocks_ns", time.span},
                        {"kernels_ns", time.kernels},
                        {"copies_ns", time.copies},
                        {"nccl_ns", time.exchanges},
                        {"gaps_ns",
                         {{"host", time.gap(StreamGapCause::Host)},
                          {"launch", time.gap(StreamGapCause::Launch)},
                          {"event", time.gap(StreamGapCause::Event)},
                          {"device", time.gap(StreamGapCause::Device)},
                          {"not_known", time.notKnown}}},
                        {"copying_ns", time.copying},
                        {"hidden_copying_ns", time.hidden},
                        {"all_nccl_ns", {{"waiting", time.nccl.waiting}, {"moving", time.nccl.moving}, {"not_known", time.nccl.notKnown}}}});
    return json;
}

std::string deviceTimeText(const std::vector<traces::RankDeviceTime>& times)
{
    Table table({{"rank", Align::Right},
                 {"blocks", Align::Right},
                 {"kernels", Align::Right},
                 {"copies", Align::Right},
                 {"host", Align::Right},
                 {"launch", Align::Right},
                 {"event", Align::Right},
                 {"device", Align::Right},
                 {"not known", Align::Right},
                 {"all copies", Align::Right},
                 {"hidden", Align::Right}});
    for (const auto& [rank, time] : times)
        table.add({std::to_string(rank.value), traces::formatDuration(time.span), shareOf(time.kernels, time.span), shareOf(time.copies, time.span),
                   shareOf(time.gap(StreamGapCause::Host), time.span), shareOf(time.gap(StreamGapCause::Launch), time.span),
                   shareOf(time.gap(StreamGapCause::Event), time.span), shareOf(time.gap(StreamGapCause::Device), time.span),
                   shareOf(time.notKnown, time.span), traces::formatDuration(time.copying), shareOf(time.hidden, time.copying)});
    std::string text = "\ntime of the blocks on the device: kernels, copies that none hides, else what the next kernel waited for\n" + table.text();
    if (std::all_of(times.begin(), times.end(), [](const traces::RankDeviceTime& each) { return each.time.nccl.all() == 0; })) return text;
    Table nccl({{"rank", Align::Right}, {"all", Align::Right}, {"waiting", Align::Right}, {"moving", Align::Right}, {"not known", Align::Right}, {"blocks", Align::Right}});
    for (const auto& [rank, time] : times)
        nccl.add({std::to_string(rank.value), traces::formatDuration(time.nccl.all()), shareOf(time.nccl.waiting, time.nccl.all()),
                  shareOf(time.nccl.moving, time.nccl.all()), shareOf(time.nccl.notKnown, time.nccl.all()), shareOf(time.exchanges, time.span)});
    return text + "\nkernels of NCCL: waiting for the other rank, or moving; of the blocks' time that in which nothing else was at work\n" + nccl.text();
}

} // namespace stagecraft::cli
