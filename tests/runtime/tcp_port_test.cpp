// SPDX-License-Identifier: Apache-2.0
//
// What is of TCP alone; that it carries messages as the other ports do is tested with them (post_office_test.cpp, processes_test.cpp).
#include "engine/transport/process_group.h"
#include "engine/transport/tcp/sockets.h"
#include "tests/runtime/tcp_ports.h"

#include <gmock/gmock.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace stagecraft::runtime {
namespace {

using namespace std::chrono_literals;
using Channel = MessagePort::Channel;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string errorOf(const std::shared_ptr<MeetingPoint>& meeting, const TcpMember& self)
{
    const traces::Expected<std::unique_ptr<MessagePort>> port = openTcpPort(meeting, self);
    return port.ok() ? "" : port.error().message;
}

void finishTogether(MessagePort& one, MessagePort& other)
{
    std::jthread second([&] { other.finish(); });
    one.finish();
}

TEST(TcpPort, CarriesMoreThanSocketsHoldBothWaysAtOnce)
{
    TcpNet net(2);
    const std::unique_ptr<MessagePort> ports[2]{net.port(0), net.port(1)};
    constexpr std::size_t kBytes = 64U << 20U;
    std::vector<std::byte> sent[2]{std::vector<std::byte>(kBytes, std::byte{7}), std::vector<std::byte>(kBytes, std::byte{9})};
    std::vector<std::byte> got[2]{std::vector<std::byte>(kBytes), std::vector<std::byte>(kBytes)};
    const auto both = [&](std::size_t r) { // neither receives before it has begun to send
        const int other = 1 - static_cast<int>(r);
        const auto out = ports[r]->send(other, Channel::Bodies, sent[r]);
        const auto in = ports[r]->receive(other, Channel::Bodies, got[r]);
        while (!ports[r]->done(in)) std::this_thread::yield();
        while (!ports[r]->done(out)) std::this_thread::yield();
    };
    std::jthread second([&] { both(1); });
    both(0);
    second.join();
    EXPECT_TRUE(got[0] == sent[1]);
    EXPECT_TRUE(got[1] == sent[0]);
    finishTogether(*ports[0], *ports[1]);
}

TEST(TcpPort, KeepsABodyInTheConnectionUntilItIsAskedFor)
{
    TcpNet net(2);
    const std::unique_ptr<MessagePort> first = net.port(0);
    const std::unique_ptr<MessagePort> second = net.port(1);
    const std::string head = "head", body = "body", next = "next";
    for (const auto& [text, channel] : {std::pair{&head, Channel::Heads}, {&body, Channel::Bodies}, {&next, Channel::Heads}, {&head, Channel::Heads}})
        static_cast<void>(first->send(1, channel, std::as_bytes(std::span(*text))));
    const auto take = [&](Channel channel, std::size_t size) {
        std::string room(size, ' ');
        const auto ticket = second->receive(0, channel, std::as_writable_bytes(std::span(room)));
        while (!second->done(ticket)) std::this_thread::yield();
        return room;
    };
    std::optional<MessagePort::Arriving> arriving;
    while (!arriving) arriving = second->arriving();
    EXPECT_EQ(arriving->bytes, 4U);
    EXPECT_EQ(take(Channel::Heads, 4), "head");
    for (int k = 0; k < 100; ++k) EXPECT_FALSE(second->arriving()); // it is behind the body
    EXPECT_EQ(take(Channel::Bodies, 4), "body");
    EXPECT_EQ(take(Channel::Heads, 4), "next");
    std::string room(5, ' ');
    EXPECT_THROW(
        {
            const auto ticket = second->receive(0, Channel::Heads, std::as_writable_bytes(std::span(room)));
            while (!second->done(ticket)) std::this_thread::yield();
        },
        std::runtime_error);
}

TEST(TcpPort, NamesTheRankWhoseConnectionEnds)
{
    TcpNet net(3);
    const std::unique_ptr<MessagePort> first = net.port(0);
    const std::unique_ptr<MessagePort> third = net.port(2);
    net.port(1).reset(); // as the kernel does for one that is killed
    const auto hearOfIt = [](MessagePort& port) -> std::string {
        try {
            while (!port.arriving()) std::this_thread::yield();
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_THAT(hearOfIt(*first), HasSubstr("the connection to rank 1 broke"));
    EXPECT_THAT(hearOfIt(*third), HasSubstr("the connection to rank 1 broke"));
}

TEST(TcpPort, LeavesInPeaceWhoeverIsFirst)
{
    TcpNet net(3);
    std::vector<std::jthread> processes;
    for (int r = 0; r < 3; ++r)
        processes.emplace_back([port = std::shared_ptr<MessagePort>(net.port(r)), r] {
            std::this_thread::sleep_for(r * 5ms);
            port->finish();
        });
}

TEST(TcpMesh, SaysWhoHasNotCome)
{
    EXPECT_EQ(errorOf(std::make_shared<MemoryMeeting>(), {.rank = 1, .size = 3, .patience = 50ms}),
              "rank 1 waited 0 s for the others: rank 0 has not come: its process was not started, or ended; rank 2 has not come: its process was not "
              "started, or ended");
}

TEST(TcpMesh, SaysWhoCannotBeReached)
{
    const auto meeting = std::make_shared<MemoryMeeting>();
    meeting->put("address/0", "abcdefghijklmnop 9 127.0.0.1"); // nobody listens to port 9
    EXPECT_THAT(errorOf(meeting, {.rank = 1, .size = 2, .patience = 50ms}),
                AllOf(HasSubstr("rank 0 came, and there is no connection with it, which listens at port and addresses 9 127.0.0.1"), HasSubstr("a firewall")));
}

TEST(TcpMesh, RefusesTwoOfOneRankAndOtherNumbersOfRanks)
{
    const auto meeting = std::make_shared<MemoryMeeting>();
    static_cast<void>(errorOf(meeting, {.rank = 0, .size = 2, .patience = 1ms}));
    EXPECT_THAT(errorOf(meeting, {.rank = 0, .size = 2}), HasSubstr("two processes were told that they are rank 0: give each a RANK of its own"));
    EXPECT_THAT(errorOf(meeting, {.rank = 2, .size = 3}), HasSubstr("rank 2 was told that there are 3 ranks (WORLD_SIZE), and another that there are 2"));
}

// Ports are open to anybody of any network. One that does not know the word, or says nothing, is no rank and delays none.
TEST(TcpMesh, TakesNoStrangerForARank)
{
    const auto meeting = std::make_shared<MemoryMeeting>();
    std::unique_ptr<MessagePort> first;
    std::jthread listening([&] { first = openTcpPort(meeting, {.rank = 0, .size = 2}).value(); });
    std::optional<std::string> place;
    while (!place) place = meeting->find("address/0");
    std::istringstream words(*place);
    std::string word;
    std::uint16_t port = 0;
    words >> word >> port;
    const Descriptor silent = connectTo("127.0.0.1", port);
    const Descriptor wrong = connectTo("127.0.0.1", port);
    ASSERT_TRUE(silent.open() && wrong.open());
    EXPECT_TRUE(sendAll(wrong.get(), "nobody's word at all", 20));
    EXPECT_FALSE(receiveAll(wrong.get(), 1)); // sent away
    const Descriptor knows = connectTo("127.0.0.1", port); // another network's way to the same rank, which was not taken in the end
    const std::string greeting = word + std::string("\x01\0\0\0", 4);
    EXPECT_TRUE(sendAll(knows.get(), greeting.data(), greeting.size()));
    EXPECT_EQ(receiveAll(knows.get(), word.size()), word);
    const std::unique_ptr<MessagePort> second = openTcpPort(meeting, {.rank = 1, .size = 2}).value();
    listening.join();
    finishTogether(*first, *second);
}

} // namespace
} // namespace stagecraft::runtime
