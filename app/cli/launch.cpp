// SPDX-License-Identifier: Apache-2.0
#include "app/cli/launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::cli {

namespace {

constexpr int kMostProcesses = 16384;

std::string textIn(const char* variable)
{
    const char* text = std::getenv(variable);
    return text != nullptr ? text : "";
}

std::optional<int> numberIn(const char* variable)
{
    const int number = std::atoi(textIn(variable).c_str());
    return number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<Launch> mpiLaunch()
{
    if (const std::optional<int> size = numberIn("OMPI_COMM_WORLD_SIZE"))
        return Launch{.size = *size, .together = numberIn("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(*size)};
    if (const std::optional<int> size = numberIn("PMI_SIZE")) return Launch{.size = *size, .together = numberIn("MPI_LOCALNRANKS").value_or(*size)};
    return std::nullopt;
}

Expected<int> wholeIn(const char* variable, int least, int most)
{
    const std::string text = textIn(variable);
    int number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc{} && end == text.data() + text.size() && number >= least && number <= most) return number;
    return Error{fmt::format("{}={} is not allowed in the environment; {} to {}", variable, text, least, most)};
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
    return Launch{.size = size.value(),
                  .together = numberIn("LOCAL_WORLD_SIZE").value_or(size.value()),
                  .meeting = LaunchMeeting{.rank = rank.value(),
                                           .host = textIn("MASTER_ADDR"),
                                           .port = port.value(),
                                           .served = textIn("TORCHELASTIC_USE_AGENT_STORE") == "True",
                                           .round = textIn("TORCHELASTIC_RESTART_COUNT")}};
}

} // namespace

Expected<std::optional<Launch>> findLaunch(LaunchFor mode)
{
    const bool asked = mode == LaunchFor::Processes;
    if (const std::optional<Launch> launch = mpiLaunch()) return asked || launch->size > 1 ? launch : std::nullopt;
    const bool some = !textIn("WORLD_SIZE").empty() || (asked && (!textIn("RANK").empty() || !textIn("MASTER_ADDR").empty()));
    if (!some || (!asked && numberIn("WORLD_SIZE").value_or(1) == 1)) return std::optional<Launch>{};
    const Expected<Launch> launch = torchLaunch();
    if (!launch.ok()) return launch.error();
    return std::optional(launch.value());
}

} // namespace stagecraft::cli
