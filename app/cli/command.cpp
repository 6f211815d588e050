// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace stagecraft::cli {

namespace {

// A message may quote a file: what a terminal would obey is shown instead.
std::string harmless(const std::string& message)
{
    std::string shown;
    for (const char c : message) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte >= 0x20 || c == '\n' || c == '\t') && byte != 0x7f) {
            shown += c;
            continue;
        }
        std::array<char, 8> escape{};
        std::snprintf(escape.data(), escape.size(), "\\x%02x", byte);
        shown += escape.data();
    }
    return shown;
}

void complain(const std::string& message) { std::fprintf(stderr, "stagecraft-cli: %s\n", harmless(message).c_str()); }

} // namespace

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
    if (errno != EPIPE) complain(std::string("the output cannot be written: ") + std::strerror(errno));
    return kFailed;
}

int failed(const Error& error)
{
    complain(error.message);
    return kFailed;
}

int wrongUse(const Error& error)
{
    complain(error.message);
    return kWrongUse;
}

} // namespace stagecraft::cli
