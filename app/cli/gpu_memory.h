// SPDX-License-Identifier: Apache-2.0
//
// The most of each GPU's memory that was in use, and the calls by which ranks took it from the driver, as JSON and for people; of a trace
// that has them.
//
//   const std::vector<traces::GpuPeak> peaks = traces::gpuPeaks(trace);
//   if (!peaks.empty()) text += gpuMemoryText(trace, peaks);
#pragma once

#include "app/cli/figures_json.h"
#include "traces/analysis/gpu_memory.h"
#include "traces/analysis/memory_operations.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

// [{gpu, host, name, ranks, total_bytes, peak_active_bytes, peak_reserved_bytes, peak_other_bytes, peak_used_bytes, peak_used_ns}]
Json gpuMemoryJson(const traces::Trace& trace, const std::vector<traces::GpuPeak>& peaks);
std::string gpuMemoryText(const traces::Trace& trace, const std::vector<traces::GpuPeak>& peaks);

// [{rank, allocations, allocated_bytes, releases, released_bytes, calls_ns, by_kind: [{kind, the same five}]}]
Json memoryOperationsJson(const std::vector<traces::RankMemoryOperations>& ranks);
std::string memoryOperationsText(const std::vector<traces::RankMemoryOperations>& ranks);

} // namespace stagecraft::cli
