// SPDX-License-Identifier: Apache-2.0
//
// How much of a device's work is recorded. Each level has all of the one before it, and costs more.
//
//   if (level >= TraceLevel::Kernels) session->record(level, take);   // below, CUPTI stays off
#pragma once

#include <cstdint>
#include <string_view>

namespace stagecraft::traces {

enum class TraceLevel : std::uint8_t {
    HostSpans, // when the host gave an action to the device
    Events,    // when the device began and ended it, by CUDA events
    Kernels,   // each kernel, copy, memset and wait in it, by CUPTI
    Api,       // each call of the CUDA runtime and driver as well, and each allocation
};

constexpr std::string_view traceLevelText(TraceLevel level)
{
    switch (level) {
    case TraceLevel::HostSpans: return "host";
    case TraceLevel::Events: return "events";
    case TraceLevel::Kernels: return "kernels";
    case TraceLevel::Api: return "api";
    }
    return {};
}

} // namespace stagecraft::traces
