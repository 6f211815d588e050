// SPDX-License-Identifier: Apache-2.0
//
// The rules that keep the layers apart, checked on the text of one file: which headers it may include by where it lies, and
// that it says its licence. app -> ui -> engine -> traces, ui -> traces, runtime -> engine; nothing below ui knows Qt, and
// LibTorch, CUDA, CUPTI and NCCL stay inside the units of the live engine.
//
//   faultsOf("traces/store/trace.h", "#include <QString>\n...")  ->  {"traces/store/trace.h:1: includes <QString>: ..."}
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::tests {

// `path` is relative to the repository's root, with '/'. Each fault names file, line and rule.
std::vector<std::string> faultsOf(std::string_view path, std::string_view content);

// Source, build and script files: those that the rules are about.
bool isSource(std::string_view path);

} // namespace stagecraft::tests
