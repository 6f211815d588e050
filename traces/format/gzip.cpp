// SPDX-License-Identifier: Apache-2.0
#include "traces/format/gzip.h"

#include "traces/format/output_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace stagecraft::traces {
namespace {

constexpr std::size_t kBlockBytes = 256 << 10;
constexpr int kGzipWindow = 15 + 16; // zlib's way to ask for gzip
constexpr int kLevel = 6;

// A small file that fills the memory is no trace: ours and Kineto's shrink to a tenth or a thirtieth.
constexpr std::size_t kAnyTrace = std::size_t{64} << 20;
constexpr std::size_t kMostRatio = 200;

} // namespace

struct GzipWriter::Stream {
    z_stream z{};
};

GzipWriter::GzipWriter(Sink sink) : sink_(std::move(sink)), stream_(std::make_unique<Stream>()), block_(kBlockBytes, '\0')
{
    if (deflateInit2(&stream_->z, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
}

GzipWriter::~GzipWriter() { deflateEnd(&stream_->z); }

void GzipWriter::write(std::string_view bytes) { deflate(bytes, Z_NO_FLUSH); }

void GzipWriter::finish() { deflate({}, Z_FINISH); }

void GzipWriter::deflate(std::string_view bytes, int flush)
{
    z_stream& z = stream_->z;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); // zlib does not write there
    z.avail_in = static_cast<uInt>(bytes.size());
    do {
        z.next_out = reinterpret_cast<Bytef*>(block_.data());
        z.avail_out = static_cast<uInt>(block_.size());
        ::deflate(&z, flush);
        sink_(std::string_view(block_).substr(0, block_.size() - z.avail_out));
    } while (z.avail_out == 0);
}

Expected<std::string> readMaybeGzip(const std::filesystem::path& file)
{
    // gzopen would read a folder as an empty file
    if (std::FILE* probe = std::fopen(file.c_str(), "rbe")) {
        char first = 0;
        errno = 0;
        (void)std::fread(&first, 1, 1, probe);
        const int error = std::ferror(probe) != 0 ? errno : 0;
        std::fclose(probe);
        if (error != 0) return readError(file, error);
    } else {
        return readError(file, errno);
    }

    const std::unique_ptr<gzFile_s, int (*)(gzFile)> input(gzopen(file.c_str(), "rbe"), &gzclose);
    if (!input) return readError(file, errno);
    std::string bytes;
    std::string block(kBlockBytes, '\0');
    for (;;) {
        const int got = gzread(input.get(), block.data(), static_cast<unsigned>(block.size()));
        int code = Z_OK;
        const char* reason = gzerror(input.get(), &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
            return Error{"cannot read " + file.string() + ": its compression is damaged or cut off (" + reason + ")"};
        if (got == 0) return bytes;
        if (bytes.size() > kAnyTrace && bytes.size() / kMostRatio > static_cast<std::size_t>(std::max<z_off_t>(1, gzoffset(input.get()))))
            return Error{"cannot read " + file.string() + ": it unpacks to more than " + std::to_string(kMostRatio) +
                         " times its size, which no trace does; if it is one, unpack it with gunzip first"};
        bytes.append(block, 0, static_cast<std::size_t>(got));
    }
}

} // namespace stagecraft::traces
