// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process can have: the machine's, or less where a control group (a container, a service) bounds it.
//
//   const HostMemory memory = hostMemory();
//   if (needed > memory.available) ...
#pragma once

#include "traces/base/units.h"

#include <filesystem>

namespace stagecraft::runtime {

using traces::Bytes;

struct HostMemory {
    Bytes total = 0;     // never more than this; 0: the system does not tell
    Bytes available = 0; // without pushing others out
};

// `root` stands before /proc and /sys: a test has files of its own.
HostMemory hostMemory(const std::filesystem::path& root = "/");

} // namespace stagecraft::runtime
