// SPDX-License-Identifier: Apache-2.0
#include "app/cli/findings.h"
#include "app/cli/shared_library.h"
#include "app/cli/sibling.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace stagecraft::cli {

namespace {

namespace fs = std::filesystem;

// Font files below a folder; 0 where there is no such folder or it may not be read.
std::size_t fontsBelow(const fs::path& folder)
{
    std::size_t count = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
         !error && entry != end; entry.increment(error)) {
        const fs::path extension = entry->path().extension();
        count += extension == ".ttf" || extension == ".otf" || extension == ".ttc" ? 1U : 0U;
    }
    return count;
}

} // namespace

Finding findQt()
{
    Finding finding{.key = "qt", .title = "Qt"};
    const SharedLibrary core("libQt6Core.so.6");
    if (!core.opened()) {
        finding.detail = core.reason();
        finding.disables = "the window, and pictures (render)";
        return finding;
    }
    finding.found = true;
    finding.detail = core.file().filename().string(); // "libQt6Core.so.6.4.2"
    if (const std::size_t version = finding.detail.find(".so."); version != std::string::npos)
        finding.detail.erase(0, version + 4);
    return finding;
}

Finding findDesktop()
{
    Finding finding{.key = "desktop", .title = "desktop program"};
    const auto program = siblingProgram("stagecraft");
    finding.found = program.has_value();
    finding.detail = program ? program->string() : fmt::format("{} is not there", (programFolder() / "stagecraft").string());
    if (!program) finding.disables = "the window, and pictures (render)";
    return finding;
}

Finding findFonts()
{
    Finding finding{.key = "fonts", .title = "fonts"};
    const char* home = std::getenv("HOME");
    const fs::path own = home != nullptr ? home : "";
    std::size_t count = 0;
    for (const fs::path& folder :
         {fs::path("/usr/share/fonts"), fs::path("/usr/local/share/fonts"), own / ".local/share/fonts", own / ".fonts"}) {
        count += fontsBelow(folder);
    }
    finding.found = count > 0;
    finding.detail = finding.found ? fmt::format("{} font files", count)
                                   : "no font files in the usual folders; install fonts-dejavu-core";
    if (!finding.found) finding.disables = "text in the window and in pictures";
    return finding;
}

} // namespace stagecraft::cli
