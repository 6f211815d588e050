// SPDX-License-Identifier: Apache-2.0
//
// Lists in one text, such as "1,1,1.5,0.5".
//
//   Expected<std::vector<TimeNs>> times = parseList<TimeNs>("0,5ms", &parseDuration);
#pragma once

#include "traces/base/expected.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft::traces {

// Reads what stands between commas, blanks included, with parse(std::string_view) -> Expected<T>; ends with its first error. An empty
// text is one empty cell, as is what stands behind a last comma.
template <class T, class Parse>
Expected<std::vector<T>> parseList(std::string_view text, Parse parse)
{
    std::vector<T> list;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        Expected<T> value = parse(text.substr(begin, comma - begin));
        if (!value.ok()) return value.error();
        list.push_back(std::move(value).value());
        begin = comma + 1;
    }
    return list;
}

} // namespace stagecraft::traces
