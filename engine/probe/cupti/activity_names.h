// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels and calls, as numbers. CUPTI keeps a kernel's name at one address for as long as the process lives, so that
// an address is read and demangled once. The thread that decodes.
//
//   ActivityNames names;
//   NameId kernel = names.ofAddress(record->name);
//   NameId call = names.ofText("cudaMemcpyAsync");
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

// "cudaMemcpyAsync_ptsz_v7000", "__cudaLaunchKernel_v13000" -> "cudaMemcpyAsync", "cudaLaunchKernel": without CUPTI's version.
std::string callName(std::string_view cupti);

class ActivityNames {
public:
    explicit ActivityNames(NameReader read = demangled) : read_(read) {}

    NameId ofAddress(const char* address); // 0 where there is none
    NameId ofText(std::string text);
    std::vector<std::string> takeNew();

private:
    NameReader read_;
    std::unordered_map<const char*, NameId> byAddress_;
    std::unordered_map<std::string, NameId> byText_; // also of a kernel that was loaded twice
    std::vector<std::string> fresh_;
};

} // namespace stagecraft::runtime
