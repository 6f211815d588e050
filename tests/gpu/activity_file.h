// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's buffers as they came, in a file: what a GPU recorded once is read by the tests on machines without one. Little endian, one part
// behind the other:
//
//   "SCACTIV1"                          8 bytes
//   CUPTI's version                     uint32, 130001
//   number of names, number of buffers  uint32 each
//   each name                           uint32 length, the bytes
//   each buffer                         uint64 length, the bytes: records as the library walks over them
//
// Kernels point to their names in a process that is gone: in the file such a pointer is 1 + the number of the name, or 0. Other pointers
// of records are 0.
//
//   saveActivities(file, {.cupti = library->version(), .buffers = taken}, *library);
//   ActivityFile back = loadActivities(file, *library).value();   // pointers lead to back.names
//   for (auto& buffer : back.buffers) decoder.decode(bytesOf(buffer), {}, batch);
#pragma once

#include "engine/probe/cupti/cupti_library.h"

#include <cstdint>
#include <filesystem>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace stagecraft::gpu {

using traces::Expected;

// As words, for records begin at multiples of eight bytes.
using ActivityWords = std::vector<std::uint64_t>;

ActivityWords wordsOf(std::span<const std::uint8_t> bytes);
std::span<std::uint8_t> bytesOf(ActivityWords& words);

struct ActivityFile {
    std::uint32_t cupti = 0;
    std::vector<ActivityWords> buffers = {};
    std::list<std::string> names = {}; // of one that was loaded; they do not move
};

// The process is the one that recorded, so that the names are still where the records say.
Expected<void> saveActivities(const std::filesystem::path& to, ActivityFile file, const runtime::CuptiLibrary& library);
Expected<ActivityFile> loadActivities(const std::filesystem::path& from, const runtime::CuptiLibrary& library);

} // namespace stagecraft::gpu
