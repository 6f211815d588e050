// SPDX-License-Identifier: Apache-2.0
//
// Message ports over TCP between "processes" that are threads of the test, which meet in memory.
//
//   const std::unique_ptr<Net> net = makeNet(NetKind::Tcp, 2);
//   std::unique_ptr<MessagePort> port = net->port(0);
#pragma once

#include "engine/transport/tcp/tcp_port.h"
#include "tests/runtime/local_ports.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// What c10d's store does.
class MemoryMeeting final : public MeetingPoint {
public:
    void put(const std::string& key, const std::string& value) override
    {
        const std::lock_guard lock(mutex_);
        values_[key] = value;
    }
    std::optional<std::string> find(const std::string& key) override
    {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(key);
        return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    std::string agree(const std::string& key, const std::string& value) override
    {
        const std::lock_guard lock(mutex_);
        return values_.try_emplace(key, value).first->second;
    }
    int count(const std::string& key) override
    {
        const std::lock_guard lock(mutex_);
        return ++counts_[key];
    }

private:
    std::mutex mutex_; // guards both
    std::map<std::string, std::string> values_;
    std::map<std::string, int> counts_;
};

class TcpNet final : public Net {
public:
    explicit TcpNet(int size) : ports_(static_cast<std::size_t>(size))
    {
        const auto meeting = std::make_shared<MemoryMeeting>();
        std::vector<std::jthread> processes;
        for (int r = 0; r < size; ++r)
            processes.emplace_back([this, meeting, r, size] {
                traces::Expected<std::unique_ptr<MessagePort>> port = openTcpPort(meeting, {.rank = r, .size = size});
                EXPECT_TRUE(port.ok()) << port.error().message;
                if (port.ok()) ports_[static_cast<std::size_t>(r)] = std::move(port).value();
            });
    }
    std::unique_ptr<MessagePort> port(int rank) override { return std::move(ports_[static_cast<std::size_t>(rank)]); }

private:
    std::vector<std::unique_ptr<MessagePort>> ports_;
};

enum class NetKind { Memory, Tcp };

inline void PrintTo(NetKind kind, std::ostream* out) { *out << (kind == NetKind::Tcp ? "tcp" : "memory"); }

inline std::unique_ptr<Net> makeNet(NetKind kind, int size)
{
    if (kind == NetKind::Tcp) return std::make_unique<TcpNet>(size);
    return std::make_unique<LocalNet>(size);
}

inline std::string netName(const testing::TestParamInfo<NetKind>& kind) { return kind.param == NetKind::Tcp ? "Tcp" : "Memory"; }

} // namespace stagecraft::runtime
