// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_notes.h"

#include <fmt/format.h>

#include <cstdio>

namespace stagecraft::cli {

void sayNotes(const traces::Trace& trace, std::string_view name)
{
    const auto say = [&](std::string_view text) {
        std::fputs(fmt::format("stagecraft-cli: {}: {}\n", name, text).c_str(), stderr);
    };
    if (trace.lostEvents() > 0) say(fmt::format("{} events were lost while it was recorded", trace.lostEvents()));
    for (const std::string& note : trace.notes()) say(note);
}

} // namespace stagecraft::cli
