// SPDX-License-Identifier: Apache-2.0
#include "app/cli/trace_notes.h"

#include "app/cli/command.h"

#include <fmt/format.h>


namespace stagecraft::cli {

void sayNotes(const traces::Trace& trace, std::string_view name)
{
    for (const std::string& caveat : traces::caveatsOf(trace)) warn(fmt::format("{}: {}", name, caveat));
}

} // namespace stagecraft::cli
