// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_list.h"

#include "engine/plan/plan_words.h"

#include <fmt/format.h>

#include <algorithm>
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
    std::vector<int> gpus;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        std::string_view word = text.substr(0, comma);
        while (word.starts_with(' ')) word.remove_prefix(1);
        while (word.ends_with(' ')) word.remove_suffix(1);
        int number = kOnCpu;
        const auto [end, wrong] = std::from_chars(word.data(), word.data() + word.size(), number);
        const bool numbered = wrong == std::errc() && end == word.data() + word.size() && number >= 0 && number < kMostGpus;
        if (!numbered && word != kCpuWord)
            return Error{fmt::format("'{}' is not allowed; for each rank the number of a GPU from 0 to {}, or {}: 0,0,1,cpu", word, kMostGpus - 1, kCpuWord)};
        gpus.push_back(numbered ? number : kOnCpu);
        if (comma < text.size() && comma + 1 == text.size()) return Error{"nothing comes after the last comma"};
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return gpus;
}

} // namespace stagecraft::engine
