// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/tcp/store_client.h"

#include "engine/transport/tcp/sockets.h"
#include "engine/transport/tcp/store_protocol.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stagecraft::runtime {

namespace {

using traces::Error;
using traces::Expected;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::seconds kFirstAnswer{10}; // of one connection: another address of the host, or another connection, may be answered
constexpr std::uint64_t kLongestValue = 1U << 20U;
constexpr std::size_t kQuoted = 48; // bytes of a stranger's answer

std::string nameOf(const MeetingPlace& place) { return place.host + ":" + std::to_string(place.port) + " (MASTER_ADDR and MASTER_PORT)"; }

// Something has happened to the descriptor, if only its end.
bool stirs(int descriptor, short event, Clock::time_point until)
{
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd waiting{descriptor, event, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, INT_MAX)));
        if (ready >= 0 || errno != EINTR) return ready > 0;
    }
}

enum class Came : std::uint8_t { All, End, Silence };

Came send(int descriptor, std::string_view bytes, Clock::time_point until)
{
    while (!bytes.empty()) {
        const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR) return Came::End;
        else if (!stirs(descriptor, POLLOUT, until)) return Came::Silence;
    }
    return Came::All;
}

// Until `bytes` has so many.
Came receive(int descriptor, std::string& bytes, std::size_t count, Clock::time_point until)
{
    std::array<char, 4096> some{};
    while (bytes.size() < count) {
        const ssize_t got = ::recv(descriptor, some.data(), std::min(some.size(), count - bytes.size()), 0);
        if (got > 0) bytes.append(some.data(), static_cast<std::size_t>(got));
        else if (got == 0 || (errno != EAGAIN && errno != EINTR)) return Came::End;
        else if (!stirs(descriptor, POLLIN, until)) return Came::Silence;
    }
    return Came::All;
}

class Query {
public:
    explicit Query(StoreQuery query) : bytes_(1, static_cast<char>(query)) {}
    template <class Number>
    Query& number(Number number)
    {
        std::array<char, sizeof number> raw{};
        std::memcpy(raw.data(), &number, sizeof number);
        bytes_.append(raw.data(), raw.size());
        return *this;
    }
    Query& text(const std::string& text)
    {
        number(std::uint64_t{text.size()});
        bytes_ += text;
        return *this;
    }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

template <class Number>
Number numberIn(const std::string& bytes)
{
    Number number{};
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

class StoreClient final : public MeetingPoint {
public:
    StoreClient(Descriptor connection, const MeetingPlace& place, std::shared_ptr<void> kept)
        : kept_(std::move(kept)), connection_(std::move(connection)), place_(place)
    {
    }

    void put(const std::string& key, const std::string& value) override { tell(Query(StoreQuery::Set).text(full(key)).text(value)); }
    std::optional<std::string> find(const std::string& key) override
    {
        tell(Query(StoreQuery::Check).number(std::uint64_t{1}).text(full(key)));
        if (hear<std::uint8_t>() != kStoreHasAll) return std::nullopt;
        tell(Query(StoreQuery::Get).text(full(key)));
        return hearText();
    }
    std::string agree(const std::string& key, const std::string& value) override
    {
        tell(Query(StoreQuery::CompareSet).text(full(key)).text("").text(value));
        return hearText();
    }
    int count(const std::string& key) override
    {
        tell(Query(StoreQuery::Add).text(full(key)).number(std::int64_t{1}));
        return static_cast<int>(hear<std::int64_t>());
    }

private:
    [[nodiscard]] std::string full(const std::string& key) const { return "/stagecraft/" + place_.round + "/" + key; }

    void tell(const Query& query) { check(send(connection_.get(), query.bytes(), Clock::now() + place_.patience)); }
    std::string hear(std::size_t count)
    {
        std::string bytes;
        check(receive(connection_.get(), bytes, count, Clock::now() + place_.patience));
        return bytes;
    }
    template <class Number>
    Number hear()
    {
        return numberIn<Number>(hear(sizeof(Number)));
    }
    std::string hearText()
    {
        const auto size = hear<std::uint64_t>();
        if (size > kLongestValue) throw std::runtime_error(nameOf(place_) + " answers what no store of c10d does");
        return hear(size);
    }
    void check(Came came) const
    {
        if (came == Came::End)
            throw std::runtime_error(nameOf(place_) + " has closed the connection, so the process that keeps it, rank 0 or torchrun, has ended; it says why");
        if (came == Came::Silence)
            throw std::runtime_error(nameOf(place_) + " has not answered for " + std::to_string(place_.patience.count()) +
                                     " s, so the process that keeps it, rank 0 or torchrun, is stopped, or the network to it is broken");
    }

    std::shared_ptr<void> kept_;
    Descriptor connection_;
    MeetingPlace place_;
};

// Whom one finds, the more telling the later.
enum class Found : std::uint8_t { Nobody, Silence, End, Stranger, Store };

struct Try {
    Found found = Found::Nobody;
    std::string words = {}; // why nobody is there, or what a stranger said
    Descriptor connection = {};
};

std::string quoted(const std::string& said)
{
    const auto printable = [](char letter) { return letter >= ' ' && letter <= '~'; };
    return {said.begin(), std::find_if_not(said.begin(), said.end(), printable)};
}

Try greet(Descriptor connection, Clock::time_point until)
{
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    const std::string greeting = Query(StoreQuery::Validate).number(kStoreMagic).bytes() + Query(StoreQuery::Ping).number(nonce).bytes();
    Came came = send(connection.get(), greeting, until);
    std::string said;
    // who has closed it may have said something before
    if (const Came answer = receive(connection.get(), said, sizeof nonce, until); came == Came::All) came = answer;
    if (came == Came::All && numberIn<std::uint32_t>(said) == nonce) return {Found::Store, {}, std::move(connection)};
    if (said.empty()) return {came == Came::End ? Found::End : Found::Silence};
    static_cast<void>(receive(connection.get(), said, kQuoted, Clock::now()));
    return {Found::Stranger, quoted(said)};
}

Try tryAddress(const addrinfo& address, Clock::time_point until)
{
    Descriptor connection(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection.open()) return {Found::Nobody, std::strerror(errno)};
    const int yes = 1;
    ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); // a query and its answer are small
    int error = 0;
    socklen_t size = sizeof error;
    if (::connect(connection.get(), address.ai_addr, address.ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS && !stirs(connection.get(), POLLOUT, Clock::now() + kStrangersPatience)) error = ETIMEDOUT;
        else if (error == EINPROGRESS) ::getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) return {Found::Nobody, std::strerror(error)};
    const auto now = Clock::now();
    return greet(std::move(connection), std::max(std::min(until, now + kFirstAnswer), now + kStrangersPatience));
}

Try tryOnce(const MeetingPlace& place, Clock::time_point until)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int unknown = ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found); unknown != 0)
        return {Found::Nobody, ::gai_strerror(unknown)};
    Try best;
    for (const addrinfo* each = found; each != nullptr && best.found != Found::Store; each = each->ai_next)
        if (Try one = tryAddress(*each, until); one.found > best.found || each == found) best = std::move(one);
    ::freeaddrinfo(found);
    return best;
}

std::string reason(const MeetingPlace& place, const Try& last)
{
    const std::string within = " within " + std::to_string(place.patience.count()) + " s";
    if (last.found == Found::Nobody)
        return "the ranks cannot meet: nobody answered at " + nameOf(place) + within + ": " + last.words +
               ". Start rank 0 there, or give the address of the host that it is on; a firewall must let that port through";
    const std::string meet = "the ranks cannot meet at " + nameOf(place) + ": ";
    const std::string remedy = ". Give all ranks another port, such as torchrun --master-port " + std::to_string(otherPort(place.port)) + ", and start rank 0 there";
    if (last.found == Found::Stranger)
        return meet + "another program listens there, which answers " + (last.words.empty() ? "in another protocol" : "\"" + last.words + "\"") + remedy;
    if (last.found == Found::End)
        return meet + "what listens there closes each connection without an answer" + within + "; it is another program, or a way to a host where rank 0 is not" +
               remedy;
    return meet + "what listens there takes the connection, but has said nothing" + within + "; it is another program, or rank 0 is stopped" + remedy;
}

} // namespace

Expected<std::unique_ptr<MeetingPoint>> joinStore(const MeetingPlace& place, std::shared_ptr<void> kept)
{
    const auto until = Clock::now() + place.patience;
    for (;;) {
        Try last = tryOnce(place, until);
        if (last.found == Found::Store) return std::unique_ptr<MeetingPoint>(std::make_unique<StoreClient>(std::move(last.connection), place, std::move(kept)));
        if (last.found == Found::Stranger || Clock::now() >= until) return Error{reason(place, last)};
        std::this_thread::sleep_for(kRetry);
    }
}

} // namespace stagecraft::runtime
