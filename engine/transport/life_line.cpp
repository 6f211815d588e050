// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/life_line.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stagecraft::runtime {

namespace {

constexpr std::chrono::milliseconds kPatience{1000}; // for an address of rank 0, of which some may lead nowhere, and with a stranger
constexpr std::size_t kWordSize = 16;
constexpr std::size_t kGreetingSize = kWordSize + sizeof(std::int32_t); // the word, then the rank

// What one end says to the other: a letter and a rank.
constexpr char kLeaving = 'B';
constexpr char kLost = 'L';
struct Saying {
    char what = 0;
    std::int32_t rank = 0;
};

std::string randomWord()
{
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
    std::random_device random;
    std::string word(kWordSize, 'a');
    for (char& letter : word) letter = kLetters[random() % kLetters.size()];
    return word;
}

// Of every network that this host is in, those to itself last.
std::vector<std::string> ownAddresses()
{
    std::vector<std::string> outward;
    std::vector<std::string> inward;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return {"127.0.0.1"};
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0) continue;
        sockaddr_in address{};
        std::memcpy(&address, each->ifa_addr, sizeof address);
        std::array<char, INET_ADDRSTRLEN> text{};
        if (::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) == nullptr) continue;
        ((each->ifa_flags & IFF_LOOPBACK) != 0 ? inward : outward).emplace_back(text.data());
    }
    ::freeifaddrs(all);
    outward.insert(outward.end(), inward.begin(), inward.end());
    return outward;
}

bool becomes(int descriptor, short event)
{
    pollfd waiting{descriptor, event, 0};
    return ::poll(&waiting, 1, static_cast<int>(kPatience.count())) == 1 && (waiting.revents & event) != 0;
}

bool sendAll(int descriptor, const void* bytes, std::size_t count)
{
    return ::send(descriptor, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count); // far less than a socket holds
}

std::optional<std::string> receiveAll(int descriptor, std::size_t count)
{
    std::string bytes(count, '\0');
    for (std::size_t got = 0; got < count;) {
        if (!becomes(descriptor, POLLIN)) return std::nullopt;
        const ssize_t more = ::recv(descriptor, bytes.data() + got, count - got, 0);
        if (more <= 0) return std::nullopt;
        got += static_cast<std::size_t>(more);
    }
    return bytes;
}

int connectTo(const std::string& host, std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return -1;
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -1;
    int error = 0;
    socklen_t size = sizeof error;
    const bool connected = ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                           (errno == EINPROGRESS && becomes(descriptor, POLLOUT) &&
                            ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    if (connected) return descriptor;
    ::close(descriptor);
    return -1;
}

} // namespace

LifeLine::LifeLine(Listen) : word_(randomWord())
{
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    if (listening_ < 0 || ::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listening_, SOMAXCONN) != 0 ||
        ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        return;
    invitation_ = word_ + " " + std::to_string(ntohs(address.sin_port));
    for (const std::string& own : ownAddresses()) invitation_ += " " + own;
}

LifeLine::LifeLine(const Join& join)
{
    std::istringstream words(join.invitation);
    unsigned port = 0;
    words >> word_ >> port;
    for (std::string host; words >> host;) {
        const int descriptor = connectTo(host, static_cast<std::uint16_t>(port));
        if (descriptor < 0) continue;
        if (greet(descriptor, join.rank)) {
            peers_[0].descriptor = descriptor;
            return;
        }
        ::close(descriptor); // another program of another host
    }
}

LifeLine::~LifeLine()
{
    for (const auto& [rank, peer] : peers_) ::close(peer.descriptor);
    for (const Stranger& stranger : strangers_) ::close(stranger.descriptor);
    if (listening_ >= 0) ::close(listening_);
}

// Both ends show that they know the word.
bool LifeLine::greet(int descriptor, int rank) const
{
    const auto number = static_cast<std::int32_t>(rank);
    return sendAll(descriptor, word_.data(), word_.size()) && sendAll(descriptor, &number, sizeof number) && receiveAll(descriptor, word_.size()) == word_;
}

int LifeLine::connections()
{
    const std::lock_guard lock(mutex_);
    return static_cast<int>(peers_.size());
}

void LifeLine::accept()
{
    const int descriptor = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor >= 0) strangers_.push_back({descriptor, {}, std::chrono::steady_clock::now() + kPatience});
}

bool LifeLine::hearStranger(Stranger& stranger)
{
    std::array<char, kGreetingSize> bytes{};
    const ssize_t got = ::recv(stranger.descriptor, bytes.data(), kGreetingSize - stranger.said.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got > 0) stranger.said.append(bytes.data(), static_cast<std::size_t>(got));
    const std::size_t known = std::min(stranger.said.size(), kWordSize);
    const bool welcome = got > 0 && stranger.said.compare(0, known, word_, 0, known) == 0;
    if (welcome && stranger.said.size() < kGreetingSize) return true;
    if (!welcome || !sendAll(stranger.descriptor, word_.data(), word_.size())) {
        ::close(stranger.descriptor);
        return false;
    }
    std::int32_t rank = 0;
    std::memcpy(&rank, stranger.said.data() + kWordSize, sizeof rank);
    const std::lock_guard lock(mutex_);
    peers_[rank].descriptor = stranger.descriptor;
    return false;
}

void LifeLine::watch(std::chrono::microseconds time, const std::function<void(int rank)>& lost)
{
    std::vector<pollfd> waiting;
    std::vector<int> ranks;
    if (listening_ >= 0) waiting.push_back({listening_, POLLIN, 0});
    for (const Stranger& stranger : strangers_) waiting.push_back({stranger.descriptor, POLLIN, 0});
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [rank, peer] : peers_) {
            waiting.push_back({peer.descriptor, POLLIN, 0});
            ranks.push_back(rank);
        }
    }
    const timespec until{0, std::chrono::nanoseconds(time).count()};
    if (::ppoll(waiting.data(), waiting.size(), &until, nullptr) < 0) return;
    auto next = waiting.begin();
    const bool knocks = listening_ >= 0 && (next++)->revents != 0;
    std::vector<Stranger> still;
    for (Stranger& stranger : std::exchange(strangers_, {})) {
        const bool speaks = (next++)->revents != 0;
        if (speaks && !hearStranger(stranger)) continue;
        if (std::chrono::steady_clock::now() < stranger.until) still.push_back(std::move(stranger));
        else ::close(stranger.descriptor);
    }
    strangers_ = std::move(still);
    if (knocks) accept();
    for (const int rank : ranks)
        if ((next++)->revents != 0) hear(rank, lost);
}

void LifeLine::hear(int rank, const std::function<void(int rank)>& lost)
{
    Saying saying;
    int gone = -1;
    {
        const std::lock_guard lock(mutex_);
        Peer& peer = peers_[rank];
        const ssize_t got = ::recv(peer.descriptor, &saying, sizeof saying, MSG_DONTWAIT);
        if (got == sizeof saying) {
            if (saying.what == kLeaving) peer.leaving = true;
            if (saying.what == kLost) gone = saying.rank;
        } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            if (!peer.leaving) gone = rank;
            ::close(peer.descriptor);
            peers_.erase(rank);
        }
    }
    if (gone < 0) return;
    passOn(gone);
    lost(gone);
}

void LifeLine::passOn(int lostRank)
{
    if (listening_ < 0) return;
    const std::lock_guard lock(mutex_);
    const Saying saying{kLost, lostRank};
    for (const auto& [rank, peer] : peers_) sendAll(peer.descriptor, &saying, sizeof saying);
}

void LifeLine::leave()
{
    const std::lock_guard lock(mutex_);
    const Saying saying{kLeaving, 0};
    for (auto& [rank, peer] : peers_) {
        sendAll(peer.descriptor, &saying, sizeof saying);
        peer.leaving = true;
    }
}

} // namespace stagecraft::runtime
