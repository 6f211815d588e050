// SPDX-License-Identifier: Apache-2.0
//
// BPipe (Kim et al., ICML 2023), p = 4, rank 0 and its partner, rank 3; >i is 0OFFLOADi, <i is 0RELOADi:
//
//   rank 0 | F0 F1 F2>2 F3 B0 F4>4 B1<2 F5 B2 F6>6 B3<4 F7 B4<6 B5 B6 B7
//   rank 3 |          F0 B0 F1 B1 F2 B2 ...                        keeps micro-batches 2, 4 and 6 of rank 0 for a while
//
// The order of 1F1B, whose rank x holds min(p-x, m) micro-batches. A rank x of the first half that would hold more than
// ceil((p+2)/2) hands some over to rank p-1-x, which holds few of its own, and takes them back before their backward. So no rank holds
// more than ceil((p+2)/2), what it keeps for its partner included, for two transfers of each that went away. That counts whole
// micro-batches between copies: while one is under way it is on both ranks, and no forward waits for it, so that where a copy takes
// less than a forward a rank holds one more for that time.
//
// The paper tells the pairs and the bound, not which go when. Derived here: backwards come in the order of the forwards, so what was
// computed last is needed last. When the next forward would go beyond the bound, the one just before it is offloaded, right after its
// forward, which gives the copy the longest time. One comes back right after the backward before its own, which has just made room
// for it, and is copied while the next forward runs; once no forward is left to make room for, as soon as there is room. Each rank of
// the first half offloads the fewest that way: in the steady state at rank 0 of p = 4 every second micro-batch.
// Any p and m: below p = 4, or with m not above the bound, nothing moves.
#include "engine/schedule/alternate.h"
#include "engine/schedule/families.h"

#include <algorithm>
#include <deque>

namespace stagecraft::engine {
namespace {

// The order of one rank while it is written, with what is here and what went away.
class EvictingRank {
public:
    EvictingRank(std::vector<Action>& list, int rank, int microbatches, int bound)
        : list_(list), rank_(rank), microbatches_(microbatches), bound_(bound)
    {
    }

    void forward(int i)
    {
        if (here_ == bound_) offloadBefore(i);
        append(ActionKind::Forward, i);
        ++here_;
        lastForward_ = list_.size() - 1;
    }

    void backward(int i)
    {
        append(ActionKind::Backward, i);
        --here_;
        const bool forwardsLeft = list_[lastForward_].microbatch().value + 1 < microbatches_;
        while (!away_.empty() && here_ < bound_ && (away_.front() == i + 1 || !forwardsLeft)) {
            append(ActionKind::Reload, away_.front());
            away_.pop_front();
            ++here_;
        }
    }

private:
    void append(ActionKind kind, int i) { list_.push_back(traces::makeAction(kind, Stage{rank_}, MicroBatch{i})); }

    void offloadBefore(int i)
    {
        list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(lastForward_) + 1,
                     traces::makeAction(ActionKind::Offload, Stage{rank_}, MicroBatch{i - 1}));
        away_.push_back(i - 1);
        --here_;
    }

    std::vector<Action>& list_;
    int rank_;
    int microbatches_;
    int bound_;
    int here_ = 0; // micro-batches whose activations this rank holds
    std::size_t lastForward_ = 0; // position
    std::deque<int> away_; // in the order of their backwards
};

Schedule bPipeSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    Schedule schedule = emptySchedule(request, 3 * static_cast<std::size_t>(m));
    schedule.offloadTo = OffloadTo::Partner;
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        EvictingRank rank(schedule.order[static_cast<std::size_t>(r)], r, m, (p + 3) / 2);
        alternateAfterWarmup(
            std::min(p - 1 - r, m), m, [&](int i) { rank.forward(i); }, [&](int i) { rank.backward(i); });
    }
    return schedule;
}

} // namespace

Generator bPipe()
{
    Generator made{{"bpipe", "BPipe",
                    "1F1B in which the first ranks hand activations over to the last ones for a while: all ranks hold about as much.",
                    "any number of ranks and micro-batches; one chunk per rank; two transfers for each micro-batch that is handed over",
                    "Kim et al. 2023, ICML; memory-balanced pipeline parallelism", 1, 1,
                    {{"paper", "BPipe, activation balancing by evict and load"}}},
                   &bPipeSchedule};
    made.family.takesOffload = false;
    return made;
}

} // namespace stagecraft::engine
