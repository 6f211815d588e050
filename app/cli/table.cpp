// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"

#include <algorithm>
#include <sstream>

#include <sys/ioctl.h>
#include <unistd.h>

namespace stagecraft::cli {

std::size_t displayWidth(std::string_view text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; // every byte but UTF-8's continuations
    }));
}

namespace {

// Splits at blanks into lines of at most `width`; a longer word stands alone.
std::vector<std::string> wrapped(const std::string& text, std::size_t width)
{
    std::vector<std::string> lines{""};
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        std::string& line = lines.back();
        if (line.empty()) line = word;
        else if (displayWidth(line) + 1 + displayWidth(word) <= width) line += " " + word;
        else lines.push_back(word);
    }
    return lines;
}

} // namespace

std::size_t terminalWidth()
{
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : Table::kUnlimited;
}

std::string Table::text(std::size_t limit) const
{
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        width.push_back(displayWidth(columns_[c].title));
        for (const auto& row : rows_) width[c] = std::max(width[c], displayWidth(row[c]));
    }
    const std::size_t last = columns_.size() - 1;
    std::size_t lastBegin = 2;
    for (std::size_t c = 0; c < last; ++c) lastBegin += width[c] + 2;
    // too little room is not worth it: the terminal then breaks lines as it likes
    constexpr std::size_t kLeastRoom = 20;
    const bool wraps = limit != kUnlimited && limit >= lastBegin + kLeastRoom && columns_[last].align == Align::Left;
    if (wraps) width[last] = std::min(width[last], limit - lastBegin);

    std::string out;
    const auto appendCell = [&](std::size_t c, const std::string& cell) {
        const std::string padding(width[c] - std::min(width[c], displayWidth(cell)), ' ');
        out += "  ";
        out += columns_[c].align == Align::Right ? padding + cell : cell + padding;
    };
    const auto appendRow = [&](const std::vector<std::string>& cells) {
        for (std::size_t c = 0; c < last; ++c) appendCell(c, cells[c]);
        const auto lines = wraps ? wrapped(cells[last], width[last]) : std::vector<std::string>{cells[last]};
        for (std::size_t line = 0; line < lines.size(); ++line) {
            if (line > 0) out.append(lastBegin - 2, ' ');
            appendCell(last, lines[line]);
            out.erase(out.find_last_not_of(' ') + 1);
            out += '\n';
        }
    };
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    appendRow(titles);
    for (const auto& row : rows_) appendRow(row);
    return out;
}

} // namespace stagecraft::cli
