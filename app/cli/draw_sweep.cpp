// SPDX-License-Identifier: Apache-2.0
#include "app/cli/draw_sweep.h"

#include "app/cli/sibling.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

std::vector<std::string> plotArguments(const SweepDrawing& drawing)
{
    // the program's first argument is the name it was called by: its messages bear this one's
    std::vector<std::string> arguments{"stagecraft-cli", "plot"};
    if (!drawing.figures.empty()) arguments.push_back(fmt::format("--figure={}", fmt::join(drawing.figures, ",")));
    if (!drawing.theme.empty()) arguments.push_back("--theme=" + drawing.theme);
    arguments.insert(arguments.end(), {"--", "-", drawing.out}); // a name may begin with a dash
    return arguments;
}

// All of it, unless the reader goes away.
void writeAll(int pipe, std::string_view text)
{
    while (!text.empty()) {
        const ssize_t written = ::write(pipe, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

} // namespace

Expected<void> checkDrawing(const SweepDrawing& drawing)
{
    const std::string name = traces::lowered(drawing.out);
    if (name.ends_with(".png") || name.ends_with(".svg") || name.ends_with(".pdf")) return {};
    return Error{fmt::format("--out {}: a picture is written as .png, .svg or .pdf; choose the file's name so", drawing.out)};
}

Expected<void> drawSweep(const std::string& json, const SweepDrawing& drawing)
{
    const auto program = siblingProgram("stagecraft");
    if (!program)
        return Error{fmt::format("pictures are drawn by the desktop program, and {} is not there; build with Qt 6 (-DSTAGECRAFT_WITH_UI=ON), "
                                 "or take --csv FILE",
                                 (programFolder() / "stagecraft").string())};
    std::vector<std::string> arguments = plotArguments(drawing);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    int ends[2];
    if (::pipe(ends) != 0) return Error{fmt::format("no pipe to the desktop program: {}", std::strerror(errno))};
    const pid_t child = ::fork();
    if (child < 0) {
        const int reason = errno;
        ::close(ends[0]);
        ::close(ends[1]);
        return Error{fmt::format("{} cannot be started: {}", program->string(), std::strerror(reason))};
    }
    if (child == 0) {
        ::dup2(ends[0], STDIN_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        ::execv(program->c_str(), pointers.data());
        ::_exit(127);
    }
    ::close(ends[0]);
    const auto before = std::signal(SIGPIPE, SIG_IGN); // the child may end before it has read all
    writeAll(ends[1], json);
    ::close(ends[1]);
    std::signal(SIGPIPE, before);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return Error{fmt::format("{} was not drawn", drawing.out)};
}

} // namespace stagecraft::cli
