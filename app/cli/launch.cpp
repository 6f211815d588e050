// SPDX-License-Identifier: Apache-2.0
#include "app/cli/launch.h"

#include <cstdlib>

namespace stagecraft::cli {

namespace {

std::optional<int> numberIn(const char* variable)
{
    const char* text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    const int number = std::atoi(text);
    return number > 0 ? std::optional(number) : std::nullopt;
}

} // namespace

std::optional<Launch> mpiLaunch()
{
    if (const std::optional<int> size = numberIn("OMPI_COMM_WORLD_SIZE"))
        return Launch{.size = *size, .together = numberIn("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(*size)};
    if (const std::optional<int> size = numberIn("PMI_SIZE")) return Launch{.size = *size, .together = numberIn("MPI_LOCALNRANKS").value_or(*size)};
    return std::nullopt;
}

} // namespace stagecraft::cli
