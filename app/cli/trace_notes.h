// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "traces/store/trace.h"

#include <string_view>

namespace stagecraft::cli {

// On standard error: what whoever uses this trace must know: its notes (it was cut off, ...) and how many events were lost
// while it was recorded. `name` is the trace's file.
void sayNotes(const traces::Trace& trace, std::string_view name);

} // namespace stagecraft::cli
