// SPDX-License-Identifier: Apache-2.0
//
// gzip, streamed on the way out and whole on the way in.
#pragma once

#include "traces/base/expected.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace stagecraft::traces {

class GzipWriter {
public:
    using Sink = std::function<void(std::string_view bytes)>;
    explicit GzipWriter(Sink sink);
    ~GzipWriter();
    GzipWriter(const GzipWriter&) = delete;
    GzipWriter& operator=(const GzipWriter&) = delete;

    void write(std::string_view bytes);
    void finish(); // call once, at the end

private:
    struct Stream;
    void deflate(std::string_view bytes, int flush);

    Sink sink_;
    std::unique_ptr<Stream> stream_;
    std::string block_;
};

// The bytes of a file, unpacked when they are gzip, whatever its name says. Errors name the file; a file that was cut off
// within its compression is one.
Expected<std::string> readMaybeGzip(const std::filesystem::path& file);

} // namespace stagecraft::traces
