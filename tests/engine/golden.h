// SPDX-License-Identifier: Apache-2.0
//
// A golden schedule file: the order, and the figures that its comment lines state.
#pragma once

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace stagecraft::test {

struct Golden {
    std::string text;
    int ranks = 0;
    int microbatches = 0;
    int chunks = 0;
    double makespan = 0;
    double maxSpan = 0;
    double workPerRank = 0;
    double bubble = 0;
    double spanBubble = 0;
    std::vector<int> peakChunks; // per rank, in activations of one chunk
};

inline std::string fileText(const std::filesystem::path& file)
{
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline double numberAfter(const std::string& text, const std::string& label)
{
    const std::size_t at = text.find(label);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + label.size()));
}

inline Golden readGolden(const std::string& name)
{
    Golden golden;
    golden.text = fileText(std::filesystem::path(STAGECRAFT_TEST_DATA) / "schedules" / name);
    golden.ranks = static_cast<int>(numberAfter(golden.text, "ranks p="));
    golden.microbatches = static_cast<int>(numberAfter(golden.text, "micro-batches m="));
    golden.chunks = static_cast<int>(numberAfter(golden.text, "chunks per rank v="));
    golden.makespan = numberAfter(golden.text, "# makespan=");
    golden.maxSpan = numberAfter(golden.text, "max rank span=");
    golden.workPerRank = numberAfter(golden.text, "work per rank=");
    golden.bubble = numberAfter(golden.text, "(makespan-work)/makespan=");
    golden.spanBubble = numberAfter(golden.text, "span bubble=");
    std::smatch peaks;
    if (std::regex_search(golden.text, peaks, std::regex(R"(I:0\)=([0-9,]+))"))) {
        std::istringstream list(peaks[1].str());
        for (std::string item; std::getline(list, item, ',');) golden.peakChunks.push_back(std::stoi(item));
    }
    return golden;
}

// The lines that hold actions.
inline std::string withoutComments(const std::string& text)
{
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);)
        if (!line.empty() && line.front() != '#') out += line + '\n';
    return out;
}

} // namespace stagecraft::test
