// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/tcp_mesh.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace stagecraft::runtime {

namespace {

using traces::Error;
using traces::Expected;
using Clock = std::chrono::steady_clock;

constexpr char kTaken = 'T';
constexpr std::size_t kGreetingSize = kWordSize + sizeof(std::int32_t);
constexpr std::chrono::milliseconds kRound{20}; // between two looks at the meeting point

std::string addressOf(int rank) { return "address/" + std::to_string(rank); }

void sendAtOnce(int descriptor) // messages are small or large, and never wait for more of them
{
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

} // namespace

TcpMesh::TcpMesh(MeetingPoint& point, const TcpMember& self) : point_(point), self_(self), connections_(static_cast<std::size_t>(self.size)) {}

Expected<void> TcpMesh::announce()
{
    if (!listener_.open()) return Error{"rank " + std::to_string(self_.rank) + " cannot listen for the other ranks: " + std::strerror(errno)};
    const std::string size = std::to_string(self_.size);
    if (const std::string told = point_.agree("size", size); told != size)
        return Error{"rank " + std::to_string(self_.rank) + " was told that there are " + size + " ranks (WORLD_SIZE), and another that there are " + told +
                     ": start all of them with the same number, and each run at a meeting point of its own"};
    if (point_.count("rank/" + std::to_string(self_.rank)) > 1)
        return Error{"two processes were told that they are rank " + std::to_string(self_.rank) + ": give each a RANK of its own, and each run a meeting point of its own"};
    std::string address = word_ + " " + std::to_string(listener_.port());
    for (const std::string& own : ownAddresses()) address += " " + own;
    point_.put(addressOf(self_.rank), address);
    return {};
}

Expected<std::vector<Descriptor>> TcpMesh::connect()
{
    try {
        if (auto announced = announce(); !announced.ok()) return announced.error();
        const auto until = Clock::now() + self_.patience;
        for (;;) {
            listen();
            bool all = true;
            for (int rank = 0; rank < self_.size; ++rank) {
                if (rank == self_.rank || connections_[static_cast<std::size_t>(rank)].open()) continue;
                if (rank < self_.rank) tryPeer(rank);
                all = all && connections_[static_cast<std::size_t>(rank)].open();
            }
            if (all) return std::move(connections_);
            if (Clock::now() >= until) return Error{missing()};
        }
    } catch (const std::exception& error) {
        return Error{"rank " + std::to_string(self_.rank) + " lost the meeting point of the ranks: " + std::string(error.what())};
    }
}

void TcpMesh::listen()
{
    std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers_) waiting.push_back({stranger.descriptor.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(kRound.count())) < 0) return;
    std::vector<Stranger> still;
    auto next = waiting.begin() + 1;
    for (Stranger& stranger : std::exchange(strangers_, {})) {
        if ((next++)->revents != 0 && !hear(stranger)) continue;
        if (Clock::now() < stranger.until) still.push_back(std::move(stranger));
    }
    strangers_ = std::move(still);
    if (waiting.front().revents == 0) return;
    if (Descriptor descriptor = listener_.accept(); descriptor.open())
        strangers_.push_back({std::move(descriptor), {}, false, Clock::now() + 2 * kStrangersPatience});
}

bool TcpMesh::hear(Stranger& stranger)
{
    std::array<char, kGreetingSize + 1> bytes{};
    const std::size_t expected = stranger.answered ? kGreetingSize + 1 : kGreetingSize;
    const ssize_t got = ::recv(stranger.descriptor.get(), bytes.data(), expected - stranger.said.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    stranger.said.append(bytes.data(), static_cast<std::size_t>(got));
    if (stranger.said.size() < expected) return true;
    if (!stranger.answered) {
        stranger.answered = stranger.said.compare(0, kWordSize, word_) == 0 && sendAll(stranger.descriptor.get(), word_.data(), word_.size());
        return stranger.answered;
    }
    std::int32_t rank = 0;
    std::memcpy(&rank, stranger.said.data() + kWordSize, sizeof rank);
    if (stranger.said.back() != kTaken || rank <= self_.rank || rank >= self_.size) return false;
    sendAtOnce(stranger.descriptor.get());
    connections_[static_cast<std::size_t>(rank)] = std::move(stranger.descriptor);
    return false;
}

void TcpMesh::tryPeer(int rank)
{
    const std::optional<std::string> place = point_.find(addressOf(rank));
    if (!place) return;
    std::istringstream words(*place);
    std::string word;
    unsigned port = 0;
    words >> word >> port;
    for (std::string address; words >> address;) {
        Descriptor descriptor = connectTo(address, static_cast<std::uint16_t>(port));
        if (!descriptor.open() || !greet(descriptor.get(), word)) continue; // another program of another host
        sendAtOnce(descriptor.get());
        connections_[static_cast<std::size_t>(rank)] = std::move(descriptor);
        return;
    }
}

bool TcpMesh::greet(int descriptor, const std::string& word) const
{
    const auto number = static_cast<std::int32_t>(self_.rank);
    return sendAll(descriptor, word.data(), word.size()) && sendAll(descriptor, &number, sizeof number) && receiveAll(descriptor, word.size()) == word &&
           sendAll(descriptor, &kTaken, sizeof kTaken);
}

std::string TcpMesh::missing()
{
    std::string text;
    for (int rank = 0; rank < self_.size; ++rank) {
        if (rank == self_.rank || connections_[static_cast<std::size_t>(rank)].open()) continue;
        const std::string who = "rank " + std::to_string(rank);
        const std::optional<std::string> place = point_.find(addressOf(rank));
        text += text.empty() ? "" : "; ";
        if (!place) text += who + " has not come: its process was not started, or ended";
        else text += who + " came, and there is no connection with it, which listens at port and addresses " + place->substr(place->find(' ') + 1) +
                     ": a firewall is between the hosts, or no network has both";
    }
    return "rank " + std::to_string(self_.rank) + " waited " + std::to_string(self_.patience.count() / 1000) + " s for the others: " + text;
}

} // namespace stagecraft::runtime
