// SPDX-License-Identifier: Apache-2.0
//
// Time and size with units. Time is int64 nanoseconds, intervals are half-open [begin, end), sizes are int64 bytes.
// This is the one place that turns text into them and back; time stamps never pass through double elsewhere.
//
//   parseDuration("1.5ms").value() == 1'500'000
//   formatDuration(1'500'000)      == "1.5 ms"
#pragma once

#include "traces/base/expected.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft::traces {

using TimeNs = std::int64_t;
using Bytes = std::int64_t;

struct Interval {
    TimeNs begin = 0;
    TimeNs end = 0;

    [[nodiscard]] TimeNs length() const { return end - begin; }
    bool operator==(const Interval&) const = default;
};

// "250ns", "3 us", "1.5ms", "2s". A bare number is refused unless it is 0: a forgotten unit must not pass as nanoseconds.
// Never negative. Errors name the text and the units that are allowed.
Expected<TimeNs> parseDuration(std::string_view text);

// "64B", "4 KiB", "1.5MiB", "2GiB". A bare number means bytes.
Expected<Bytes> parseSize(std::string_view text);

// "25GB/s", "900 MB/s", "10GiB/s" in bytes per second (decimal and binary prefixes); must be above 0.
Expected<double> parseBandwidth(std::string_view text);

// "5%" or "0.05" -> 0.05.
Expected<double> parseFraction(std::string_view text);

// With four significant digits and the largest unit that keeps the number at 1 or above: "1.5 ms", "83.33 µs", "0 ns".
std::string formatDuration(TimeNs ns);
std::string formatSize(Bytes bytes);            // "4 KiB", "1.25 GiB"
std::string formatBandwidth(double bytesPerSecond); // "25 GB/s"
std::string formatPercent(double fraction);     // "37.5 %", "9.09 %"

// Text that the parsers above read back to exactly the same value below 2^53 (104 days, 8 PiB) ("1500us"); what a plan file holds.
std::string exactDuration(TimeNs ns);
std::string exactSize(Bytes bytes);

} // namespace stagecraft::traces
