// SPDX-License-Identifier: Apache-2.0
//
// The file that a run's journal goes to while the run goes on: what was handed over by sync() is in the operating system's
// hands, and a program that crashes afterwards loses none of it. What an older file of the name holds stays until begin(),
// so that a run that comes to nothing costs nobody a trace: what is written before waits in memory. A pipe or a device holds
// nothing that could be lost, and is begun when it is opened.
//
//   Expected<JournalFile> file = JournalFile::open(path);      // says at once that it cannot be written
//   file.value().write(bytes);
//   file.value().begin();                                      // the first action has run
//   if (auto kept = file.value().sync(); !kept.ok()) ...       // the disk is full; nothing more is written
#pragma once

#include "app/cli/command.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft::cli {

class JournalFile {
public:
    static Expected<JournalFile> open(const std::filesystem::path& file);

    JournalFile(JournalFile&& other) noexcept;
    JournalFile& operator=(JournalFile&&) = delete;
    JournalFile(const JournalFile&) = delete;
    JournalFile& operator=(const JournalFile&) = delete;
    ~JournalFile(); // a file that is new and was never begun goes away again

    void begin(); // once is enough
    [[nodiscard]] bool begun() const { return begun_; }
    void write(std::string_view bytes) { buffer_.append(bytes); }
    Expected<void> sync(); // nothing before begin(); after the first failure it writes nothing more, and tells it again
    Expected<void> close(); // what was never begun is given up

private:
    JournalFile(std::filesystem::path file, int descriptor, bool fresh);

    std::filesystem::path file_;
    int descriptor_ = -1;
    bool fresh_ = false; // made by open() and not begun
    bool begun_ = false;
    int errno_ = 0;
    std::string buffer_;
};

} // namespace stagecraft::cli
