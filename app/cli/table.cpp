// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"

#include <algorithm>

namespace stagecraft::cli {

std::size_t displayWidth(std::string_view text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; // every byte but UTF-8's continuations
    }));
}

std::string Table::text() const
{
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        width.push_back(displayWidth(columns_[c].title));
        for (const auto& row : rows_) width[c] = std::max(width[c], displayWidth(row[c]));
    }

    std::string out;
    const auto appendCell = [&](std::size_t c, const std::string& cell) {
        const std::string padding(width[c] - displayWidth(cell), ' ');
        out += "  ";
        out += columns_[c].align == Align::Right ? padding + cell : cell + padding;
    };
    const auto endLine = [&] {
        out.erase(out.find_last_not_of(' ') + 1);
        out += '\n';
    };
    for (std::size_t c = 0; c < columns_.size(); ++c) appendCell(c, columns_[c].title);
    endLine();
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < columns_.size(); ++c) appendCell(c, row[c]);
        endLine();
    }
    return out;
}

} // namespace stagecraft::cli
