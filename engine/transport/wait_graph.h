// SPDX-License-Identifier: Apache-2.0
//
// Who waits for whom, while a run goes on. A rank that is about to sleep says what it waits for, which rank can bring that about, and
// how one sees that it has not come. The last one that closes a circle finds it, at that moment and by the graph alone: every rank of the
// circle is waiting, what each waits for is not there, and only the next in the circle could bring it. So no time passes that a slow
// machine could be mistaken for a deadlock in, and where nobody waits nothing is done.
//
//   rank 0  0F3 ──room──► rank 1  1B1 ──room──► rank 0
//
//   WaitGraph graph(ranks, [&](const std::string& circle) { control.fail(...); });
//   graph.enter(Rank{0}, work);                                      // a rank's own thread, before it waits in that action
//   {
//       const WaitGraph::Wait wait(&graph, {Rank{0}, Rank{1}, "1B0 of rank 1"}, [&] { return box.empty(); });
//       box.waitUntilFull();                                         // nothing is taken before the wait is over
//   }
//
// A rank waits for one thing at a time. `missing` is asked from other threads, while the rank waits.
#pragma once

#include "traces/base/action.h"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct WaitEdge {
    traces::Rank waiter{};
    traces::Rank other{}; // that can end the wait
    std::string needs;    // what the other has to do: "1B0 of rank 1", "rank 1 to take ..."
};

class WaitGraph {
public:
    // `found` gets the circle in words, on the thread that closed it; once.
    WaitGraph(int ranks, std::function<void(const std::string& circle)> found);

    // The action that the rank goes to; not while it waits.
    void enter(traces::Rank rank, const traces::Work& work) { ranks_[traces::index(rank)].in = work; }

    class Wait {
    public:
        // A null graph: nobody watches.
        Wait(WaitGraph* graph, const WaitEdge& edge, std::function<bool()> missing);
        ~Wait();
        Wait(const Wait&) = delete;
        Wait& operator=(const Wait&) = delete;

    private:
        WaitGraph* graph_;
        traces::Rank rank_;
    };

private:
    struct Waiting {
        WaitEdge edge;
        std::function<bool()> missing;
    };
    struct RankState {
        traces::Work in{}; // the rank's own; read by others while it waits, behind the mutex
        std::optional<Waiting> waiting;
    };

    [[nodiscard]] std::string circleFrom(traces::Rank first) const;

    std::function<void(const std::string&)> found_;
    std::mutex mutex_; // guards what ranks wait for
    std::vector<RankState> ranks_;
    bool told_ = false;
};

} // namespace stagecraft::runtime
