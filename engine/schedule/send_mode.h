// SPDX-License-Identifier: Apache-2.0
//
// What a SEND waits for, and which message a RECV may take. An order of actions that one kind of transport executes can hang on
// another, so whoever executes or judges a schedule is told the kind.
//
//   const std::optional<SendMode> mode = sendModeOf("rendezvous");
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft::engine {

enum class SendMode : std::uint8_t {
    Buffered,   // a send costs its rank nothing and never waits; a receipt takes the message it names, whatever came before it
    Rendezvous, // a send waits until the other side receives
    Channel,    // buffered, but the messages from one rank to another are one queue: a receipt can take the first only
};

inline constexpr std::array<SendMode, 3> kSendModes{SendMode::Buffered, SendMode::Rendezvous, SendMode::Channel};

// The words of plans and of the command line.
constexpr std::string_view sendModeName(SendMode mode)
{
    switch (mode) {
    case SendMode::Buffered: return "buffered";
    case SendMode::Rendezvous: return "rendezvous";
    case SendMode::Channel: return "channel";
    }
    return {};
}

constexpr std::optional<SendMode> sendModeOf(std::string_view name)
{
    for (const SendMode mode : kSendModes)
        if (sendModeName(mode) == name) return mode;
    return std::nullopt;
}

} // namespace stagecraft::engine
