// SPDX-License-Identifier: Apache-2.0
//
// A table for a terminal: columns as wide as their widest cell, numbers to the right.
//
//   Table table({{"rank", Align::Right}, {"cause", Align::Left}});
//   table.add({"0", "filling"});
//   std::string text = table.text();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::cli {

enum class Align : std::uint8_t { Left, Right };

struct Column {
    std::string title;
    Align align = Align::Left;
};

class Table {
public:
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); } // one per column
    // Indented by two, a line per row, titles first. Text of the last column goes on below itself where a line would be
    // longer than `width`.
    [[nodiscard]] std::string text(std::size_t width = kUnlimited) const;

    static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

// Of the terminal on standard output; Table::kUnlimited where it is none.
std::size_t terminalWidth();

// Columns that a text takes, counting each code point as one ("→" is 1).
std::size_t displayWidth(std::string_view text);

} // namespace stagecraft::cli
