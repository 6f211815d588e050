// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/meeting_point.h"

#include "engine/transport/tcp/sockets.h"
#include "engine/transport/tcp/store_client.h"
#include "engine/transport/tcp/store_protocol.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStoreBackend.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>

namespace stagecraft::runtime {

namespace {

using traces::Error;
using traces::Expected;
using Theirs = c10d::detail::QueryType;

constexpr bool same(StoreQuery ours, Theirs theirs) { return static_cast<std::uint8_t>(ours) == static_cast<std::uint8_t>(theirs); }

static_assert(same(StoreQuery::Validate, Theirs::VALIDATE) && same(StoreQuery::Ping, Theirs::PING) && same(StoreQuery::Set, Theirs::SET) &&
              same(StoreQuery::CompareSet, Theirs::COMPARE_SET) && same(StoreQuery::Get, Theirs::GET) && same(StoreQuery::Add, Theirs::ADD) &&
              same(StoreQuery::Check, Theirs::CHECK));
static_assert(kStoreMagic == c10d::detail::validationMagicNumber && kStoreHasAll == static_cast<std::uint8_t>(c10d::detail::CheckResponseType::READY));

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

// The shortest way to one's own store, whatever the others know the host by.
constexpr const char* kItself = "localhost";

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

// The store, in this process. Its constructor asks it something, as the client that nobody uses here.
Expected<std::shared_ptr<void>> serve(const MeetingPlace& place)
{
    Descriptor listening = listenOn(place.port);
    if (!listening.open())
        return Error{"rank 0 cannot have port " + std::to_string(place.port) + " (MASTER_PORT) for the ranks to meet at: " + std::strerror(errno) +
                     ". Give another to all of them, such as torchrun --master-port " + std::to_string(otherPort(place.port))};
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(place.port);
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = place.patience;
    options.masterListenFd = listening.release(); // the store's from here on
    try {
        const Quiet quiet;
        return std::shared_ptr<void>(std::make_shared<c10::intrusive_ptr<c10d::TCPStore>>(c10::make_intrusive<c10d::TCPStore>(kItself, options)));
    } catch (const std::exception& error) {
        const std::string text = error.what(); // c10's have the stack below
        return Error{"rank 0 cannot keep the place where the ranks meet, port " + std::to_string(place.port) +
                     " (MASTER_PORT): " + text.substr(0, text.find('\n'))};
    }
}

} // namespace

Expected<std::unique_ptr<MeetingPoint>> openMeetingPoint(const MeetingPlace& place)
{
    if (!place.serves) return joinStore(place);
    Expected<std::shared_ptr<void>> store = serve(place);
    if (!store.ok()) return store.error();
    MeetingPlace here = place;
    here.host = kItself;
    return joinStore(here, std::move(store).value());
}

} // namespace stagecraft::runtime
