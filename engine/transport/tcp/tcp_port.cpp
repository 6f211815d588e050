// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/tcp_port.h"

#include "engine/transport/tcp/sockets.h"
#include "engine/transport/tcp/tcp_mesh.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace stagecraft::runtime {

namespace {

using Channel = MessagePort::Channel;
using Ticket = MessagePort::Ticket;

enum class Kind : std::uint64_t { Heads, Bodies, Goodbye };

struct Head {
    Kind kind = Kind::Heads;
    std::uint64_t size = 0;
};
static_assert(sizeof(Head) == 16); // all hosts of a run have one byte order

Kind kindOf(Channel channel) { return channel == Channel::Heads ? Kind::Heads : Kind::Bodies; }
std::size_t placeOf(Channel channel) { return static_cast<std::size_t>(channel); }

class TcpPort final : public MessagePort {
public:
    TcpPort(const TcpMember& self, std::vector<Descriptor> connections, std::shared_ptr<MeetingPoint> point)
        : rank_(self.rank), point_(std::move(point)), peers_(connections.size())
    {
        for (std::size_t r = 0; r < connections.size(); ++r) peers_[r].connection = std::move(connections[r]);
    }

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(peers_.size()); }

    Ticket send(int to, Channel channel, std::span<const std::byte> bytes) override
    {
        push(peerOf(to), kindOf(channel), bytes, ++last_);
        flush(to);
        return last_;
    }

    Ticket receive(int from, Channel channel, std::span<std::byte> room) override
    {
        Peer& peer = peerOf(from);
        underWay_.insert(++last_);
        if (channel == Channel::Heads && !peer.early.empty()) {
            copy(from, peer.early.front(), room);
            peer.early.pop_front();
            underWay_.erase(last_);
        } else {
            peer.wanted[placeOf(channel)].push_back({room, last_});
        }
        return last_;
    }

    bool done(Ticket ticket) override
    {
        if (underWay_.contains(ticket)) exchange(0);
        return !underWay_.contains(ticket);
    }

    std::optional<Arriving> arriving() override
    {
        if (const std::optional<Arriving> known = firstEarly()) return known;
        exchange(0);
        return firstEarly();
    }

    void finish() override
    {
        finishing_ = true; // who dies from now on takes nothing with him
        for (int r = 0; r < size(); ++r)
            if (r != rank_) push(peerOf(r), Kind::Goodbye, {}, ++last_);
        const auto open = [](const Peer& peer) { return peer.connection.open() && !(peer.left && peer.out.empty()); };
        while (std::any_of(peers_.begin(), peers_.end(), open)) exchange(-1);
    }

private:
    struct Outgoing {
        Head head;
        std::span<const std::byte> bytes;
        std::size_t sent = 0; // of both
        Ticket ticket = 0;
    };
    struct Wanted {
        std::span<std::byte> room;
        Ticket ticket = 0;
    };
    struct Peer {
        Descriptor connection;
        std::deque<Outgoing> out;
        std::array<std::deque<Wanted>, 2> wanted; // by channel
        std::deque<std::string> early;            // heads that nobody has asked for yet
        // What is being read.
        Head head;
        std::size_t got = 0; // of the head and the bytes behind it
        std::string own;     // a head's bytes
        bool left = false;   // has said goodbye
    };

    Peer& peerOf(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

    void push(Peer& peer, Kind kind, std::span<const std::byte> bytes, Ticket ticket)
    {
        peer.out.push_back({{kind, bytes.size()}, bytes, 0, ticket});
        underWay_.insert(ticket);
    }

    [[nodiscard]] std::optional<Arriving> firstEarly() const
    {
        for (std::size_t r = 0; r < peers_.size(); ++r)
            if (!peers_[r].early.empty()) return Arriving{static_cast<int>(r), peers_[r].early.front().size()};
        return std::nullopt;
    }

    static void copy(int from, std::string_view bytes, std::span<std::byte> room)
    {
        expectSize(from, bytes.size(), room.size());
        if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
    }
    static void expectSize(int from, std::size_t size, std::size_t room)
    {
        if (size != room)
            throw std::runtime_error("rank " + std::to_string(from) + " sent " + std::to_string(size) + " bytes where " + std::to_string(room) + " were expected");
    }

    // Reads and writes what there is. The time is poll's.
    void exchange(int milliseconds)
    {
        waiting_.clear();
        for (const Peer& peer : peers_) {
            const short events = static_cast<short>((reads(peer) ? POLLIN : 0) | (peer.out.empty() ? 0 : POLLOUT));
            waiting_.push_back({events != 0 ? peer.connection.get() : -1, events, 0});
        }
        if (::poll(waiting_.data(), waiting_.size(), milliseconds) <= 0) return;
        for (std::size_t r = 0; r < peers_.size(); ++r) {
            const int rank = static_cast<int>(r);
            if ((waiting_[r].revents & POLLOUT) != 0) flush(rank);
            if ((waiting_[r].revents & ~POLLOUT) != 0) read(rank);
        }
    }

    // A body that nobody has asked for stays in the connection, and all behind it.
    [[nodiscard]] static bool reads(const Peer& peer)
    {
        return peer.connection.open() && !(peer.got >= sizeof(Head) && peer.head.kind == Kind::Bodies && peer.wanted[placeOf(Channel::Bodies)].empty());
    }

    void flush(int rank)
    {
        Peer& peer = peerOf(rank);
        while (!peer.out.empty()) {
            Outgoing& first = peer.out.front();
            const std::size_t ofHead = std::min(first.sent, sizeof(Head));
            const std::size_t ofBytes = first.sent - ofHead;
            std::array<iovec, 2> parts{{{reinterpret_cast<std::byte*>(&first.head) + ofHead, sizeof(Head) - ofHead},
                                        {const_cast<std::byte*>(first.bytes.data()) + ofBytes, first.bytes.size() - ofBytes}}};
            msghdr message{};
            message.msg_iov = parts.data();
            message.msg_iovlen = parts.size();
            const ssize_t sent = ::sendmsg(peer.connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
            if (sent < 0) return closed(rank, std::strerror(errno));
            first.sent += static_cast<std::size_t>(sent);
            if (first.sent < sizeof(Head) + first.bytes.size()) continue;
            underWay_.erase(first.ticket);
            peer.out.pop_front();
        }
    }

    // Up to the end of a head: then it is known where the bodies behind it go.
    void read(int rank)
    {
        Peer& peer = peerOf(rank);
        while (reads(peer)) {
            const std::span<std::byte> room = roomOf(rank);
            if (!room.empty()) {
                const ssize_t got = ::recv(peer.connection.get(), room.data(), room.size(), MSG_DONTWAIT);
                if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
                if (got <= 0) return closed(rank, got == 0 ? "its end was closed" : std::strerror(errno));
                peer.got += static_cast<std::size_t>(got);
            }
            if (peer.got < sizeof(Head) + (peer.got < sizeof(Head) ? 0 : peer.head.size)) continue;
            if (complete(peer)) return;
        }
    }

    // Where the next bytes belong; empty where the message has none.
    std::span<std::byte> roomOf(int rank)
    {
        Peer& peer = peerOf(rank);
        if (peer.got < sizeof(Head)) return std::as_writable_bytes(std::span(&peer.head, 1)).subspan(peer.got);
        const std::size_t done = peer.got - sizeof(Head);
        if (peer.head.kind == Kind::Bodies) {
            const std::span<std::byte> room = peer.wanted[placeOf(Channel::Bodies)].front().room;
            expectSize(rank, peer.head.size, room.size());
            return room.subspan(done);
        }
        if (done == 0) peer.own.resize(peer.head.size);
        return std::as_writable_bytes(std::span(peer.own)).subspan(done);
    }

    // True: it was a head.
    bool complete(Peer& peer)
    {
        const Kind kind = std::exchange(peer.head, {}).kind;
        peer.got = 0;
        if (kind == Kind::Goodbye) {
            peer.left = true;
            return false;
        }
        auto& wanted = peer.wanted[placeOf(kind == Kind::Heads ? Channel::Heads : Channel::Bodies)];
        if (kind == Kind::Heads && wanted.empty()) {
            peer.early.push_back(std::exchange(peer.own, {}));
            return true;
        }
        if (kind == Kind::Heads) copy(static_cast<int>(&peer - peers_.data()), std::exchange(peer.own, {}), wanted.front().room);
        underWay_.erase(wanted.front().ticket);
        wanted.pop_front();
        return kind == Kind::Heads;
    }

    void closed(int rank, const std::string& why)
    {
        Peer& peer = peerOf(rank);
        if (!peer.left && !finishing_)
            throw std::runtime_error("the connection to rank " + std::to_string(rank) + " broke: " + why);
        peer.connection = Descriptor();
        peer.out.clear();
    }

    int rank_;
    std::shared_ptr<MeetingPoint> point_; // the others may still read there
    std::vector<Peer> peers_;             // by rank
    std::unordered_set<Ticket> underWay_;
    Ticket last_ = 0;
    bool finishing_ = false;
    std::vector<pollfd> waiting_;
};

} // namespace

traces::Expected<std::unique_ptr<MessagePort>> openTcpPort(std::shared_ptr<MeetingPoint> point, const TcpMember& self)
{
    traces::Expected<std::vector<Descriptor>> connections = TcpMesh(*point, self).connect();
    if (!connections.ok()) return connections.error();
    return std::unique_ptr<MessagePort>(std::make_unique<TcpPort>(self, std::move(connections).value(), std::move(point)));
}

} // namespace stagecraft::runtime
