// SPDX-License-Identifier: Apache-2.0
//
// What in the environment would keep CUPTI from recording, told before a run rather than by its error. Pure: whoever starts
// the program reads the environment.
//
//   for (const std::string& each : profilerConflicts({.injection = valueOf("CUDA_INJECTION64_PATH")})) warn(each);
#pragma once

#include <string>
#include <vector>

namespace stagecraft::runtime {

struct ProfilerEnvironment {
    std::string injection = {};    // CUDA_INJECTION64_PATH: a tool that the driver loads into the process
    std::string kinetoDaemon = {}; // KINETO_USE_DAEMON: LibTorch attaches a profiler of its own as it is loaded
};

std::vector<std::string> profilerConflicts(const ProfilerEnvironment& environment);

} // namespace stagecraft::runtime
