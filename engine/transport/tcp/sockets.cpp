// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/sockets.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stagecraft::runtime {

Descriptor::~Descriptor()
{
    if (number_ >= 0) ::close(number_);
}

Listener::Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    if (descriptor_.open() && ::bind(get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(get(), SOMAXCONN) == 0 &&
        ::getsockname(get(), reinterpret_cast<sockaddr*>(&address), &size) == 0)
        port_ = ntohs(address.sin_port);
}

Descriptor Listener::accept() const { return Descriptor(::accept4(get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

std::string randomWord()
{
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
    std::random_device random;
    std::string word(kWordSize, 'a');
    for (char& letter : word) letter = kLetters[random() % kLetters.size()];
    return word;
}

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
    return ::poll(&waiting, 1, static_cast<int>(kStrangersPatience.count())) == 1 && (waiting.revents & event) != 0;
}

bool sendAll(int descriptor, const void* bytes, std::size_t count)
{
    return ::send(descriptor, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
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

Descriptor connectTo(const std::string& address, std::uint16_t port)
{
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) return {};
    Descriptor descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!descriptor.open()) return {};
    int error = 0;
    socklen_t size = sizeof error;
    const bool connected = ::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 ||
                           (errno == EINPROGRESS && becomes(descriptor.get(), POLLOUT) &&
                            ::getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    return connected ? std::move(descriptor) : Descriptor{};
}

} // namespace stagecraft::runtime
