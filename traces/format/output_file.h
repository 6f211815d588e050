// SPDX-License-Identifier: Apache-2.0
//
// A file that is written whole or not at all: the bytes go to a temporary file beside it, which takes its name on
// commit(). Without a commit the temporary file goes away and an older file of that name stays as it was. Devices and pipes
// (/dev/stdout) are written directly. Errors name the file, the reason and what to do.
//
//   Expected<OutputFile> file = OutputFile::create(path);
//   if (!file.ok()) return file.error();
//   file.value().write(bytes);            // buffered; the first failure is kept
//   return file.value().commit();         // and told here
#pragma once

#include "traces/base/expected.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace stagecraft::traces {

// What commit() waits for: that the system has the bytes, or that the disk has them, so that they outlive a loss of power.
enum class Durability : std::uint8_t { Written, OnDisk };

class OutputFile {
public:
    static Expected<OutputFile> create(const std::filesystem::path& file);

    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    void write(std::string_view bytes);
    [[nodiscard]] bool failed() const { return errno_ != 0; } // so that a long export can stop early
    Expected<void> commit(Durability durability = Durability::Written);

private:
    OutputFile(std::filesystem::path file, std::filesystem::path temporary, int descriptor);
    void flush();
    void discard() noexcept;

    std::filesystem::path file_;
    std::filesystem::path temporary_; // empty: writes into the file itself
    int descriptor_ = -1;
    int errno_ = 0;
    std::string buffer_;
};

// All of it at once.
Expected<void> writeWholeFile(const std::filesystem::path& file, std::string_view bytes, Durability durability = Durability::Written);

// "cannot write <file>: the disk is full; ..." for a value of errno.
Error writeError(const std::filesystem::path& file, int error);
// "cannot read <file>: it does not exist; ..."
Error readError(const std::filesystem::path& file, int error);

} // namespace stagecraft::traces
