// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels, as numbers. CUPTI keeps a name at one address for as long as the process lives, so that an address is read
// and demangled once. The thread that decodes.
//
//   KernelNames names;
//   NameId id = names.idOf(record->name);
//   std::vector<std::string> fresh = names.takeNew();   // for who keeps the texts
#pragma once

#include "engine/probe/cupti/device_activity.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stagecraft::runtime {

// The text at an address. Records that were kept in a file have numbers of texts there instead.
using NameReader = std::string (*)(const char* address);

// "_Z4gemmPf" -> "gemm(float*)"; what is no such name stays.
std::string demangled(const char* name);

class KernelNames {
public:
    explicit KernelNames(NameReader read = demangled) : read_(read) {}

    NameId idOf(const char* address); // 0 where there is none
    std::vector<std::string> takeNew();

private:
    NameReader read_;
    std::unordered_map<const char*, NameId> ids_;
    std::unordered_map<std::string, NameId> byText_; // a kernel that was loaded twice
    std::vector<std::string> fresh_;
};

} // namespace stagecraft::runtime
