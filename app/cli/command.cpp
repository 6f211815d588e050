// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command.h"

#include "traces/base/text.h"
#include "traces/base/utf8.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace stagecraft::cli {

void warn(std::string_view message)
{
    std::fputs(("stagecraft-cli: " + traces::harmless(traces::withoutBrokenBytes(message)) + '\n').c_str(), stderr);
}

CLI::App& addVerb(CLI::App& program, const std::string& name, const std::string& description, const std::string& example)
{
    CLI::App& verb = *program.add_subcommand(name, description);
    verb.footer("Example:\n  " + example);
    return verb;
}

void addJsonFlag(CLI::App& verb, bool& json) { verb.add_flag("--json", json, "Print JSON")->disable_flag_override(); }

int print(std::string_view text)
{
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (written) return kDone;
    // whoever reads has gone away: nothing to tell
    if (errno != EPIPE) warn(std::string("the output cannot be written: ") + std::strerror(errno));
    return kFailed;
}

int failed(const Error& error)
{
    warn(error.message);
    return kFailed;
}

int wrongUse(const Error& error)
{
    warn(error.message);
    return kWrongUse;
}

} // namespace stagecraft::cli
