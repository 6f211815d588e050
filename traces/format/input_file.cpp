// SPDX-License-Identifier: Apache-2.0
#include "traces/format/input_file.h"

#include "traces/format/output_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace stagecraft::traces {

Expected<std::string> readWholeFile(const std::filesystem::path& file, std::size_t most)
{
    constexpr std::size_t kBlockBytes = 256 << 10;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(file.c_str(), "rbe"), &std::fclose);
    if (!input) return readError(file, errno);
    std::string text;
    std::string block(kBlockBytes, '\0');
    for (;;) {
        errno = 0;
        const std::size_t got = std::fread(block.data(), 1, block.size(), input.get());
        if (got == 0 && std::ferror(input.get()) != 0) return readError(file, errno);
        if (got == 0) return text;
        if (text.size() + got > most)
            return Error{"cannot read " + file.string() + ": it is longer than " + std::to_string(most >> 20) +
                         " MiB, which no file of this kind is"};
        text.append(block, 0, got);
    }
}

} // namespace stagecraft::traces
