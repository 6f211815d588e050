// SPDX-License-Identifier: Apache-2.0
#include "tests/layering/tree_rules.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace stagecraft::tests {

namespace {

bool beginsWithOneOf(std::string_view text, std::initializer_list<std::string_view> beginnings)
{
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view begin) { return text.starts_with(begin); });
}

bool isCxx(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".cu"); }

// <QWidget>, <QtWidgets/QWidget>, <qcustomplot.h>
bool isQt(std::string_view header)
{
    const bool qClass = header.size() > 1 && header[0] == 'Q' && std::isalpha(static_cast<unsigned char>(header[1])) != 0;
    return qClass || beginsWithOneOf(header, {"qcustomplot", "qt", "private/q"});
}

bool isDevice(std::string_view header)
{
    return beginsWithOneOf(header,
                           {"torch/", "ATen/", "c10/", "caffe2/", "cuda", "cupti", "nccl", "nvToolsExt", "nvtx", "mpi.h"});
}

bool isLiveEngine(std::string_view path)
{
    return beginsWithOneOf(path, {"engine/runtime/", "engine/probe/", "engine/transport/"});
}

bool usesWindow(std::string_view path) { return beginsWithOneOf(path, {"ui/", "app/desktop/", "tests/ui/", "bench/"}); }

// Why a file at `path` must not include `header`; empty where it may.
std::string_view whyForbidden(std::string_view path, std::string_view header)
{
    if (isQt(header) && !usesWindow(path)) return "Qt stays in ui/ and app/desktop/";
    if (isDevice(header)) {
        if (!isLiveEngine(path) && !beginsWithOneOf(path, {"tests/runtime/", "tests/gpu/", "bench/"})) {
            return "LibTorch, CUDA, CUPTI, NCCL and MPI stay in engine/runtime, engine/probe and engine/transport";
        }
        if (isLiveEngine(path) && path.ends_with(".h") && !path.ends_with("_torch.h") && !path.ends_with("_cupti.h")) {
            return "headers of LibTorch, CUDA, CUPTI, NCCL and MPI belong in .cpp files, or in a private *_torch.h or *_cupti.h";
        }
    }
    if (header.starts_with("CLI/") && !path.starts_with("app/")) return "CLI11 stays in app/";

    if (path.starts_with("traces/") && beginsWithOneOf(header, {"engine/", "ui/", "app/"}))
        return "traces is the ground floor";
    if (path.starts_with("engine/")) {
        if (beginsWithOneOf(header, {"ui/", "app/"})) return "the engine does not know what uses it";
        if (isLiveEngine(header) && !isLiveEngine(path))
            return "plan, schedule and simulation build without the live engine";
    }
    if (path.starts_with("ui/") && header.starts_with("app/")) return "the window does not know its program";
    if (beginsWithOneOf(path, {"ui/", "app/desktop/"}) && isLiveEngine(header)) {
        return "the desktop reaches the live engine through a worker process alone";
    }
    if (path.starts_with("app/cli/") && header.starts_with("ui/")) return "the command line builds without Qt";
    return {};
}

// The header's name where the line is an #include.
std::string_view includedHeader(std::string_view line)
{
    const auto skipBlanks = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skipBlanks();
    if (!line.starts_with('#')) return {};
    line.remove_prefix(1);
    skipBlanks();
    if (!line.starts_with("include")) return {};
    line.remove_prefix(7);
    skipBlanks();
    if (line.empty() || (line[0] != '<' && line[0] != '"')) return {};
    const std::size_t end = line.find(line[0] == '<' ? '>' : '"', 1);
    return end == std::string_view::npos ? std::string_view{} : line.substr(1, end - 1);
}

std::string licenceFault(std::string_view path, std::string_view content)
{
    constexpr std::string_view kMark = "SPDX-License-Identifier: ";
    // the first line, or the second of a script
    const std::size_t firstEnd = content.find('\n');
    std::string_view head = content.substr(0, firstEnd);
    if (head.starts_with("#!") && firstEnd != std::string_view::npos) {
        head = content.substr(firstEnd + 1, content.find('\n', firstEnd + 1) - firstEnd - 1);
    }
    const std::size_t mark = head.find(kMark);
    if (mark == std::string_view::npos) return std::string(path) + ":1: has no SPDX-License-Identifier in its first line";

    const std::string_view licence = head.substr(mark + kMark.size());
    const bool linksWindow = beginsWithOneOf(path, {"ui/", "app/desktop/", "tests/ui/"});
    const std::string_view expected = linksWindow ? "GPL-3.0-or-later" : "Apache-2.0";
    const bool mixed = path.starts_with("bench/") || !isCxx(path); // may go either way
    if (licence == expected || (mixed && (licence == "Apache-2.0" || licence == "GPL-3.0-or-later"))) return {};
    return std::string(path) + ":1: says '" + std::string(licence) + "'; files here are " + std::string(expected);
}

} // namespace

bool isSource(std::string_view path)
{
    if (isCxx(path)) return true;
    if (path == "run" || path == "test" || path == ".ci/run") return true;
    return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake") || path.ends_with(".sh") || path.ends_with(".py");
}

std::vector<std::string> faultsOf(std::string_view path, std::string_view content)
{
    std::vector<std::string> faults;
    if (std::string fault = licenceFault(path, content); !fault.empty()) faults.push_back(std::move(fault));
    if (!isCxx(path)) return faults;

    int number = 0;
    for (std::size_t begin = 0; begin < content.size();) {
        const std::size_t end = std::min(content.find('\n', begin), content.size());
        ++number;
        const std::string_view header = includedHeader(content.substr(begin, end - begin));
        if (const std::string_view why = header.empty() ? std::string_view{} : whyForbidden(path, header); !why.empty()) {
            faults.push_back(std::string(path) + ":" + std::to_string(number) + ": includes <" + std::string(header) +
                             ">: " + std::string(why));
        }
        begin = end + 1;
    }
    return faults;
}

} // namespace stagecraft::tests
