// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/profiler_conflicts.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

std::vector<std::string> profilerConflicts(const ProfilerEnvironment& environment)
{
    std::vector<std::string> out;
    if (!environment.injection.empty()) {
        out.push_back(fmt::format("CUDA_INJECTION64_PATH is set ('{}'): the tool it loads takes CUPTI, and kernels can then not be recorded. "
                                  "Unset it and start again",
                                  environment.injection));
    }
    if (!environment.kinetoDaemon.empty()) {
        out.push_back("KINETO_USE_DAEMON is set: LibTorch's own profiler then takes CUPTI, and kernels can not be recorded. Unset it and "
                      "start again");
    }
    return out;
}

} // namespace stagecraft::runtime
