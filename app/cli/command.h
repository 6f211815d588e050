// SPDX-License-Identifier: Apache-2.0
//
// What all verbs of the command line share: exit codes, and the three ways to end. Each verb lives in one file, which adds
// it to the program and leaves its work to be called once the whole line has been understood:
//
//   void addList(CLI::App& program, Work& work)
//   {
//       CLI::App& verb = addVerb(program, "list", "...", "stagecraft-cli list plans");
//       verb.callback([&work] { work = [] { return print("..."); }; });
//   }
#pragma once

#include "traces/base/expected.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace stagecraft::cli {

using traces::Error;
using traces::Expected;

enum ExitCode : int {
    kDone = 0,
    kFailed = 1,   // the work failed; the reason is on standard error
    kWrongUse = 2, // the command line was wrong
};

using Work = std::function<int()>; // returns an ExitCode

// A verb with its help; `example` is one or more lines that can be typed as they stand.
CLI::App& addVerb(CLI::App& program, const std::string& name, const std::string& description, const std::string& example);

// --json, which takes no value.
void addJsonFlag(CLI::App& verb, bool& json);

// Writes to standard output: kDone, or kFailed with a message where it cannot be written (full disk, closed pipe).
int print(std::string_view text);
void warn(std::string_view message); // on standard error, with the program's name, in UTF-8, and nothing that a terminal obeys
int failed(const Error& error);   // says why on standard error; kFailed
int wrongUse(const Error& error); // the same; kWrongUse

} // namespace stagecraft::cli
