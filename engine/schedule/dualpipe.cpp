// SPDX-License-Identifier: Apache-2.0
//
// DualPipe (DeepSeek-V3, arXiv 2412.19437 sec. 3.2.1; the authors' dualpipe.py), p = 2, m = 4: two pipelines in opposite
// directions, d with stage s on rank s and u with stage s on rank p-1-s, so that each rank holds two stages.
//
//   rank 0 | dF0 uF0 dF1 uB0 (uF1;dB0) uB1 dI1 dW1        pairs in brackets run together
//   rank 1 | uF0 dF0 uF1 dB0 (dF1;uB0) dB1 uI1 uW1
//
// With H = p/2, h = min(r, p-1-r), and 0 and 1 for the direction in which the rank comes early and late:
//   1. 2(H-h-1)      F0
//   2. h+1           F0, F1
//   3. H-h-1         I1, W, F1                      W takes weight gradients in the order of their I
//   4. m/2-p+h+1     (F0;B1), (F1;B0)               the two middle ranks begin with F0 and B1 apart
//   5. H-h-1         B1, (F1;B0)
//   6. h+1           B1, B0                         from the middle on I instead of B, W is left for later
//   7. H-h-1         W, I0
//   8. h+1           W
// Bubble time (p/2-1)(F&B + B - 3W); p+1 activations on every rank, each of 1/p of the model; 2 copies of the weights.
// p and m are even, m >= 2p.
#include "engine/schedule/families.h"
#include "engine/schedule/mirrored.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

namespace stagecraft::engine {
namespace {

using traces::Work;

Expected<void> checkDualPipe(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    if (p % 2 != 0 || m >= 2 * p) return checkMirrored(request);
    ScheduleRequest least = request;
    least.microbatches = 2 * p;
    return Error{fmt::format("schedule dualpipe: {} on {} ranks {} too few, each direction takes p of them to fill; use {}",
                             traces::counted(m, "micro-batch"), p, m == 1 ? "is" : "are",
                             checkRequest(least).ok() ? fmt::format("at least 2p = {}", 2 * p) : "fewer ranks")};
}

// The actions of one rank, written in the order of the eight steps above.
class RankList {
public:
    RankList(const ScheduleRequest& request, int rank, std::vector<Action>& list) : list_(list)
    {
        const Work down{ActionKind::None, Flow::Down, Stage{rank}, {}};
        const Work up{ActionKind::None, Flow::Up, Stage{request.ranks - 1 - rank}, {}};
        lanes_ = rank < request.ranks / 2 ? std::array{down, up} : std::array{up, down};
    }

    void forward(int d) { list_.push_back({nextForward(d), {}}); }
    void backward(int d) { list_.push_back({nextBackward(d, ActionKind::Backward), {}}); }
    void inputGrad(int d)
    {
        list_.push_back({nextBackward(d, ActionKind::InputGrad), {}});
        waiting_.push_back(list_.back().work);
        waiting_.back().kind = ActionKind::WeightGrad;
    }
    void weightGrad()
    {
        list_.push_back({waiting_.front(), {}});
        waiting_.pop_front();
    }
    void pair(int forwardOf, int backwardOf)
    {
        const Work ahead = nextForward(forwardOf);
        list_.push_back(traces::overlapped(ahead, nextBackward(backwardOf, ActionKind::Backward)));
    }

private:
    Work nextForward(int d) { return next(d, ActionKind::Forward, forwards_); }
    Work nextBackward(int d, ActionKind kind) { return next(d, kind, backwards_); }
    Work next(int d, ActionKind kind, std::array<int, 2>& count)
    {
        Work work = lanes_[static_cast<std::size_t>(d)];
        work.kind = kind;
        work.microbatch = MicroBatch{count[static_cast<std::size_t>(d)]++};
        return work;
    }

    std::vector<Action>& list_;
    std::array<Work, 2> lanes_; // direction and stage, of the early and of the late direction
    std::array<int, 2> forwards_{};
    std::array<int, 2> backwards_{};
    std::deque<Work> waiting_; // weight gradients
};

void writeRank(RankList& list, int p, int m, int rank)
{
    const int half = p / 2;
    const int h = std::min(rank, p - 1 - rank);
    const bool middle = h == half - 1;
    const auto times = [](int count, auto&& what) {
        for (int i = 0; i < count; ++i) what(i);
    };
    times(2 * (half - h - 1), [&](int) { list.forward(0); });
    times(h + 1, [&](int) {
        list.forward(0);
        list.forward(1);
    });
    times(half - h - 1, [&](int) {
        list.inputGrad(1);
        list.weightGrad();
        list.forward(1);
    });
    times(m / 2 - p + h + 1, [&](int i) {
        if (i == 0 && middle) {
            list.forward(0);
            list.backward(1);
        } else {
            list.pair(0, 1);
        }
        list.pair(1, 0);
    });
    times(half - h - 1, [&](int) {
        list.backward(1);
        list.pair(1, 0);
    });
    bool apart = false; // I now, W later
    const auto back = [&](int d) { apart ? list.inputGrad(d) : list.backward(d); };
    times(h + 1, [&](int i) {
        const bool here = i == (h + 1) / 2;
        apart = apart || (here && h % 2 == 1);
        back(1);
        apart = apart || (here && h % 2 == 0);
        back(0);
    });
    times(half - h - 1, [&](int) {
        list.weightGrad();
        list.inputGrad(0);
    });
    times(h + 1, [&](int) { list.weightGrad(); });
}

Schedule dualPipeSchedule(const ScheduleRequest& request)
{
    Schedule schedule = mirroredSchedule(request, 4 * static_cast<std::size_t>(request.microbatches));
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        RankList list(request, r, schedule.order[static_cast<std::size_t>(r)]);
        writeRank(list, request.ranks, request.microbatches, r);
    }
    return schedule;
}

} // namespace

Generator dualPipe()
{
    return {{"dualpipe", "DualPipe",
             "Micro-batches enter at both ends, and forwards of one direction run together with backwards of the other.",
             "p and m even, m at least 2p; one chunk per rank and direction, so two copies of the weights",
             "DeepSeek-V3, arXiv 2412.19437 sec. 3.2.1; deepseek-ai/DualPipe", 1, 1, {{"paper", "DualPipe"}}},
            &dualPipeSchedule, &checkDualPipe};
}

} // namespace stagecraft::engine
