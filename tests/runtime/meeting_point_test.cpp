// SPDX-License-Identifier: Apache-2.0
//
// c10d's store as the place where ranks meet, and what else may be found at its port.
#include "engine/transport/tcp/meeting_point.h"
#include "engine/transport/tcp/sockets.h"
#include "engine/transport/tcp/tcp_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>

namespace stagecraft::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A port that nobody has; somebody else may take it before it is used, which the tests would say.
int freePort()
{
    const Listener listener;
    return listener.port();
}

// Another program: what it does with each connection, one after the other.
class Stranger {
public:
    explicit Stranger(std::function<void(Descriptor connection)> serve)
        : serving_([this, serve = std::move(serve)](const std::stop_token& stop) {
              while (!stop.stop_requested())
                  if (becomes(listener_.get(), POLLIN)) serve(listener_.accept());
          })
    {
    }
    [[nodiscard]] int port() const { return listener_.port(); }

private:
    Listener listener_;
    std::jthread serving_; // last: it uses the other
};

std::string errorOf(const MeetingPlace& place)
{
    const auto point = openMeetingPoint(place);
    return point.ok() ? "" : point.error().message;
}

std::string meetAt(int port) { return "the ranks cannot meet at 127.0.0.1:" + std::to_string(port) + " (MASTER_ADDR and MASTER_PORT): "; }
std::string elsewhere(int port)
{
    return ". Give all ranks another port, such as torchrun --master-port " + std::to_string(otherPort(port)) + ", and start rank 0 there";
}

// What is said to a store first, of which it returns the last four bytes.
std::string greetingOn(const Descriptor& connection) { return receiveAll(connection.get(), 10).value_or(""); }

void say(const Descriptor& connection, std::string_view words) { EXPECT_TRUE(sendAll(connection.get(), words.data(), words.size())); }

TEST(MeetingPoint, IsSharedByThoseWhoKnowItsPort)
{
    const int port = freePort();
    auto first = openMeetingPoint({.host = "127.0.0.1", .port = port, .serves = true}).value();
    auto second = openMeetingPoint({.host = "127.0.0.1", .port = port}).value();
    EXPECT_FALSE(second->find("address/0"));
    first->put("address/0", "here");
    EXPECT_EQ(first->find("address/0"), "here"); // putting waits for no answer: now the store has it
    EXPECT_EQ(second->find("address/0"), "here");
    EXPECT_EQ(second->agree("size", "2"), "2");
    EXPECT_EQ(first->agree("size", "3"), "2");
    EXPECT_EQ(first->count("rank/0"), 1);
    EXPECT_EQ(second->count("rank/0"), 2);
    auto next = openMeetingPoint({.host = "127.0.0.1", .port = port, .round = "1"}).value();
    EXPECT_FALSE(next->find("address/0")); // of an attempt that failed
}

TEST(MeetingPoint, SaysThatItsPortIsInUse)
{
    const Listener other;
    const auto point = openMeetingPoint({.host = "127.0.0.1", .port = other.port(), .serves = true});
    ASSERT_FALSE(point.ok());
    EXPECT_THAT(point.error().message,
                AllOf(HasSubstr("rank 0 cannot have port " + std::to_string(other.port()) + " (MASTER_PORT)"), HasSubstr("Address already in use. Give another")));
}

TEST(MeetingPoint, SaysThatNobodyAnswersWithinItsTime)
{
    const int port = freePort();
    const auto begin = std::chrono::steady_clock::now();
    const auto point = openMeetingPoint({.host = "127.0.0.1", .port = port, .patience = 0s});
    ASSERT_FALSE(point.ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_THAT(point.error().message, AllOf(HasSubstr("nobody answered at 127.0.0.1:" + std::to_string(port) + " (MASTER_ADDR and MASTER_PORT) within 0 s"),
                                             HasSubstr("Connection refused"), HasSubstr("Start rank 0 there")));
    EXPECT_THAT(openMeetingPoint({.host = "no-such-host.invalid", .port = port, .patience = 0s}).error().message, HasSubstr("no-such-host.invalid"));
}

// It takes connections, as the kernel does for any that listens, and never says a word.
TEST(MeetingPoint, GivesUpAPortThatSaysNothing)
{
    const Listener silent;
    EXPECT_EQ(errorOf({.host = "127.0.0.1", .port = silent.port(), .patience = 1s}),
              meetAt(silent.port()) + "what listens there takes the connection, but has said nothing within 1 s; it is another program, or rank 0 is stopped" +
                  elsewhere(silent.port()));
}

// At once: waiting would change nothing.
TEST(MeetingPoint, SaysWhatAnotherProgramAnswers)
{
    const Stranger other([](const Descriptor& connection) {
        static_cast<void>(greetingOn(connection));
        say(connection, "HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n");
    });
    EXPECT_EQ(errorOf({.host = "127.0.0.1", .port = other.port(), .patience = 600s}),
              meetAt(other.port()) + "another program listens there, which answers \"HTTP/1.1 400 Bad Request\"" + elsewhere(other.port()));
    const Stranger alert([](const Descriptor& connection) { // TLS that closes
        static_cast<void>(greetingOn(connection));
        say(connection, std::string_view("\x15\x03\x01\0\x02\x02\x46", 7));
    });
    EXPECT_EQ(errorOf({.host = "127.0.0.1", .port = alert.port(), .patience = 600s}),
              meetAt(alert.port()) + "another program listens there, which answers in another protocol" + elsewhere(alert.port()));
}

TEST(MeetingPoint, SaysThatWhoListensClosesTheConnection)
{
    const Stranger other([](const Descriptor&) {});
    EXPECT_EQ(errorOf({.host = "127.0.0.1", .port = other.port(), .patience = 1s}),
              meetAt(other.port()) + "what listens there closes each connection without an answer within 1 s; it is another program, or a way to a host where "
                                     "rank 0 is not" +
                  elsewhere(other.port()));
}

// A forwarded port takes connections before rank 0 is there.
TEST(MeetingPoint, TriesAgainWhereTheConnectionIsClosed)
{
    int connections = 0;
    Descriptor held;
    const Stranger late([&](Descriptor connection) {
        if (++connections < 3) return;
        say(connection, greetingOn(connection).substr(6));
        held = std::move(connection);
    });
    EXPECT_EQ(errorOf({.host = "127.0.0.1", .port = late.port()}), "");
}

TEST(MeetingPoint, ThrowsWhereItFallsSilent)
{
    Descriptor held;
    const Stranger stopped([&](Descriptor connection) {
        say(connection, greetingOn(connection).substr(6));
        held = std::move(connection);
    });
    const auto point = openMeetingPoint({.host = "127.0.0.1", .port = stopped.port(), .patience = 1s}).value();
    EXPECT_THAT([&] { static_cast<void>(point->find("address/0")); },
                testing::ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("has not answered for 1 s"), HasSubstr("rank 0 or torchrun, is stopped"))));
}

// One line, whatever c10d would say.
TEST(MeetingPoint, IsLostWithWhoKeepsIt)
{
    const int port = freePort();
    auto kept = openMeetingPoint({.host = "127.0.0.1", .port = port, .serves = true}).value();
    std::shared_ptr<MeetingPoint> point = openMeetingPoint({.host = "127.0.0.1", .port = port}).value();
    std::string said;
    std::jthread second([&] { said = openTcpPort(point, {.rank = 1, .size = 2}).error().message; });
    while (!kept->find("address/1")) std::this_thread::yield();
    kept.reset();
    second.join();
    EXPECT_EQ(said, "rank 1 lost the meeting point of the ranks: 127.0.0.1:" + std::to_string(port) +
                        " (MASTER_ADDR and MASTER_PORT) has closed the connection, so the process that keeps it, rank 0 or torchrun, has ended; it says why");
}

} // namespace
} // namespace stagecraft::runtime
