// SPDX-License-Identifier: Apache-2.0
#include "app/cli/launch.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft::cli {

namespace {

constexpr int kMostProcesses = 16384;

std::string textIn(const char* variable)
{
    const char* text = std::getenv(variable);
    return text != nullptr ? text : "";
}

Error notAllowed(const char* variable, std::string_view allowed)
{
    return Error{fmt::format("{}={} is not allowed in the environment; {}", variable, textIn(variable), allowed)};
}

Expected<int> wholeIn(const char* variable, int least, int most)
{
    const std::string text = textIn(variable);
    int number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc{} && end == text.data() + text.size() && number >= least && number <= most) return number;
    return notAllowed(variable, fmt::format("{} to {}", least, most));
}

// Processes on this host, of all that there are.
Expected<int> togetherIn(const char* variable, int size)
{
    if (textIn(variable).empty()) return size;
    const Expected<int> together = wholeIn(variable, 1, size);
    if (!together.ok()) return notAllowed(variable, fmt::format("1 to {}, the processes on this host; without it, all of them are", size));
    return together;
}

Expected<std::optional<Launch>> mpiLaunch()
{
    for (const auto& [all, here] : {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, std::pair{"PMI_SIZE", "MPI_LOCALNRANKS"}}) {
        if (textIn(all).empty()) continue;
        const Expected<int> size = wholeIn(all, 1, kMostProcesses);
        if (!size.ok()) return size.error();
        const Expected<int> together = togetherIn(here, size.value());
        if (!together.ok()) return together.error();
        return std::optional(Launch{.size = size.value(), .together = together.value()});
    }
    return std::optional<Launch>{};
}

Expected<bool> servedByTorchrun()
{
    constexpr const char* kVariable = "TORCHELASTIC_USE_AGENT_STORE";
    const std::string text = textIn(kVariable);
    if (text == "True") return true;
    if (text.empty() || text == "False") return false;
    return notAllowed(kVariable, "True where torchrun keeps the meeting point, or False where rank 0 does");
}

// torchrun gives all of them; by hand one is forgotten easily.
Expected<Launch> torchLaunch()
{
    std::vector<std::string_view> missing;
    for (const char* variable : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
        if (textIn(variable).empty()) missing.emplace_back(variable);
    if (!missing.empty())
        return Error{fmt::format("the environment has no {}: each process of a run needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them",
                                 fmt::join(missing, ", no "))};
    const Expected<int> size = wholeIn("WORLD_SIZE", 1, kMostProcesses);
    if (!size.ok()) return size.error();
    const Expected<int> rank = wholeIn("RANK", 0, size.value() - 1);
    if (!rank.ok()) return rank.error();
    const Expected<int> port = wholeIn("MASTER_PORT", 1, 65535);
    if (!port.ok()) return port.error();
    const Expected<int> together = togetherIn("LOCAL_WORLD_SIZE", size.value());
    if (!together.ok()) return together.error();
    const Expected<bool> served = servedByTorchrun();
    if (!served.ok()) return served.error();
    const std::string run = textIn("TORCHELASTIC_RUN_ID");
    return Launch{.size = size.value(),
                  .together = together.value(),
                  .meeting = LaunchMeeting{.rank = rank.value(),
                                           .host = textIn("MASTER_ADDR"),
                                           .port = port.value(),
                                           .served = served.value(),
                                           .byHand = run.empty(),
                                           .round = run + "/" + textIn("TORCHELASTIC_RESTART_COUNT")}};
}

} // namespace

Expected<std::optional<Launch>> findLaunch(LaunchFor mode)
{
    const bool asked = mode == LaunchFor::Processes;
    const Expected<std::optional<Launch>> mpi = mpiLaunch();
    if (!mpi.ok() && asked) return mpi.error();
    if (mpi.ok() && mpi.value()) return asked || mpi.value()->size > 1 ? mpi.value() : std::nullopt;
    const bool some = !textIn("WORLD_SIZE").empty() || (asked && (!textIn("RANK").empty() || !textIn("MASTER_ADDR").empty()));
    if (!some || (!asked && std::atoi(textIn("WORLD_SIZE").c_str()) <= 1)) return std::optional<Launch>{};
    const Expected<Launch> launch = torchLaunch();
    if (!launch.ok()) return launch.error();
    return std::optional(launch.value());
}

} // namespace stagecraft::cli
