// SPDX-License-Identifier: Apache-2.0
//
// Starts programs and reads what they print: the command line is tested through its real binary.
//
//   const Output out = stagecraft({"simulate", "--json"});
//   EXPECT_EQ(out.exitCode, 0);
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace stagecraft::cli::test {

struct Output {
    int exitCode = -1; // 128 + signal where a signal ended it, as a shell says it
    std::string out = {};
    std::string err = {};
    long mostKiB = 0; // of memory that it had at a time
};

// A running program. Its output is collected by finish(), which also ends it when the time is over.
class Process {
public:
    explicit Process(const std::vector<std::string>& command);
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();

    void signal(int number) const;
    void send(const std::string& input) const; // to its standard input
    void awaitOutput(const std::string& text); // until it has printed this, or nothing more comes; finish() has it all
    Output finish(std::chrono::seconds timeout = std::chrono::seconds(120)); // closes its standard input

private:
    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    int error_ = -1;
    std::string printed_; // read from its standard output so far
};

// The binary under test.
std::string program();

Output stagecraft(const std::vector<std::string>& arguments);

// A line for /bin/sh in which $CLI is the binary: for redirections and pipes.
Output shell(const std::string& line);

} // namespace stagecraft::cli::test
