// SPDX-License-Identifier: Apache-2.0
//
// What there was to the memory of each GPU of a trace: the most of each part, and how full the card came to be.
//
//   GpuPeaks peaks;
//   for (const Record& record : records) peaks.take(record);     // or gpuPeaks(trace)
//   const std::vector<std::string> names = gpuNames(trace);      // "GPU 0", "GPU 0 of node b"
//   for (const GpuPeak& peak : peaks.all()) show(names[index(peak.gpu)], peak.active, peak.reserved, peak.other, peak.used);
#pragma once

#include "traces/store/record.h"

#include <optional>
#include <string>
#include <vector>

namespace stagecraft::traces {

// Each at a moment of its own.
struct GpuPeak {
    GpuId gpu{};
    Bytes active = 0;
    Bytes reserved = 0;
    Bytes other = 0;
    Bytes used = 0;
    TimeNs at = 0; // the first moment at which most was used

    bool operator==(const GpuPeak&) const = default;
};

class GpuPeaks {
public:
    void take(const Record& record); // of one stream
    void take(GpuId gpu, TimeNs time, const GpuMemory& memory);
    [[nodiscard]] const std::vector<GpuPeak>& all() const { return peaks_; } // by number, of those that told something

private:
    std::vector<GpuPeak> peaks_;
};

[[nodiscard]] std::vector<GpuPeak> gpuPeaks(const Trace& trace);

// By number; with the host and the place on its bus only where two would have one name.
[[nodiscard]] std::vector<std::string> gpuNames(const Trace& trace);

// The GPU that the rank computes on; nothing on the CPU, or where nobody told.
[[nodiscard]] std::optional<GpuId> gpuOfRank(const Trace& trace, Rank rank);

} // namespace stagecraft::traces
