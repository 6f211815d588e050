// SPDX-License-Identifier: Apache-2.0
//
// Tensors in a file of the safetensors format (github.com/huggingface/safetensors), so that others can read what was trained here:
//
//   8 bytes    N, little-endian
//   N bytes    {"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...} and blanks
//   the rest   the data, row by row; offsets count from here, and leave no byte out
//
// A file may come from anywhere. Nothing in it is believed: every size is checked against the file before memory is taken for it,
// and what the format forbids (holes, overlaps, names given twice, bytes at the end) is an error that names the file and the tensor.
//
//   Expected<void> written = writeTensorFile("model.safetensors", {{{"w", TensorType::F32, {2, 3}}, values.data()}});
//   Expected<TensorFile> file = TensorFile::open("model.safetensors");
//   file.value().tensors().at("w").shape;                        // {2, 3}
//   file.value().read("w", std::as_writable_bytes(std::span(values)));
#pragma once

#include "traces/base/expected.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

using traces::Error;
using traces::Expected;

// By the size of an element, so that the larger ones come first in a file and all are aligned.
enum class TensorType : std::uint8_t { F64, I64, U64, F32, I32, U32, F16, BF16, I16, U16, I8, U8, Bool };
std::string_view typeText(TensorType type); // "F32"
std::int64_t elementBytes(TensorType type);

struct TensorInfo {
    std::string name;
    TensorType type = TensorType::F32;
    std::vector<std::int64_t> shape; // empty: a scalar

    bool operator==(const TensorInfo&) const = default;
};
std::string describe(const TensorInfo& info); // "F32 [2, 3]"

struct TensorData {
    TensorInfo info;
    const void* data = nullptr; // row by row, without gaps; not owned
};

// On the disk when it returns. Precondition: no name is given twice, or is "__metadata__".
Expected<void> writeTensorFile(const std::filesystem::path& file, std::vector<TensorData> tensors);

class TensorFile {
public:
    // Reads the header. The file stays open.
    static Expected<TensorFile> open(const std::filesystem::path& file);

    TensorFile(TensorFile&& other) noexcept;
    TensorFile& operator=(TensorFile&& other) noexcept;
    TensorFile(const TensorFile&) = delete;
    TensorFile& operator=(const TensorFile&) = delete;
    ~TensorFile();

    struct Entry {
        TensorInfo info;
        std::int64_t begin = 0; // in the data
        std::int64_t end = 0;
    };
    [[nodiscard]] const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    // Precondition: there is such a tensor, and `to` is as large as it. Any thread; several at a time.
    [[nodiscard]] Expected<void> read(std::string_view name, std::span<std::byte> to) const;

private:
    TensorFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
    Expected<void> readHeader();

    std::filesystem::path path_;
    int descriptor_ = -1;
    std::int64_t dataBegin_ = 0; // in the file
    std::map<std::string, Entry, std::less<>> tensors_;
};

} // namespace stagecraft::engine
