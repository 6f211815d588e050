// SPDX-License-Identifier: Apache-2.0
//
// The files that a plan names. A plan file names them as they are seen from its own folder, so that a folder with a plan and its files
// can be moved; a plan in memory, which goes on to other processes, has the whole path. Without a plan file, on standard input or in a
// preset, they are seen from the working folder.
//
//   Plan plan = withWholePaths(readPlan(text).value(), "studies");          // model/a.pt -> /home/me/studies/model/a.pt
//   std::string text = writePlan(withPathsSeenFrom(plan, "studies"));       // and back; what lies elsewhere keeps its whole path
#pragma once

#include "engine/plan/plan.h"

#include <filesystem>

namespace stagecraft::engine {

Plan withWholePaths(Plan plan, const std::filesystem::path& folder);
Plan withPathsSeenFrom(Plan plan, const std::filesystem::path& folder);

} // namespace stagecraft::engine
