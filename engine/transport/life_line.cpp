// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/life_line.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace stagecraft::runtime {

namespace {

constexpr std::size_t kGreetingSize = kWordSize + sizeof(std::int32_t); // the word, then the rank

// What one end says to the other: a letter and a rank.
constexpr char kLeaving = 'B';
constexpr char kLost = 'L';
struct Saying {
    char what = 0;
    std::int32_t rank = 0;
};

} // namespace

LifeLine::LifeLine(Listen) : word_(randomWord()), listening_(std::in_place)
{
    if (!listening_->open()) return;
    invitation_ = word_ + " " + std::to_string(listening_->port());
    for (const std::string& own : ownAddresses()) invitation_ += " " + own;
}

LifeLine::LifeLine(const Join& join)
{
    std::istringstream words(join.invitation);
    unsigned port = 0;
    words >> word_ >> port;
    for (std::string host; words >> host;) {
        Descriptor descriptor = connectTo(host, static_cast<std::uint16_t>(port));
        if (!descriptor.open() || !greet(descriptor.get(), join.rank)) continue; // another program of another host
        peers_[0].descriptor = std::move(descriptor);
        return;
    }
}

LifeLine::~LifeLine() = default;

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
    if (Descriptor descriptor = listening_->accept(); descriptor.open())
        strangers_.push_back({std::move(descriptor), {}, std::chrono::steady_clock::now() + kStrangersPatience});
}

bool LifeLine::hearStranger(Stranger& stranger)
{
    std::array<char, kGreetingSize> bytes{};
    const ssize_t got = ::recv(stranger.descriptor.get(), bytes.data(), kGreetingSize - stranger.said.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got > 0) stranger.said.append(bytes.data(), static_cast<std::size_t>(got));
    const std::size_t known = std::min(stranger.said.size(), kWordSize);
    const bool welcome = got > 0 && stranger.said.compare(0, known, word_, 0, known) == 0;
    if (welcome && stranger.said.size() < kGreetingSize) return true;
    if (!welcome || !sendAll(stranger.descriptor.get(), word_.data(), word_.size())) return false;
    std::int32_t rank = 0;
    std::memcpy(&rank, stranger.said.data() + kWordSize, sizeof rank);
    const std::lock_guard lock(mutex_);
    peers_[rank].descriptor = std::move(stranger.descriptor);
    return false;
}

void LifeLine::watch(std::chrono::microseconds time, const std::function<void(int rank)>& lost)
{
    std::vector<pollfd> waiting;
    std::vector<int> ranks;
    if (listening_) waiting.push_back({listening_->get(), POLLIN, 0});
    for (const Stranger& stranger : strangers_) waiting.push_back({stranger.descriptor.get(), POLLIN, 0});
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [rank, peer] : peers_) {
            waiting.push_back({peer.descriptor.get(), POLLIN, 0});
            ranks.push_back(rank);
        }
    }
    const timespec until{0, std::chrono::nanoseconds(time).count()};
    if (::ppoll(waiting.data(), waiting.size(), &until, nullptr) < 0) return;
    auto next = waiting.begin();
    const bool knocks = listening_ && (next++)->revents != 0;
    std::vector<Stranger> still;
    for (Stranger& stranger : std::exchange(strangers_, {})) {
        const bool speaks = (next++)->revents != 0;
        if (speaks && !hearStranger(stranger)) continue;
        if (std::chrono::steady_clock::now() < stranger.until) still.push_back(std::move(stranger));
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
        const ssize_t got = ::recv(peer.descriptor.get(), &saying, sizeof saying, MSG_DONTWAIT);
        if (got == sizeof saying) {
            if (saying.what == kLeaving) peer.leaving = true;
            if (saying.what == kLost) gone = saying.rank;
        } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            if (!peer.leaving) gone = rank;
            peers_.erase(rank);
        }
    }
    if (gone < 0) return;
    passOn(gone);
    lost(gone);
}

void LifeLine::passOn(int lostRank)
{
    if (!listening_) return;
    const std::lock_guard lock(mutex_);
    const Saying saying{kLost, lostRank};
    for (const auto& [rank, peer] : peers_) sendAll(peer.descriptor.get(), &saying, sizeof saying);
}

void LifeLine::leave()
{
    const std::lock_guard lock(mutex_);
    const Saying saying{kLeaving, 0};
    for (auto& [rank, peer] : peers_) {
        sendAll(peer.descriptor.get(), &saying, sizeof saying);
        peer.leaving = true;
    }
}

} // namespace stagecraft::runtime
