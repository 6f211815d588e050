// SPDX-License-Identifier: Apache-2.0
//
// TCP between the processes of a run, which meet as strangers: whoever connects shows that he knows a word, and is told it back.
//
//   Listener listener;                                             // on a port that the system chooses
//   publish(listener.port(), ownAddresses());
//   const Descriptor peer = connectTo("10.0.0.2", port);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// For an address, of which some may lead nowhere, and for the answer of a stranger.
inline constexpr std::chrono::milliseconds kStrangersPatience{1000};

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();

    [[nodiscard]] bool open() const { return number_ >= 0; }
    [[nodiscard]] int get() const { return number_; }
    [[nodiscard]] int release() { return std::exchange(number_, -1); } // whoever takes it closes it

private:
    int number_ = -1;
};

// Of IPv4, on all networks of this host; nothing is waited for.
class Listener {
public:
    Listener();
    [[nodiscard]] bool open() const { return port_ != 0; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] int get() const { return descriptor_.get(); }
    [[nodiscard]] Descriptor accept() const; // closed where nobody knocks

private:
    Descriptor descriptor_;
    std::uint16_t port_ = 0;
};

inline constexpr std::size_t kWordSize = 16;
std::string randomWord();

// Of every network that this host is in, those to itself last.
std::vector<std::string> ownAddresses();

Descriptor connectTo(const std::string& address, std::uint16_t port);
// POLLIN or POLLOUT, within a stranger's patience.
bool becomes(int descriptor, short event);
// Of what a socket holds at once.
bool sendAll(int descriptor, const void* bytes, std::size_t count);
std::optional<std::string> receiveAll(int descriptor, std::size_t count);

} // namespace stagecraft::runtime
