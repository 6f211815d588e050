// SPDX-License-Identifier: Apache-2.0
//
// The threads that sum gradients and gather weights beside the computing: one for each rank, which does that rank's part of every
// collective that all its members have come to. Nobody waits within a collective, so none can wait for another. A member gives again
// once its last collective is done. Private to the runtime.
//
//   rank's thread     B(last) ...give... give... | wait -> OPTIMIZER
//   thread beside it            [0ALL_REDUCE][0ALL_REDUCE]
//
//   threads.give(turn, step, spans);                      // the rank's thread
//   std::optional<TimeNs> since = threads.wait(turns);    // none when cancelled
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/replica_sums.h"

#include <condition_variable>
#include <deque>
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
        std::function<void(const Collective&, std::size_t member, const CollectiveSpan&)> done; // a part
        std::function<void(const Collective&)> whole = {}; // all parts; before anybody's wait ends
        std::function<void(Rank)> leave;  // at the end
    };
    ReplicaThreads(int ranks, const Clock& clock, Hooks hooks);
    // Throws std::system_error where a thread cannot be started.
    void start(Rank rank);
    ReplicaThreads(const ReplicaThreads&) = delete;
    ReplicaThreads& operator=(const ReplicaThreads&) = delete;
    ~ReplicaThreads();

    void give(const Turn& turn, traces::Step step, std::vector<std::span<float>> values);
    // Until all of these collectives, to which the member has given, are done by all their members; when the last was.
    std::optional<TimeNs> wait(const std::vector<Turn>& turns);
    [[nodiscard]] bool done(const std::vector<Turn>& turns);
    void cancel();

    // What a rank holds when it has changed beside its own thread, which takes it to where its samples go.
    void note(Rank rank, const MemorySample& sample);
    [[nodiscard]] std::vector<MemorySample> takeNoted(Rank rank);

private:
    struct Part {
        const Collective* collective = nullptr;
        std::size_t member = 0;
    };
    struct State {
        traces::Step step{};
        std::vector<int> given; // by member: how often
        int ended = 0;          // how often it was done
        std::size_t left = 0;   // members whose part is not done
        TimeNs ready = 0;
        Rank last{};
        TimeNs doneAt = 0;
    };
    void serve(Rank rank);
    [[nodiscard]] bool isDone(const Turn& turn) const;

    const Clock& clock_;
    const Hooks hooks_;
    std::mutex mutex_; // guards what follows, but not the threads
    std::condition_variable changed_;
    std::vector<std::deque<Part>> waiting_; // by rank
    std::map<const Collective*, State> states_;
    std::vector<std::vector<MemorySample>> noted_; // by rank
    bool cancelled_ = false;
    std::vector<std::jthread> threads_; // last: they use the others
};

} // namespace stagecraft::runtime
