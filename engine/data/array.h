// SPDX-License-Identifier: Apache-2.0
//
// Numbers that a file held: a shape, and the values row by row. Plain value.
//
//   const Array images = readIdx(bytes).value();
//   images.rows() == 60'000, images.rowSize() == 28 * 28
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

namespace stagecraft::engine {

struct Array {
    std::vector<std::int64_t> shape;
    // As the file had them: bytes without a sign, whole numbers of any other size, or numbers with a point.
    std::variant<std::vector<std::uint8_t>, std::vector<std::int64_t>, std::vector<float>> values;

    [[nodiscard]] std::int64_t rows() const { return shape.empty() ? 0 : shape.front(); }
    [[nodiscard]] std::int64_t rowSize() const
    {
        std::int64_t size = 1;
        for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
        return size;
    }
    [[nodiscard]] bool whole() const { return !std::holds_alternative<std::vector<float>>(values); }

    bool operator==(const Array&) const = default;
};

} // namespace stagecraft::engine
