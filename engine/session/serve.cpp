// SPDX-License-Identifier: Apache-2.0
#include "engine/session/serve.h"

#include "engine/session/session_message.h"
#include "traces/format/journal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stagecraft::engine {

namespace {

// Where the signal handler leaves word; -1 before the first serve(). Never closed: a handler that began in another thread
// may come to its write after serve() has returned, and the number would belong to another file by then.
std::atomic<int> signalFd{-1};

void onSignal(int)
{
    const int saved = errno;
    const std::uint64_t one = 1;
    static_cast<void>(!write(signalFd.load(), &one, sizeof one));
    errno = saved;
}

class Signals {
public:
    Signals()
    {
        if (signalFd.load() < 0) signalFd.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        std::uint64_t ofAnEarlierCall = 0;
        static_cast<void>(!read(fd(), &ofAnEarlierCall, sizeof ofAnEarlierCall));
        take(SIGTERM, onSignal, oldTerm_);
        take(SIGINT, onSignal, oldInt_);
        take(SIGPIPE, SIG_IGN, oldPipe_);
    }
    ~Signals()
    {
        sigaction(SIGTERM, &oldTerm_, nullptr);
        sigaction(SIGINT, &oldInt_, nullptr);
        sigaction(SIGPIPE, &oldPipe_, nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    [[nodiscard]] static int fd() { return signalFd.load(); }

private:
    static void take(int signal, void (*handler)(int), struct sigaction& old)
    {
        struct sigaction action = {};
        action.sa_handler = handler;
        sigaction(signal, &action, &old);
    }

    struct sigaction oldTerm_ = {};
    struct sigaction oldInt_ = {};
    struct sigaction oldPipe_ = {};
};

enum class End {
    None,
    Asked, // what is left is written, as long as someone reads
    ReaderGone,
    Failed,
};

// Commands in a file are all there are, and the run that they start goes on to its end; the end of a pipe says that whoever
// gave commands is gone.
bool isFile(int descriptor)
{
    struct stat status = {};
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

class Server {
public:
    Server(Session& session, int input, int output, int signals, std::chrono::milliseconds patience)
        : session_(session), input_(input), output_(output), signals_(signals), patience_(patience),
          journal_([this](std::string_view bytes) { writeAll(bytes); })
    {
    }

    int run()
    {
        while (end_ == End::None) {
            // While a run goes on its records set the pace, and commands are looked for in between; else commands do.
            const bool live = going();
            if (!live) {
                passOn(); // what came with a run's end; the next command may be long in coming
                if (input_ == kNone || !session_.spent().empty()) break;
            }
            readCommands(live ? 0 : -1);
            if (end_ == End::None && live) session_.waitForRecords(kPace);
            passOn();
        }
        session_.stop();
        while (going()) {
            session_.waitForRecords(kPace);
            passOn();
        }
        passOn();
        if (end_ == End::Failed) return 1;
        return session_.spent().empty() ? 0 : kSpentStatus;
    }

private:
    static constexpr std::chrono::milliseconds kPace{10};
    static constexpr int kNone = -1; // a descriptor that poll() passes over

    [[nodiscard]] bool going() const
    {
        return session_.state() != SessionState::Idle && !finished(session_.state());
    }

    void readCommands(int timeoutMs)
    {
        std::array<pollfd, 2> ready{{{input_, POLLIN, 0}, {signals_, POLLIN, 0}}};
        if (poll(ready.data(), ready.size(), timeoutMs) < 0) {
            if (errno != EINTR) fail("waiting for commands");
            return;
        }
        if (ready[1].revents != 0) {
            end_ = End::Asked;
            return;
        }
        if (ready[0].revents == 0) return;
        std::array<char, 4096> buffer{};
        const ssize_t count = read(input_, buffer.data(), buffer.size());
        if (count < 0) {
            if (errno != EINTR && errno != EAGAIN) fail("reading commands");
            return;
        }
        if (count == 0) {
            if (!isFile(input_)) {
                end_ = End::Asked;
                return;
            }
            input_ = kNone;
            if (!pending_.empty()) obey(std::exchange(pending_, {})); // a last line without its end
            return;
        }
        pending_.append(buffer.data(), static_cast<std::size_t>(count));
        for (std::size_t stop = 0; end_ == End::None && (stop = pending_.find('\n')) != std::string::npos;) {
            const std::string line = pending_.substr(0, stop);
            pending_.erase(0, stop + 1);
            if (!line.empty()) obey(line);
        }
    }

    void obey(const std::string& line)
    {
        const Expected<SessionCommand> command = readCommand(line);
        if (!command.ok()) {
            complain("command not understood: " + command.error().message);
            if (asksForRun(line)) sayThatNoRunBegins();
            return;
        }
        switch (command.value().kind) {
        case CommandKind::Start:
            if (const auto started = session_.start(command.value().plan); started.ok()) {
                stages_ = command.value().plan.stages();
            } else {
                complain(started.error().message);
                sayThatNoRunBegins();
            }
            break;
        case CommandKind::Pause: session_.pause(); break;
        case CommandKind::Resume: session_.resume(); break;
        case CommandKind::Stop: session_.stop(); break;
        case CommandKind::Trouble: trouble(command.value().trouble); break;
        case CommandKind::Quit: end_ = End::Asked; break;
        }
    }

    // Without a run there is no stage to be in trouble, which whoever sends it as the run ends cannot know.
    void trouble(const StageTrouble& trouble)
    {
        if (going() && trouble.stage >= stages_)
            return complain("trouble: there is no stage " + std::to_string(trouble.stage) + "; the run's plan has stages 0 to " + std::to_string(stages_ - 1));
        session_.trouble(trouble);
    }

    void say(const SessionMessage& message)
    {
        passOn(); // keeps the order
        journal_.write(traces::SessionRecord{writeMessage(message)});
    }

    // Whoever waits for the run's end must hear that there is none; a run that goes on keeps its own state.
    void sayThatNoRunBegins() { say(StateMessage{going() ? session_.state() : SessionState::Failed}); }

    void complain(const std::string& text)
    {
        FailureMessage failure;
        failure.text = text;
        say(failure);
    }

    void passOn()
    {
        const std::vector<traces::Record> records = session_.takeRecords();
        if (!records.empty()) journal_.write(records);
    }

    // In pieces that a ready pipe takes without blocking, so that a reader who stopped reading cannot keep this process
    // from noticing that it is to end. From then on the reader has `patience_` for each piece: a slow one gets all of it, one
    // that hangs keeps nobody.
    void writeAll(std::string_view bytes)
    {
        while (!bytes.empty() && end_ != End::ReaderGone && end_ != End::Failed) {
            const bool ending = end_ == End::Asked;
            std::array<pollfd, 3> ready{
                {{output_, POLLOUT, 0}, {ending ? kNone : input_, 0, 0}, {ending ? kNone : signals_, POLLIN, 0}}};
            const int count = poll(ready.data(), ready.size(), ending ? static_cast<int>(patience_.count()) : -1);
            if (count < 0) {
                if (errno != EINTR) fail("waiting to write the journal");
                continue;
            }
            if ((ready[0].revents & POLLOUT) == 0) { // error, hang-up, time-out, or the others have news
                end_ = count == 0 || ready[0].revents != 0 ? End::ReaderGone : End::Asked;
                continue;
            }
            writePiece(bytes);
        }
    }

    void writePiece(std::string_view& bytes)
    {
        const ssize_t count = write(output_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
        if (count >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EPIPE) {
            end_ = End::ReaderGone;
        } else if (errno != EINTR && errno != EAGAIN) {
            fail("writing the journal");
        }
    }

    void fail(const char* doing)
    {
        std::fprintf(stderr, "worker: %s failed: %s\n", doing, std::strerror(errno));
        end_ = End::Failed;
    }

    Session& session_;
    int input_;
    int output_;
    int signals_;
    std::chrono::milliseconds patience_;
    int stages_ = 0; // of the plan that runs
    End end_ = End::None; // before journal_: its magic bytes are written on construction
    std::string pending_;
    traces::JournalWriter journal_;
};

} // namespace

int serve(Session& session, int inputFd, int outputFd, std::chrono::milliseconds patience)
{
    const Signals signals;
    return Server(session, inputFd, outputFd, Signals::fd(), patience).run();
}

int serveStandardStreams(Session& session)
{
    std::fflush(stdout);
    const int output = dup(STDOUT_FILENO);
    if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        std::fprintf(stderr, "worker: standard output cannot be set aside: %s\n", std::strerror(errno));
        return 1;
    }
    const int code = serve(session, STDIN_FILENO, output);
    close(output);
    return code;
}

} // namespace stagecraft::engine
