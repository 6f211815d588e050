// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/clock_alignment.h"
#include "engine/transport/life_line.h"
#include "engine/transport/post_office.h"
#include "engine/transport/process_group.h"
#include "tests/runtime/tcp_ports.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stagecraft::runtime {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

struct Pair {
    explicit Pair(NetKind kind) : net(makeNet(kind, 2)) {}

    std::unique_ptr<Net> net;
    std::unique_ptr<MessagePort> ports[2]{net->port(0), net->port(1)};
    PostOffice first{*ports[0], {}};
    PostOffice second{*ports[1], {}};
};

class PostOfficeOver : public testing::TestWithParam<NetKind> {};
INSTANTIATE_TEST_SUITE_P(Ports, PostOfficeOver, testing::Values(NetKind::Memory, NetKind::Tcp), netName);

TEST_P(PostOfficeOver, BringsATextAndItsBodies)
{
    Pair pair(GetParam());
    const auto kept = std::make_shared<const std::string>(100'000, 'x');
    pair.first.send(1, MailKind::Part, "hello", {bytesOf(*kept), {}}, kept);
    std::optional<Mail> mail;
    pair.second.waitUntil([&] { return (mail = pair.second.find(MailKind::Part, 0)).has_value(); });
    EXPECT_EQ(mail->text, "hello");
    EXPECT_EQ(mail->bodies, (std::vector<std::string>{*kept, ""}));
    EXPECT_FALSE(pair.second.find(MailKind::Part)); // once
    pair.first.waitUntil([&] { return pair.first.allSent(); });
    EXPECT_EQ(kept.use_count(), 1); // let go
}

TEST_P(PostOfficeOver, KeepsTheOrderOfOneSenderAndItsKind)
{
    Pair pair(GetParam());
    for (int i = 0; i < 100; ++i) pair.first.send(1, i % 2 == 0 ? MailKind::Report : MailKind::Go, std::to_string(i));
    for (int i = 0; i < 100; ++i) {
        std::optional<Mail> mail;
        pair.second.waitUntil([&] { return (mail = pair.second.find(i % 2 == 0 ? MailKind::Report : MailKind::Go)).has_value(); });
        EXPECT_EQ(mail->text, std::to_string(i));
    }
}

// What is large is done only once the test lets it.
struct LatePair {
    explicit LatePair(NetKind kind) : net(makeNet(kind, 2)) {}

    std::atomic<bool> let{false};
    std::unique_ptr<Net> net;
    std::unique_ptr<MessagePort> port = net->port(0);
    LatePort latePort{net->port(1), [this](const LatePort::Asked& asked) { return asked.bytes > 1000 && !let; }};
    PostOffice first{*port, {}};
    PostOffice second{latePort, {}};

    void lookOften()
    {
        for (int i = 0; i < 10; ++i) second.look();
    }
};

TEST_P(PostOfficeOver, LetsNothingOvertakeALargeBodyOfTheSameSender)
{
    LatePair pair(GetParam());
    const std::string large(100'000, 'x');
    pair.first.send(1, MailKind::Checked, "first", {bytesOf(large)});
    pair.first.send(1, MailKind::Checked, "second", {bytesOf("small")});
    pair.first.send(1, MailKind::Go, "third");
    pair.lookOften();
    EXPECT_FALSE(pair.second.find(MailKind::Go)); // nor another kind
    EXPECT_FALSE(pair.second.find(MailKind::Checked));
    pair.let = true;
    std::vector<std::optional<Mail>> mail(3);
    pair.second.waitUntil([&] { return (mail[2] = pair.second.find(MailKind::Go)).has_value(); });
    for (int i = 0; i < 2; ++i) mail[static_cast<std::size_t>(i)] = pair.second.find(MailKind::Checked);
    ASSERT_TRUE(mail[0] && mail[1]);
    EXPECT_EQ(mail[0]->text, "first");
    EXPECT_EQ(mail[0]->bodies, std::vector<std::string>{large});
    EXPECT_EQ(mail[1]->text, "second");
    EXPECT_EQ(mail[1]->bodies, std::vector<std::string>{"small"});
}

// MPI announces a long head before it has it; its sender may die in between, and then somebody has to see that.
TEST_P(PostOfficeOver, DoesNotStandStillForAHeadThatIsUnderWay)
{
    LatePair pair(GetParam());
    const std::string longText(5000, 't');
    pair.first.send(1, MailKind::Checked, longText, {bytesOf("of the long one")});
    pair.first.send(1, MailKind::Checked, "short", {bytesOf("of the short one")});
    pair.lookOften();
    EXPECT_FALSE(pair.second.find(MailKind::Checked));
    pair.let = true;
    for (const std::string body : {"of the long one", "of the short one"}) {
        std::optional<Mail> mail;
        pair.second.waitUntil([&] { return (mail = pair.second.find(MailKind::Checked)).has_value(); });
        EXPECT_EQ(mail->bodies, std::vector<std::string>{body});
    }
}

struct Listener final : PostOffice::Receiver {
    void arrived(int, MailKind, const std::string& text, const std::shared_ptr<void>&) override
    {
        heard += text;
        ++count;
    }
    std::string heard;
    std::atomic<int> count{0};
};

TEST_P(PostOfficeOver, HandsOverWhatCameBeforeSomebodyListened)
{
    Pair pair(GetParam());
    Listener listener;
    pair.first.send(1, MailKind::End, "a");
    pair.second.waitUntil([&] { return pair.first.allSent(); });
    pair.second.look();
    pair.second.subscribe(MailKind::End, &listener);
    pair.first.send(1, MailKind::End, "b"); // the office's own thread brings it
    while (listener.count < 2) std::this_thread::yield();
    EXPECT_EQ(listener.heard, "ab");
    pair.second.subscribe(MailKind::End, nullptr);
    pair.first.send(1, MailKind::End, "c");
    std::optional<Mail> mail;
    pair.second.waitUntil([&] { return (mail = pair.second.find(MailKind::End)).has_value(); });
    EXPECT_EQ(listener.count, 2);
}

struct Poor final : PostOffice::Receiver {
    std::shared_ptr<void> prepare(int, std::string_view, std::span<const std::size_t>, std::vector<std::span<std::byte>>&) override { throw std::bad_alloc(); }
    void arrived(int, MailKind, const std::string&, const std::shared_ptr<void>&) override { FAIL(); }
    void refused(int from, const std::exception_ptr&) override { refusedFrom = from; }
    std::atomic<int> refusedFrom{-1};
};

TEST_P(PostOfficeOver, TellsWhereThereIsNoRoomAndGoesOn)
{
    Pair pair(GetParam());
    Poor poor;
    pair.second.subscribe(MailKind::Boundary, &poor);
    const auto kept = std::make_shared<const std::string>("body");
    pair.first.send(1, MailKind::Boundary, "", {bytesOf(*kept)}, kept);
    pair.first.send(1, MailKind::Go, "after");
    std::optional<Mail> mail;
    pair.second.waitUntil([&] { return (mail = pair.second.find(MailKind::Go)).has_value() && poor.refusedFrom == 0; });
    pair.second.subscribe(MailKind::Boundary, nullptr);
}

// What MPI says once the process at the other end is gone.
class CutPort final : public MessagePort {
public:
    [[nodiscard]] int rank() const override { return 0; }
    [[nodiscard]] int size() const override { return 2; }
    Ticket send(int, Channel, std::span<const std::byte>) override { throw std::runtime_error("the peer is gone"); }
    Ticket receive(int, Channel, std::span<std::byte>) override { return 0; }
    bool done(Ticket) override { return false; }
    std::optional<Arriving> arriving() override { return std::nullopt; }
    void finish() override {}
};

TEST(PostOffice, OutlivesABreakdownAndTellsWhy)
{
    CutPort port;
    std::atomic<bool> told{false};
    PostOffice office(port, {}, [&](std::chrono::microseconds, PostOffice::Health health) { told = told || health == PostOffice::Health::BrokenDown; });
    EXPECT_TRUE(office.breakdown().empty());
    office.send(1, MailKind::Go, "");
    office.send(1, MailKind::Go, "");
    EXPECT_EQ(office.breakdown(), "the peer is gone");
    while (!told) std::this_thread::yield();
}

TEST(ClockAlignment, TakesTheQuickestAnswer)
{
    ClockAlignment alignment;
    EXPECT_EQ(alignment.offset(), 0);
    // theirs is 1000 behind; the way there takes 30, the way back 10: the middle is off by 10, and less than half of the round trip
    alignment.add({.asked = 5000, .theirs = 4030, .heard = 5040});
    EXPECT_EQ(alignment.offset(), 990);
    EXPECT_EQ(alignment.error(), 20);
    alignment.add({.asked = 6000, .theirs = 5400, .heard = 6900}); // somebody else had the core
    EXPECT_EQ(alignment.offset(), 990);
    alignment.add({.asked = 7000, .theirs = 6003, .heard = 7005});
    EXPECT_EQ(alignment.offset(), 999);
    EXPECT_EQ(alignment.error(), 3);
    EXPECT_EQ(alignment.theirs(), 6003);
}

// The kernel closes the connection of a process that is killed, and rank 0 hears of it; it tells the others.
TEST(LifeLine, TellsWhoWasKilled)
{
    LifeLine first{LifeLine::Listen{}};
    ASSERT_FALSE(first.invitation().empty());
    std::atomic<int> lost{-1};
    std::atomic<bool> stop{false};
    std::jthread watching([&] {
        while (!stop) first.watch(200us, [&](int rank) { lost = rank; });
    });
    const pid_t child = ::fork();
    if (child == 0) {
        const LifeLine line(LifeLine::Join{first.invitation(), 2});
        ::pause();
        ::_exit(0);
    }
    LifeLine third{LifeLine::Join{first.invitation(), 3}};
    EXPECT_EQ(third.connections(), 1);
    while (first.connections() < 2) std::this_thread::yield();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    int told = -1;
    while (told < 0) third.watch(1000us, [&](int rank) { told = rank; });
    EXPECT_EQ(told, 2);
    stop = true;
    watching.join(); // the others are told before one's own side is
    EXPECT_EQ(lost, 2);
}

TEST(LifeLine, IsNotAlarmedByOneThatLeaves)
{
    LifeLine first{LifeLine::Listen{}};
    int lost = -1;
    std::atomic<bool> joined{false};
    std::jthread other([&] {
        LifeLine line(LifeLine::Join{first.invitation(), 1});
        line.leave();
        joined = true;
    });
    const auto tell = [&](int rank) { lost = rank; };
    while (!joined) first.watch(200us, tell);
    other.join();
    while (first.connections() > 0) first.watch(200us, tell);
    EXPECT_EQ(lost, -1);
}

TEST(LifeLine, IsOnlyForThoseWhoKnowTheWord)
{
    LifeLine first{LifeLine::Listen{}};
    std::atomic<bool> stop{false};
    std::jthread watching([&] {
        while (!stop) first.watch(200us, [](int) {});
    });
    std::string wrong = first.invitation();
    wrong.front() = wrong.front() == 'a' ? 'b' : 'a';
    LifeLine stranger{LifeLine::Join{wrong, 1}};
    EXPECT_EQ(stranger.connections(), 0);
    EXPECT_EQ(first.connections(), 0);
    stop = true;
}

// A connection of another program, to where a life line is invited.
class Stranger {
public:
    explicit Stranger(const std::string& invitation)
    {
        std::istringstream words(invitation);
        std::uint16_t port = 0;
        words >> word >> port;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    ~Stranger() { ::close(descriptor_); }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;
    void say(std::string_view bytes) const { EXPECT_EQ(::send(descriptor_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size())); }

    std::string word;

private:
    int descriptor_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

// Each could take a second, in which no message would go anywhere and a rank that joins gives up.
TEST(LifeLine, WaitsForNoStrangerWhoSaysNothing)
{
    LifeLine first{LifeLine::Listen{}};
    std::vector<std::unique_ptr<Stranger>> strangers;
    for (int i = 0; i < 8; ++i) strangers.push_back(std::make_unique<Stranger>(first.invitation()));
    std::atomic<bool> stop{false};
    std::jthread watching([&] {
        while (!stop) first.watch(200us, [](int) {});
    });
    LifeLine second{LifeLine::Join{first.invitation(), 1}};
    EXPECT_EQ(second.connections(), 1);
    stop = true;
}

TEST(LifeLine, KnowsWhoSaysTheWordInPieces)
{
    LifeLine first{LifeLine::Listen{}};
    const Stranger slow(first.invitation());
    const auto watch = [&] {
        for (int i = 0; i < 5; ++i) first.watch(1000us, [](int) {});
    };
    slow.say(slow.word.substr(0, 5));
    watch();
    slow.say(slow.word.substr(5));
    watch();
    EXPECT_EQ(first.connections(), 0);
    slow.say(std::string("\x03\0\0\0", 4)); // rank 3
    while (first.connections() == 0) watch();
}

class ProcessGroupOver : public testing::TestWithParam<NetKind> {};
INSTANTIATE_TEST_SUITE_P(Ports, ProcessGroupOver, testing::Values(NetKind::Memory, NetKind::Tcp), netName);

TEST_P(ProcessGroupOver, AgreesOnTheFirstErrorAndSharesWhatTheFirstHas)
{
    constexpr int kSize = 3;
    const std::unique_ptr<Net> net = makeNet(GetParam(), kSize);
    std::vector<std::jthread> processes;
    std::vector<std::string> errors(kSize);
    std::vector<std::string> shared(kSize);
    for (int r = 0; r < kSize; ++r)
        processes.emplace_back([&, r] {
            const auto group = ProcessGroup::join(net->port(r), {.host = r == 2 ? "other" : "here", .clock = "c"}, kSize).value();
            EXPECT_FALSE(group->onOneHost());
            EXPECT_EQ(group->member(2).host, "other");
            EXPECT_TRUE(group->agree("the start", {}).ok());
            const Expected<void> all = group->agree("memory", r == 0 ? Expected<void>{} : Error{"no memory"});
            if (!all.ok()) errors[static_cast<std::size_t>(r)] = all.error().message;
            shared[static_cast<std::size_t>(r)] = group->fromFirst("the plan", std::string(r == 0 ? "plan" : "")).value();
            EXPECT_EQ(group->fromFirst("the next", Error{"none"}).error().message, "none");
            group->leave();
        });
    processes.clear();
    EXPECT_EQ(errors, std::vector<std::string>(kSize, "rank 1: no memory"));
    EXPECT_EQ(shared, std::vector<std::string>(kSize, "plan"));
}

// One that cannot start has nothing more to say but that it leaves, which the others must not take for its consent.
TEST_P(ProcessGroupOver, CallsItAnErrorForAllWhereOneLeavesWhileTheOthersStart)
{
    constexpr int kSize = 3;
    for (int gone = 0; gone < kSize; ++gone) {
        const std::unique_ptr<Net> net = makeNet(GetParam(), kSize);
        std::vector<std::jthread> processes;
        std::vector<std::string> errors(kSize);
        for (int r = 0; r < kSize; ++r)
            processes.emplace_back([&, r] {
                const auto group = ProcessGroup::join(net->port(r), {.host = "here", .clock = "c"}, kSize).value();
                for (const char* about : {"the files", "the start"}) {
                    if (r == gone) break;
                    const Expected<void> all = group->agree(about, {});
                    if (!all.ok()) errors[static_cast<std::size_t>(r)] += all.error().message + "; ";
                }
                group->leave();
            });
        processes.clear();
        for (int r = 0; r < kSize; ++r) {
            const std::string& error = errors[static_cast<std::size_t>(r)];
            EXPECT_EQ(error.empty(), r == gone) << error;
            for (const char* part : {"the files", "the end"}) EXPECT_TRUE(r == gone || error.find(part) != std::string::npos) << error;
        }
    }
}

} // namespace
} // namespace stagecraft::runtime
