// SPDX-License-Identifier: Apache-2.0
//
// DualPipeV (DualPipe cut in half, github.com/deepseek-ai/DualPipe; the order is that of PyTorch's ScheduleDualPipeV), p = 2,
// m = 4; stage 0, 3 on rank 0 and stage 1, 2 on rank 1; "3F1+0B0" is an overlapped pair:
//
//   rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3+3B1 3F2+0B0 3B2 3F3+0B1 3B3 0I2 0W2 0I3 0W3
//   rank 1 |     1F0 2F0 1F1 2F1 1F2 2B0 2F2+1B0 1F3+2B1 2F3+1B1 2B2 1B2 2I3 1I3 2W3 1W3
//
// Chunk 0 is the rank's stage on the way down, chunk 1 that on the way back. Rank r:
//   1  2(p-r-1) times F0
//   2  r+1 times F0 F1
//   3  p-r-1 times I1 W1 F1
//   4  m-2p+r+1 times F0+B1, F1+B0; the first pair on the last rank is not overlapped, F0 then B1: B1 need not wait for F0's end
//   5  p-r-1 times B1, F1+B0
//   6  r+1 times B1 B0; from the middle on (r odd: from B1, r even: from B0 on) I, with the W put off
//   7  p-r-1 times W, I0
//   8  the W that are left
// The W are taken in the order of their I. Bubble time of each rank, in times of a chunk and with the 2p stages that DualPipe
// would have ranks: (p-1)(F&B + B - 3W). Each rank keeps p + 1/2 micro-batches at most. m >= 2p.
#include "engine/schedule/families.h"
#include "engine/schedule/v_list.h"
#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

Expected<void> checkDualPipeV(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    if (m >= 2 * p) return {};
    ScheduleRequest least = request;
    least.microbatches = 2 * p;
    return Error{fmt::format("schedule dualpipe-v: {} on {} {} not allowed, each of its {} stages must have one before the first comes "
                             "back; {}",
                             traces::counted(m, "micro-batch"), traces::counted(p, "rank"), m == 1 ? "is" : "are", 2 * p,
                             checkRequest(least).ok() ? fmt::format("the nearest number that fits is {}", 2 * p) : "use fewer ranks")};
}

class RankOrder {
public:
    RankOrder(Schedule& schedule, int rank) : list_(schedule, rank), p_(schedule.ranks), r_(rank), m_(schedule.microbatches) {}

    void fill()
    {
        const int above = p_ - r_ - 1; // ranks between this one and the turn
        for (int i = 0; i < 2 * above; ++i) list_.forward(0);
        for (int i = 0; i <= r_; ++i) {
            list_.forward(0);
            list_.forward(1);
        }
        for (int i = 0; i < above; ++i) {
            list_.inputGrad(1);
            list_.weightGrad();
            list_.forward(1);
        }
        for (int i = 0; i < m_ - 2 * p_ + r_ + 1; ++i) {
            if (i == 0 && above == 0) {
                list_.forward(0);
                list_.backward(1);
            } else {
                list_.overlap(0, 1);
            }
            list_.overlap(1, 0);
        }
        for (int i = 0; i < above; ++i) {
            list_.backward(1);
            list_.overlap(1, 0);
        }
        lastBackwards();
        for (int i = 0; i < above; ++i) {
            list_.weightGrad();
            list_.inputGrad(0);
        }
        while (list_.pending()) list_.weightGrad();
    }

private:
    // r+1 times chunk 1 and chunk 0: the first half in full, the rest without the weight gradients. r even means an odd number of
    // rounds, and the round in the middle is cut in two.
    void lastBackwards()
    {
        for (int k = 0; k < 2 * (r_ + 1); ++k) {
            const int chunk = 1 - k % 2;
            if (k <= r_) list_.backward(chunk);
            else list_.inputGrad(chunk);
        }
    }

    VList list_;
    int p_;
    int r_;
    int m_;
};

Schedule dualPipeVSchedule(const ScheduleRequest& request)
{
    const auto m = static_cast<std::size_t>(request.microbatches);
    Schedule schedule = emptySchedule(request, wavePlacement(request.ranks, 2), 6 * m);
    for (int r = 0; r < request.ranks; ++r) {
        if (request.stop.stop_requested()) break;
        RankOrder(schedule, r).fill();
    }
    return schedule;
}

} // namespace

Generator dualPipeV()
{
    return {{"dualpipe-v", "DualPipeV",
             "Two chunks in a V, and forwards and backwards in pairs that hide each other's transfers.",
             "two chunks per rank; any number of ranks; m >= 2p",
             "DeepSeek-AI 2025, github.com/deepseek-ai/DualPipe; PyTorch ScheduleDualPipeV", 2, 2,
             {{"PyTorch", "ScheduleDualPipeV"}, {"DeepSeek", "DualPipeV"}}},
            &dualPipeVSchedule, &checkDualPipeV, &wavePlacement};
}

} // namespace stagecraft::engine
