// SPDX-License-Identifier: Apache-2.0
//
// NCCL without GPUs: all ranks are in this process, "device memory" is the test's, and a device carries out its groups one after the other,
// in the order in which all its communicators were given them: as a GPU that has room for one kernel of NCCL alone. A group is carried out
// when all that it is with have come to theirs; two ranks are connected when both have first issued something for each other; a call is
// done after so many looks. It notes what it is asked for, and what it must never be asked for.
//
//   FakeNccl nccl;
//   NcclClique clique({.api = nccl.api(), .clock = clock}, {.size = 2, .members = {{0, 0}, {1, 1}}, .useDevice = FakeNccl::useDevice});
//   nccl.fail(1, ncclRemoteError);
//   EXPECT_THAT(nccl.log(), ...);
#pragma once

#include "engine/transport/nccl/nccl_api.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

class FakeNccl {
public:
    FakeNccl();
    ~FakeNccl();
    FakeNccl(const FakeNccl&) = delete;
    FakeNccl& operator=(const FakeNccl&) = delete;

    static NcclApi api();
    static Expected<void> useDevice(int device); // of the calling thread

    // Beside other fakes (fake_gpu): where the calling thread is, whose device the test's own useDevice() has set.
    void takeDeviceFrom(std::function<int()> current);
    // Each exchange and sum that a rank asks for is told, with the stream that was given for it; what is returned is called when it is carried out,
    // or its communicator ended.
    struct Side {
        void* stream = nullptr;
        std::vector<const void*> reads;
        std::vector<const void*> writes;
    };
    using Over = std::function<void()>;
    void tellExchanges(std::function<Over(const Side&)> tell);
    // The streams of those that meet in an exchange, before that is over.
    void tellMeetings(std::function<void(const std::vector<void*>& streams)> tell);

    void answerInProgress(int looks);              // to each call, before it is done
    void fail(int rank, NcclResult state);         // asynchronously
    void failCall(std::string call, NcclResult result); // the next "init", "send", "recv", "allReduce", "groupEnd" or "finalize"
    void hang(int rank);                           // in its next groupEnd, until its communicator is ended
    void takeGpusAway();

    [[nodiscard]] std::vector<std::string> log() const;    // "init 0/2", "group 0: >1 4 <1 4", "sum 0: 3 5", "abort 0", ...
    [[nodiscard]] std::vector<std::string> misuse() const; // calls with an ended communicator, groups left open, sums that do not fit each other
    [[nodiscard]] std::size_t carriedOut(int rank) const;  // of its groups
    [[nodiscard]] bool hangs() const;

private:
    struct Part {
        char kind = '>'; // send, '<' receive, '+' sum, '/' mean
        const void* from = nullptr;
        void* to = nullptr;
        std::size_t count = 0;
        int peer = 0;
        void* stream = nullptr;
    };
    struct Communicator {
        int rank = 0;
        int size = 0;
        int device = 0;
        NcclId id;
        bool ended = false;
        bool joined = false; // has met the others
        NcclResult state = 7;
        int looks = 0;
        std::deque<std::vector<Part>> groups; // not carried out
        std::deque<Over> overs;               // of those
        std::size_t carriedOut = 0;
    };
    struct Open { // a group of this thread
        int depth = 0;
        bool began = false; // communicators
        std::vector<std::pair<Communicator*, Part>> parts;
    };

    static FakeNccl& one();
    static Open& open();
    NcclResult refusal(const std::string& call);
    NcclResult init(void** handle, int size, const NcclId& id, int rank);
    NcclResult add(void* handle, Part part);
    NcclResult end();
    NcclResult look(void* handle, NcclResult* state);
    NcclResult finishOne(void* handle, const char* what);
    Communicator* alive(void* handle, const char* call);
    void work();
    bool carryOut(Communicator& communicator);
    [[nodiscard]] Over tellExchange(const std::vector<Part>& group) const;
    bool connected(const Communicator& communicator) const;
    Communicator* other(const Communicator& communicator, int rank) const;
    bool meets(const Communicator& communicator, std::set<Communicator*>& all) const;
    [[nodiscard]] bool isNext(const Communicator& communicator) const; // of its device
    void move(Communicator& communicator);
    void sum(const std::set<Communicator*>& all);

    mutable std::mutex mutex_;
    std::condition_variable released_;
    std::vector<std::unique_ptr<Communicator>> communicators_;
    std::set<std::pair<NcclId, std::pair<int, int>>> connected_; // pairs of ranks of a clique
    std::map<int, std::deque<const Communicator*>> issued_; // by device: whose groups it has before it
    std::map<std::string, NcclResult> failing_;
    std::set<int> hanging_;
    bool hangs_ = false;
    bool gpus_ = true;
    std::function<int()> currentDevice_;
    std::function<Over(const Side&)> tell_;
    std::function<void(const std::vector<void*>&)> tellMet_;
    int looks_ = 1;
    std::vector<std::string> log_;
    std::vector<std::string> misuse_;
    std::string last_;
};

} // namespace stagecraft::runtime
