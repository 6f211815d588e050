// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_list.h"

#include "engine/plan/plan_words.h"
#include "traces/base/parse_list.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <charconv>

namespace stagecraft::engine {

using traces::Error;
using traces::Expected;

std::string gpusText(const std::vector<int>& gpus)
{
    std::string text;
    for (const int gpu : gpus) text += fmt::format("{}{}", text.empty() ? "" : ", ", gpu == kOnCpu ? std::string(kCpuWord) : std::to_string(gpu));
    return text;
}

Expected<std::vector<int>> parseGpus(std::string_view text)
{
    if (text.empty()) return std::vector<int>{};
    return traces::parseList<int>(text, [](std::string_view cell) -> Expected<int> {
        const std::string_view word = traces::trimmed(cell);
        if (word == kCpuWord) return kOnCpu;
        int number = -1;
        const auto [end, wrong] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (wrong != std::errc() || end != word.data() + word.size() || number < 0 || number >= kMostGpus)
            return Error{fmt::format("'{}' is not allowed; for each rank the number of a GPU from 0 to {}, or {}: 0,0,1,cpu", word, kMostGpus - 1, kCpuWord)};
        return number;
    });
}

} // namespace stagecraft::engine
