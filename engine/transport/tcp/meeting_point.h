// SPDX-License-Identifier: Apache-2.0
//
// Where processes that know nothing of each other leave word: the key-value store of torchrun and of whatever sets its variables
// (c10d's TCPStore). It lives in rank 0's process, or in torchrun's agent.
//
//   Expected<std::unique_ptr<MeetingPoint>> point = openMeetingPoint({.host = "node1", .port = 29500, .serves = rank == 0, .patience = 60s});
//   point.value()->put("address/1", "10.0.0.2");
//   if (const std::optional<std::string> address = point.value()->find("address/0")) ...
#pragma once

#include "traces/base/expected.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stagecraft::runtime {

// Its owner's thread. It throws where the store is gone, or does not answer for as long as its patience.
class MeetingPoint {
public:
    virtual ~MeetingPoint() = default;
    virtual void put(const std::string& key, const std::string& value) = 0;
    virtual std::optional<std::string> find(const std::string& key) = 0;               // does not wait
    virtual std::string agree(const std::string& key, const std::string& value) = 0; // what the first of all said
    virtual int count(const std::string& key) = 0;                                   // how many have come here before, and oneself
};

struct MeetingPlace {
    std::string host; // MASTER_ADDR
    int port = 0;     // MASTER_PORT
    bool serves = false; // the store is this process'
    std::chrono::seconds patience{60};
    std::string round = {}; // of torchrun's runs and restarts, which may have one store: what another left there is not seen
};

// Errors: the port is in use, or another program's; the host is not known or not reached in time; with the remedy.
traces::Expected<std::unique_ptr<MeetingPoint>> openMeetingPoint(const MeetingPlace& place);

// One to try in place of a port that is somebody else's.
constexpr int otherPort(int port) { return port < 60000 ? port + 1 : 29500; }

} // namespace stagecraft::runtime
