// SPDX-License-Identifier: Apache-2.0
//
// How the processes of a run come to be connected, each with each (tcp_port.h has the picture).
//
//   TcpMesh mesh(*point, self);
//   Expected<std::vector<Descriptor>> connections = mesh.connect();     // by rank; one's own is closed
#pragma once

#include "engine/transport/tcp/sockets.h"
#include "engine/transport/tcp/tcp_port.h"

#include <string>
#include <vector>

namespace stagecraft::runtime {

class TcpMesh {
public:
    TcpMesh(MeetingPoint& point, const TcpMember& self);
    // Once. The higher of two ranks connects to the lower, and listens to those above it all the while.
    traces::Expected<std::vector<Descriptor>> connect();

private:
    // Has connected, and not shown yet that he is one of the run.
    struct Stranger {
        Descriptor descriptor;
        std::string said;
        bool answered = false;
        std::chrono::steady_clock::time_point until;
    };

    traces::Expected<void> announce();
    void listen();
    bool hear(Stranger& stranger); // false: he is none any more
    void tryPeer(int rank);
    bool greet(int descriptor, const std::string& word) const;
    [[nodiscard]] std::string missing();

    MeetingPoint& point_;
    TcpMember self_;
    Listener listener_;
    std::string word_ = randomWord();
    std::vector<Stranger> strangers_;
    std::vector<Descriptor> connections_; // by rank
};

} // namespace stagecraft::runtime
