// SPDX-License-Identifier: Apache-2.0
//
// Knows at once when a process of the run is no more: each has a TCP connection to rank 0's, and the kernel closes it whatever a process
// dies of. MPI does not tell: its shared memory stays silent, and mpirun ends the others without a word to them. Rank 0 passes on whom it
// lost. A process that leaves says so first.
//
//   LifeLine line(LifeLine::Listen{});                    // rank 0; its invitation() goes to the others
//   LifeLine line(LifeLine::Join{invitation, rank});      // the others
//   line.watch(200us, [](int rank) { ... });              // lets the time pass; one thread
#pragma once

#include "engine/transport/tcp/sockets.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

class LifeLine {
public:
    struct Listen {};
    struct Join {
        std::string invitation;
        int rank = 0;
    };
    explicit LifeLine(Listen);
    explicit LifeLine(const Join& join);
    ~LifeLine();
    LifeLine(const LifeLine&) = delete;
    LifeLine& operator=(const LifeLine&) = delete;

    // Where rank 0 is reached, and by which word the two know each other; empty where it cannot listen.
    [[nodiscard]] const std::string& invitation() const { return invitation_; }
    // To rank 0, or of rank 0 to so many others. Who has none is watched by mpirun or torchrun alone.
    [[nodiscard]] int connections();

    void watch(std::chrono::microseconds time, const std::function<void(int rank)>& lost);
    // From now on the end of a connection is none of a process.
    void leave();

private:
    struct Peer {
        Descriptor descriptor = {};
        bool leaving = false;
    };

    // Has connected and not said the whole word yet: anybody of any network, for whom nobody waits.
    struct Stranger {
        Descriptor descriptor;
        std::string said;
        std::chrono::steady_clock::time_point until; // then he is sent away
    };

    void accept();
    bool hearStranger(Stranger& stranger); // false: he is none any more
    void hear(int rank, const std::function<void(int rank)>& lost);
    void passOn(int lostRank);
    bool greet(int descriptor, int rank) const;

    std::string word_; // by which the processes of one run know each other
    std::string invitation_;
    std::optional<Listener> listening_; // rank 0's
    std::vector<Stranger> strangers_; // of the thread that watches
    std::mutex mutex_; // guards peers_
    std::map<int, Peer> peers_; // by rank
};

} // namespace stagecraft::runtime
