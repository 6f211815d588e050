// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/meeting_point.h"

#include "engine/transport/tcp/sockets.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace stagecraft::runtime {

namespace {

using traces::Error;
using traces::Expected;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetry{100};

std::vector<std::uint8_t> bytesOf(const std::string& text) { return {text.begin(), text.end()}; }
std::string textOf(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class TorchStore final : public MeetingPoint {
public:
    TorchStore(c10::intrusive_ptr<c10d::TCPStore> store, std::string prefix) : store_(std::move(store)), prefix_(std::move(prefix)) {}

    void put(const std::string& key, const std::string& value) override { store_->set(prefix_ + key, bytesOf(value)); }
    std::optional<std::string> find(const std::string& key) override
    {
        if (!store_->check({prefix_ + key})) return std::nullopt;
        return textOf(store_->get(prefix_ + key));
    }
    std::string agree(const std::string& key, const std::string& value) override
    {
        return textOf(store_->compareSet(prefix_ + key, std::vector<std::uint8_t>{}, bytesOf(value)));
    }
    int count(const std::string& key) override { return static_cast<int>(store_->add(prefix_ + key, 1)); }

private:
    c10::intrusive_ptr<c10d::TCPStore> store_;
    std::string prefix_;
};

// Where a host has no name, c10d says so on standard error for each connection; what is wrong is in its exceptions.
class Quiet {
public:
    Quiet() : before_(std::exchange(FLAGS_caffe2_log_level, kErrors)) {}
    ~Quiet() { FLAGS_caffe2_log_level = before_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

private:
    static constexpr int kErrors = 2;
    int before_;
};

// Both kinds of addresses where the host has both.
Descriptor listenOn(int port)
{
    for (const int family : {AF_INET6, AF_INET}) {
        Descriptor descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (!descriptor.open()) continue;
        const int yes = 1;
        const int no = 0;
        ::setsockopt(descriptor.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); // what an earlier run left behind is no obstacle
        sockaddr_in6 six{};
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<std::uint16_t>(port));
        sockaddr_in four{};
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<std::uint16_t>(port));
        if (family == AF_INET6) ::setsockopt(descriptor.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        const int bound = family == AF_INET6 ? ::bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six)
                                             : ::bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four);
        if (bound == 0 && ::listen(descriptor.get(), SOMAXCONN) == 0) return descriptor;
        if (errno == EADDRINUSE) return {};
    }
    return {};
}

// c10d tries for itself as well, but says so on standard error each time. What comes of a try is empty, or why not.
std::string tryOnce(const MeetingPlace& place)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int unknown = ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found); unknown != 0)
        return ::gai_strerror(unknown);
    std::string why;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const Descriptor descriptor(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!descriptor.open()) continue;
        int error = 0;
        socklen_t size = sizeof error;
        if (::connect(descriptor.get(), each->ai_addr, each->ai_addrlen) != 0) {
            error = errno;
            if (error == EINPROGRESS && !becomes(descriptor.get(), POLLOUT)) error = ETIMEDOUT;
            else if (error == EINPROGRESS) ::getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        }
        if (error == 0) {
            why.clear();
            break;
        }
        why = std::strerror(error);
    }
    ::freeaddrinfo(found);
    return why;
}

Expected<void> reach(const MeetingPlace& place)
{
    const auto until = Clock::now() + place.patience;
    std::string why = tryOnce(place);
    while (!why.empty()) {
        if (Clock::now() >= until)
            return Error{"the ranks cannot meet: nobody answered at " + place.host + ":" + std::to_string(place.port) + " (MASTER_ADDR and MASTER_PORT) within " +
                         std::to_string(place.patience.count()) + " s: " + why +
                         ". Start rank 0 there, or give the address of the host that it is on; a firewall must let that port through"};
        std::this_thread::sleep_for(kRetry);
        why = tryOnce(place);
    }
    return {};
}

} // namespace

Expected<std::unique_ptr<MeetingPoint>> openMeetingPoint(const MeetingPlace& place)
{
    try {
        c10d::TCPStoreOptions options;
        options.port = static_cast<std::uint16_t>(place.port);
        options.isServer = place.serves;
        options.waitWorkers = false;
        options.timeout = place.patience;
        Descriptor listening;
        if (place.serves) {
            listening = listenOn(place.port);
            if (!listening.open())
                return Error{"rank 0 cannot have port " + std::to_string(place.port) + " (MASTER_PORT) for the ranks to meet at: " + std::strerror(errno) +
                             ". Give another to all of them, such as torchrun --master-port " + std::to_string(place.port < 60000 ? place.port + 1 : 29500)};
            options.masterListenFd = listening.get();
        } else if (auto reached = reach(place); !reached.ok()) {
            return reached.error();
        }
        static_cast<void>(listening.release()); // the store's from here on
        // its own client has the shortest way, whatever the others know the host by
        const Quiet quiet;
        auto store = c10::make_intrusive<c10d::TCPStore>(place.serves ? "localhost" : place.host, options);
        return std::unique_ptr<MeetingPoint>(std::make_unique<TorchStore>(std::move(store), "stagecraft/" + place.round + "/"));
    } catch (const std::exception& error) {
        const std::string text = error.what();
        return Error{"the ranks cannot meet at " + place.host + ":" + std::to_string(place.port) + " (MASTER_ADDR and MASTER_PORT): " + text.substr(0, text.find('\n'))};
    }
}

} // namespace stagecraft::runtime
