// SPDX-License-Identifier: Apache-2.0
//
// stagecraft-cli itself does not link LibTorch, whose loading alone takes a third of a second and 100 MB: most verbs have no
// use for it. For those that run something, the program of the same sources that does link it takes this process over.
#include "app/cli/live_engine.h"
#include "app/cli/sibling.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace stagecraft::cli {

namespace {

constexpr const char* kProgram = "stagecraft-live";

// The arguments that this process was started with.
std::vector<std::string> ownArguments()
{
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    return arguments;
}

} // namespace

Expected<void> enterLiveEngine()
{
    const auto program = siblingProgram(kProgram);
    if (!program) {
        return Error{
            fmt::format("{} is not there, and it is what runs plans; it is built beside stagecraft-cli and belongs into the "
                        "same folder",
                        (programFolder() / kProgram).string())};
    }
    std::error_code ignored;
    if (const std::filesystem::path library = libTorchBuild().library; !std::filesystem::exists(library, ignored)) {
        return Error{
            fmt::format("LibTorch is gone: this build runs plans with {}; ./run installs it again", library.string())};
    }
    std::vector<std::string> arguments = ownArguments();
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(program->c_str(), pointers.data());
    return Error{fmt::format("{} cannot be started: {}", program->string(), std::strerror(errno))};
}

Expected<std::unique_ptr<engine::Session>> makeSession() { return enterLiveEngine().error(); }

bool couldBegin(const engine::Plan&) { return true; }

Expected<std::unique_ptr<Team>> joinTeam(const Launch&) { return enterLiveEngine().error(); }

LibTorchBuild libTorchBuild()
{
    return {.version = STAGECRAFT_LIBTORCH_VERSION, .library = STAGECRAFT_LIBTORCH_LIBRARY, .abilities = ""};
}

} // namespace stagecraft::cli
