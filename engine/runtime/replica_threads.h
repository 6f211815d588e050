// SPDX-License-Identifier: Apache-2.0
//
// The threads that sum gradients and gather weights beside the computing: one for each rank, which does that rank's part of every
// collective that all its members have come to. Where a part has several rounds, a thread waits for the others between them; all come
// to the same collectives in the same order, so none can wait for another. A member gives again once its last collective is done, or
// where GPUs make it, asked for. Private to the runtime.
//
//   rank's thread     B(last) ...give... give... | wait -> OPTIMIZER
//   thread beside it            [0ALL_REDUCE][0ALL_REDUCE]
//
//   threads.give(turn, step, spans);                      // the rank's thread
//   std::optional<TimeNs> since = threads.wait(turns);    // none when cancelled
//   threads.settle(rank);                                 // it is prepared, all that it has waited for is recorded, and on GPUs done
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/collective_work.h"
#include "engine/runtime/replica_sums.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace stagecraft::runtime {

class ReplicaThreads {
public:
    struct Hooks {
        std::function<bool(Rank)> enter;  // before a part, on the rank's second thread; false: the run ends
        std::function<void(Rank)> rest;   // after it
        CollectiveWork::Record done;      // a part
        std::function<void(const Collective&)> whole = {}; // all parts; before anybody's wait ends
        std::function<void(Rank)> leave;  // at the end
        // A part has thrown; the run is to end, and the thread does.
        std::function<void(Rank, traces::Step, const traces::Work&, const std::exception_ptr&)> failed = {};
    };
    ReplicaThreads(int ranks, const Clock& clock, CollectiveWork& work, Hooks hooks);
    // Throws std::system_error where a thread cannot be started.
    void start(Rank rank);
    ReplicaThreads(const ReplicaThreads&) = delete;
    ReplicaThreads& operator=(const ReplicaThreads&) = delete;
    ~ReplicaThreads();

    void give(const Turn& turn, traces::Step step, std::vector<Collective::Values> values);
    // Until all of these collectives, to which the member has given, are done by all their members; when the last was.
    std::optional<TimeNs> wait(const std::vector<Turn>& turns);
    [[nodiscard]] bool done(const std::vector<Turn>& turns);
    void settle(Rank rank);
    void cancel();

    // What a rank holds when it has changed beside its own thread, which takes it to where its samples go.
    void note(Rank rank, const MemorySample& sample);
    [[nodiscard]] std::vector<MemorySample> takeNoted(Rank rank);

private:
    struct Part {
        const Collective* collective = nullptr; // none: all so far is to be settled
        std::size_t member = 0;
    };
    struct State {
        traces::Step step{};
        std::vector<int> given; // by member: how often
        int ended = 0;           // how often it was done
        std::size_t through = 0; // of all members, the rounds that are
        TimeNs ready = 0;
        Rank last{};
        TimeNs doneAt = 0;
    };
    void serve(Rank rank);
    bool make(Rank rank, const Part& part, CollectiveSpan span);
    bool meet(Rank rank, const Part& part, int round);
    [[nodiscard]] bool isDone(const Turn& turn) const;

    const Clock& clock_;
    CollectiveWork& work_;
    const Hooks hooks_;
    std::mutex mutex_; // guards what follows, but not the threads
    std::condition_variable changed_;
    std::vector<std::deque<Part>> waiting_; // by rank
    std::vector<int> settles_;              // by rank, how often that is still to be done
    std::map<const Collective*, State> states_;
    std::vector<std::vector<MemorySample>> noted_; // by rank
    bool cancelled_ = false;
    std::vector<std::jthread> threads_; // last: they use the others
};

} // namespace stagecraft::runtime
