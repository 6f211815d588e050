// SPDX-License-Identifier: Apache-2.0
//
// Pieces of JSON text for writers that stream.
#pragma once

#include "traces/base/units.h"

#include <string>
#include <string_view>

namespace stagecraft::traces {

// With its quotes. Control characters, quotes and backslashes are escaped; bytes that are not UTF-8 become U+FFFD, because
// one of them would make a whole file unreadable.
void appendJsonString(std::string& out, std::string_view text);

// Microseconds with three decimals from whole nanoseconds, digit by digit: a time must not pass through double.
void appendMicroseconds(std::string& out, TimeNs ns);

// The reverse: digits, at most three of them (and any zeros) behind the point. Anything else is an error.
Expected<TimeNs> parseMicroseconds(std::string_view token);

} // namespace stagecraft::traces
