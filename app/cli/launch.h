// SPDX-License-Identifier: Apache-2.0
//
// What mpirun tells the processes that it starts, in their environment.
//
//   if (const std::optional<Launch> launch = mpiLaunch()) team = joinTeam(*launch);
#pragma once

#include "app/cli/live_engine.h"

#include <optional>

namespace stagecraft::cli {

// Nothing where mpirun has not started this process. Known are Open MPI and what follows MPICH.
std::optional<Launch> mpiLaunch();

} // namespace stagecraft::cli
