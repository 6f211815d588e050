// SPDX-License-Identifier: Apache-2.0
#include "app/cli/findings.h"

#include "traces/base/units.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <thread>

#include <sched.h>

namespace stagecraft::cli {

namespace {

// The text after "name :" in a file of /proc; empty where it has no such line.
std::string procField(const char* file, std::string_view name)
{
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        if (!line.starts_with(name)) continue;
        const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
        return begin == std::string::npos ? std::string{} : line.substr(begin);
    }
    return {};
}

traces::Bytes memoryField(std::string_view name)
{
    traces::Bytes kibibytes = 0;
    std::istringstream(procField("/proc/meminfo", name)) >> kibibytes;
    return kibibytes * 1024;
}

} // namespace

Finding findCpu()
{
    std::string model = procField("/proc/cpuinfo", "model name");
    if (model.empty()) return {.key = "cpu", .title = "CPU", .found = true, .detail = "its model is not told by the system"};
    return {.key = "cpu", .title = "CPU", .found = true, .detail = std::move(model)};
}

Finding findCores()
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const unsigned all = std::thread::hardware_concurrency();
    const int usable = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : static_cast<int>(all);
    return {.key = "cores",
            .title = "cores",
            .found = true,
            .detail = fmt::format("{}", usable),
            .disables = usable > 1
                            ? ""
                            : "ranks in mode threads take turns on one core; mode emulated shows how they would overlap"};
}

Finding findMemory()
{
    const traces::Bytes total = memoryField("MemTotal");
    if (total == 0)
        return {.key = "memory",
                .title = "memory",
                .detail = "/proc/meminfo does not tell",
                .disables = "saying beforehand whether a run fits"};
    return {.key = "memory",
            .title = "memory",
            .found = true,
            .detail =
                fmt::format("{}, {} available", traces::formatSize(total), traces::formatSize(memoryField("MemAvailable")))};
}

} // namespace stagecraft::cli
