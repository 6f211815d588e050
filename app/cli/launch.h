// SPDX-License-Identifier: Apache-2.0
//
// What started this process as one of several, by the environment that it was given: mpirun, torchrun, or whatever sets torchrun's variables.
//
//   const Expected<std::optional<Launch>> launch = findLaunch(LaunchFor::Processes);
//   if (launch.value()) team = joinTeam(*launch.value());
#pragma once

#include "app/cli/live_engine.h"

#include <cstdint>
#include <optional>

namespace stagecraft::cli {

// Whether the command line asks for mode processes: without, a single process that torchrun or mpirun has started is as good as none.
enum class LaunchFor : std::uint8_t { Processes, AnyMode };

// Nothing where this process is alone. Known are Open MPI, what follows MPICH, and RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torchrun
// sets them, which counts where no mpirun has started it. An error names what is missing of these, or cannot be.
Expected<std::optional<Launch>> findLaunch(LaunchFor mode);

} // namespace stagecraft::cli
