// SPDX-License-Identifier: Apache-2.0
//
// Where the time of each rank's blocks went on its device, as JSON and for people; of a trace that has kernels.
//
//   const std::vector<traces::RankDeviceTime> times = traces::deviceTimes(trace);
//   if (!times.empty()) text += deviceTimeText(times);
#pragma once

#include "app/cli/figures_json.h"
#include "traces/analysis/device_time.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

// [{rank, blocks_ns, kernels_ns, copies_ns, gaps_ns: {...}, copying_ns, hidden_copying_ns}]
Json deviceTimeJson(const std::vector<traces::RankDeviceTime>& times);
std::string deviceTimeText(const std::vector<traces::RankDeviceTime>& times); // shares of the blocks' time

} // namespace stagecraft::cli
