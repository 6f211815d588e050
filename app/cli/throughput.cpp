// SPDX-License-Identifier: Apache-2.0
#include "app/cli/throughput.h"

#include "traces/base/units.h"

#include <fmt/format.h>

namespace stagecraft::cli {

Json throughputJson(const engine::Throughput& throughput)
{
    return {{"samples_per_s", throughput.samplesPerSecond},
            {"tokens_per_s", throughput.tokensPerSecond > 0 ? Json(throughput.tokensPerSecond) : Json()},
            {"flops_per_s", throughput.flopsPerSecond},
            {"peak_flops_per_s", throughput.peakFlopsPerSecond},
            {"utilisation", throughput.utilisation}};
}

std::string throughputText(const engine::Throughput& throughput)
{
    std::string text = fmt::format("  throughput      {:.4g} samples/s", throughput.samplesPerSecond);
    if (throughput.tokensPerSecond > 0) text += fmt::format(", {:.4g} tokens/s", throughput.tokensPerSecond);
    text += fmt::format("\n  FLOP/s          {:.4g} G", throughput.flopsPerSecond / 1e9);
    if (throughput.utilisation > 0)
        text += fmt::format(", {} of {:.4g} G, a thread's in a matrix product for each rank", traces::formatPercent(throughput.utilisation),
                            throughput.flopsPerSecond / throughput.utilisation / 1e9);
    return text + "\n";
}

} // namespace stagecraft::cli
