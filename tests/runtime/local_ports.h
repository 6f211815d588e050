// SPDX-License-Identifier: Apache-2.0
//
// Message ports between "processes" that are threads of the test: what MPI does, without MPI. Bytes are copied no earlier than the
// receiver asks for them, so a sender that lets go too soon is found.
//
//   LocalNet net(2);
//   std::unique_ptr<MessagePort> port = net.port(0);
//   std::unique_ptr<MessagePort> late = std::make_unique<LatePort>(net.port(1), largeOnesLate);
#pragma once

#include "engine/transport/message_port.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace stagecraft::runtime {

// The ports of a run's processes, each to be had once.
class Net {
public:
    virtual ~Net() = default;
    virtual std::unique_ptr<MessagePort> port(int rank) = 0;
};

class LocalNet final : public Net {
public:
    explicit LocalNet(int size) : size_(size) {}
    std::unique_ptr<MessagePort> port(int rank) override { return std::make_unique<Port>(*this, rank); }

private:
    struct Message {
        std::span<const std::byte> bytes;
        bool taken = false;
    };
    using Way = std::tuple<int, int, MessagePort::Channel>; // from, to

    class Port final : public MessagePort {
    public:
        Port(LocalNet& net, int rank) : net_(net), rank_(rank) {}
        [[nodiscard]] int rank() const override { return rank_; }
        [[nodiscard]] int size() const override { return net_.size_; }

        Ticket send(int to, Channel channel, std::span<const std::byte> bytes) override
        {
            const std::lock_guard lock(net_.mutex_);
            auto message = std::make_shared<Message>(Message{bytes});
            net_.sent_[{rank_, to, channel}].push_back(message);
            sends_[++last_] = message;
            return last_;
        }
        Ticket receive(int from, Channel channel, std::span<std::byte> room) override
        {
            receives_[++last_] = {{from, rank_, channel}, asked_[{from, rank_, channel}]++, room};
            return last_;
        }
        bool done(Ticket ticket) override
        {
            const std::lock_guard lock(net_.mutex_);
            if (const auto sent = sends_.find(ticket); sent != sends_.end()) {
                if (!sent->second->taken) return false;
                sends_.erase(sent);
                return true;
            }
            const Receive& receive = receives_.at(ticket);
            const auto& messages = net_.sent_[receive.way];
            if (messages.size() <= receive.number) return false;
            Message& message = *messages[receive.number];
            std::copy(message.bytes.begin(), message.bytes.end(), receive.room.begin());
            message.taken = true;
            receives_.erase(ticket);
            return true;
        }
        std::optional<Arriving> arriving() override
        {
            const std::lock_guard lock(net_.mutex_);
            for (int from = 0; from < net_.size_; ++from) {
                const Way way{from, rank_, Channel::Heads};
                const auto& messages = net_.sent_[way];
                if (messages.size() > asked_[way]) return Arriving{from, messages[asked_[way]]->bytes.size()};
            }
            return std::nullopt;
        }
        void finish() override {}

    private:
        struct Receive {
            Way way;
            std::size_t number = 0;
            std::span<std::byte> room;
        };
        LocalNet& net_;
        int rank_;
        std::map<Ticket, std::shared_ptr<Message>> sends_;
        std::map<Ticket, Receive> receives_;
        std::map<Way, std::size_t> asked_;
        Ticket last_ = 0;
    };

    int size_;
    std::mutex mutex_; // guards sent_
    std::map<Way, std::vector<std::shared_ptr<Message>>> sent_;
};

// Receives are not done as soon as they could be, nor in their order: what comes to MPI in pieces is overtaken by what does not.
class LatePort final : public MessagePort {
public:
    struct Asked {
        Channel channel = Channel::Heads;
        std::size_t bytes = 0;
        int times = 0; // before, whether it is done
    };
    using IsLate = std::function<bool(const Asked&)>;
    LatePort(std::unique_ptr<MessagePort> port, IsLate isLate) : port_(std::move(port)), isLate_(std::move(isLate)) {}

    [[nodiscard]] int rank() const override { return port_->rank(); }
    [[nodiscard]] int size() const override { return port_->size(); }
    Ticket send(int to, Channel channel, std::span<const std::byte> bytes) override { return port_->send(to, channel, bytes); }
    Ticket receive(int from, Channel channel, std::span<std::byte> room) override
    {
        const Ticket ticket = port_->receive(from, channel, room);
        asked_[ticket] = {channel, room.size(), 0};
        return ticket;
    }
    bool done(Ticket ticket) override
    {
        const auto asked = asked_.find(ticket);
        if (asked == asked_.end()) return port_->done(ticket);
        if (isLate_(asked->second)) {
            ++asked->second.times;
            return false;
        }
        if (!port_->done(ticket)) return false;
        asked_.erase(asked);
        return true;
    }
    std::optional<Arriving> arriving() override { return port_->arriving(); }
    void finish() override { port_->finish(); }

private:
    std::unique_ptr<MessagePort> port_;
    IsLate isLate_;
    std::map<Ticket, Asked> asked_;
};

} // namespace stagecraft::runtime
