// SPDX-License-Identifier: Apache-2.0
//
// /proc/meminfo, and control groups of both versions (kernel's admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). Every
// group above the process's own bounds it too. In a container the path that the process sees may not exist under /sys: the
// walk upwards then ends at the mount's root, which is the container's own group.
#include "engine/probe/host_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace stagecraft::runtime {

namespace {

namespace fs = std::filesystem;

// The number behind `key` in a file of lines such as "MemTotal:  8041224 kB" or "inactive_file 4096".
std::optional<Bytes> fieldOf(const fs::path& file, std::string_view key)
{
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        Bytes value = 0;
        if (words >> name >> value && name == key) return value;
    }
    return std::nullopt;
}

// Nothing where the file is not there or says "max".
std::optional<Bytes> numberOf(const fs::path& file)
{
    std::ifstream in(file);
    Bytes value = 0;
    if (in >> value) return value;
    return std::nullopt;
}

struct GroupFiles {
    const char* limit;
    const char* usage;
    const char* reclaimable; // in memory.stat: file pages that are given up on demand
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void boundBy(const fs::path& folder, const GroupFiles& files, HostMemory& memory)
{
    const std::optional<Bytes> limit = numberOf(folder / files.limit);
    if (!limit || *limit >= memory.total) return; // version 1 writes a huge number for no limit
    memory.total = *limit;
    const Bytes used = numberOf(folder / files.usage).value_or(0) - fieldOf(folder / "memory.stat", files.reclaimable).value_or(0);
    memory.available = std::min(memory.available, std::max<Bytes>(0, *limit - std::max<Bytes>(0, used)));
}

void boundByAll(const fs::path& mount, std::string_view group, const GroupFiles& files, HostMemory& memory)
{
    for (fs::path path = fs::path(group).relative_path();; path = path.parent_path()) {
        boundBy(mount / path, files, memory);
        if (path.empty()) return;
    }
}

} // namespace

HostMemory hostMemory(const fs::path& root)
{
    constexpr Bytes kKiB = 1024; // the file says kB and means this
    HostMemory memory{.total = kKiB * fieldOf(root / "proc/meminfo", "MemTotal:").value_or(0),
                      .available = kKiB * fieldOf(root / "proc/meminfo", "MemAvailable:").value_or(0)};
    std::ifstream groups(root / "proc/self/cgroup"); // "0::/user.slice", or "7:memory:/docker/1234" of version 1
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string group = line.substr(second + 1);
        if (controllers == ",,") boundByAll(root / "sys/fs/cgroup", group, kVersion2, memory);
        else if (controllers.find(",memory,") != std::string::npos)
            boundByAll(root / "sys/fs/cgroup/memory", group, kVersion1, memory);
    }
    return memory;
}

} // namespace stagecraft::runtime
