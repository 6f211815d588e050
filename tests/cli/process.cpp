// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stagecraft::cli::test {

namespace {

struct Pipe {
    Pipe()
    {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        read = ends[0];
        write = ends[1];
    }
    int read = -1;
    int write = -1;
};

void close(int& descriptor)
{
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
}

// Appends what can be read; closes the descriptor at its end.
void drain(int& descriptor, std::string& text)
{
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    else if (count == 0 || errno != EINTR) close(descriptor);
}

} // namespace

Process::Process(const std::vector<std::string>& command)
{
    Pipe input;
    Pipe output;
    Pipe error;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, error.write, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    close(input.read);
    close(output.write);
    close(error.write);
    input_ = input.write;
    output_ = output.read;
    error_ = error.read;
    if (failed != 0) throw std::system_error(failed, std::generic_category(), command[0]);
}

Process::~Process()
{
    close(input_);
    close(output_);
    close(error_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { ::kill(pid_, number); }

void Process::send(const std::string& input) const
{
    std::signal(SIGPIPE, SIG_IGN); // a program may end without reading its input
    for (std::size_t sent = 0; sent < input.size();) {
        const ssize_t count = ::write(input_, input.data() + sent, input.size() - sent);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
    }
}

void Process::awaitOutput(const std::string& text)
{
    while (output_ >= 0 && printed_.find(text) == std::string::npos) drain(output_, printed_);
}

Output Process::finish(std::chrono::seconds timeout)
{
    close(input_);

    Output result{.out = std::move(printed_)};
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (output_ >= 0 || error_ >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        std::array<pollfd, 2> ready{pollfd{output_, POLLIN, 0}, pollfd{error_, POLLIN, 0}}; // poll passes over -1
        if (left.count() <= 0 || ::poll(ready.data(), ready.size(), static_cast<int>(left.count())) == 0) {
            ::kill(pid_, SIGKILL);
            throw std::runtime_error("the program did not end in time; so far it said:\n" + result.out + result.err);
        }
        if (ready[0].revents != 0) drain(output_, result.out);
        if (ready[1].revents != 0) drain(error_, result.err);
    }
    int status = 0;
    rusage used{};
    ::wait4(pid_, &status, 0, &used);
    pid_ = -1;
    result.mostKiB = used.ru_maxrss;
    result.exitCode = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

std::string program()
{
    const char* path = std::getenv("STAGECRAFT_CLI");
    if (path == nullptr) throw std::runtime_error("STAGECRAFT_CLI must name the program under test; ctest sets it");
    return path;
}

Output stagecraft(const std::vector<std::string>& arguments)
{
    std::vector<std::string> command{program()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Process(command).finish();
}

Output shell(const std::string& line) { return Process({"/bin/sh", "-c", "CLI='" + program() + "'; " + line}).finish(); }

} // namespace stagecraft::cli::test
