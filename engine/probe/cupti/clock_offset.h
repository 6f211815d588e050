// SPDX-License-Identifier: Apache-2.0
//
// How far a foreign clock is from the host's, where CUPTI does not take the host's own: the foreign one is read between two
// looks at the host's, several times, and the reading with the narrowest looks counts. Pure.
//
//   const auto offset = measureOffset([&] { return clock.now(); }, [&] { return cuptiNow(); });
//   host = foreign + offset->offset;   // wrong by no more than offset->error
#pragma once

#include "traces/base/units.h"

#include <optional>

namespace stagecraft::runtime {

struct ClockOffset {
    traces::TimeNs offset = 0; // makes the foreign time the host's
    traces::TimeNs error = 0;

    bool operator==(const ClockOffset&) const = default;
};

inline constexpr int kOffsetReadings = 9;

// `host` gives a TimeNs; `foreign` an optional one, none where it cannot be read. None where no reading was had.
template <class Host, class Foreign>
std::optional<ClockOffset> measureOffset(Host&& host, Foreign&& foreign)
{
    std::optional<ClockOffset> best;
    for (int i = 0; i < kOffsetReadings; ++i) {
        const traces::TimeNs before = host();
        const std::optional<traces::TimeNs> there = foreign();
        const traces::TimeNs after = host();
        if (!there) continue;
        const traces::TimeNs half = (after - before) / 2;
        const traces::TimeNs error = after - before - half; // the larger half
        if (!best || error < best->error) best = ClockOffset{.offset = before + half - *there, .error = error};
    }
    return best;
}

} // namespace stagecraft::runtime
