// SPDX-License-Identifier: Apache-2.0
//
// The most of each GPU's memory that was in use, as JSON and for people; of a trace that has GPUs.
//
//   const std::vector<traces::GpuPeak> peaks = traces::gpuPeaks(trace);
//   if (!peaks.empty()) text += gpuMemoryText(trace, peaks);
#pragma once

#include "app/cli/figures_json.h"
#include "traces/analysis/gpu_memory.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

// [{gpu, host, name, ranks, total_bytes, peak_active_bytes, peak_reserved_bytes, peak_other_bytes, peak_used_bytes, peak_used_ns}]
Json gpuMemoryJson(const traces::Trace& trace, const std::vector<traces::GpuPeak>& peaks);
std::string gpuMemoryText(const traces::Trace& trace, const std::vector<traces::GpuPeak>& peaks);

} // namespace stagecraft::cli
