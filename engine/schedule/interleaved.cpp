// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473 sec. 2.2), p = 2, v = 2, m = 2; stage 0, 2 on rank 0 and
// stage 1, 3 on rank 1; "2F0" is stage 2, micro-batch 0:
//
//   rank 0 | 0F0 0F1 2F0 2F1     2B0     2B1 0B0     0B1
//   rank 1 |     1F0 1F1 3F0 3B0 3F1 3B1     1B0 1B1
//
// Forwards and backwards go through the rank's chunks in groups of g micro-batches: the k-th forward uses chunk
// (k div g) mod v, the k-th backward chunk v-1-((k div g) mod v). Warm-up w = min((v-1)g + 2(p-1-r), mv), then one forward,
// one backward, then the rest. Bubble time (p-1)(TF+TB)/v.
// g by PyTorch's rule (ScheduleInterleaved1F1B): rounds = max(1, m div p), g = m / rounds, which must be whole.
#include "engine/schedule/families.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

bool fits(int m, int p)
{
    return m >= 1 && m % std::max(1, m / p) == 0;
}

int nearestMicroBatches(int m, int p)
{
    for (int distance = 1;; ++distance) {
        if (fits(m - distance, p)) return m - distance;
        if (fits(m + distance, p)) return m + distance;
    }
}

// Gives the chunks' micro-batches out in order: the k-th call with a direction's chunk order.
class ChunkWalk {
public:
    ChunkWalk(int chunks, int group) : next_(static_cast<std::size_t>(chunks), 0), chunks_(chunks), group_(group) {}

    // Chunk of the k-th forward.
    [[nodiscard]] int chunk(int k) const { return (k / group_) % chunks_; }
    MicroBatch take(int chunk) { return MicroBatch{next_[static_cast<std::size_t>(chunk)]++}; }

private:
    std::vector<int> next_;
    int chunks_;
    int group_;
};

Expected<void> checkInterleaved(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int m = request.microbatches;
    if (fits(m, p)) return {};
    const int rounds = std::max(1, m / p);
    return Error{fmt::format("schedule interleaved: {} on {} are not allowed, they go in {} of "
                                 "equal size and {} is no multiple of {}; the nearest number that fits is {}",
                                 traces::counted(m, "micro-batch"), traces::counted(p, "rank"), traces::counted(rounds, "round"), m, rounds,
                                 nearestMicroBatches(m, p))};
}

Schedule interleavedSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    const int v = request.chunks;
    const int m = request.microbatches;
    const int group = m / std::max(1, m / p);
    const int total = m * v;
    Schedule schedule = emptySchedule(request, 2 * static_cast<std::size_t>(total));
    for (int r = 0; r < p; ++r) {
        if (request.stop.stop_requested()) break;
        std::vector<Action>& list = schedule.order[static_cast<std::size_t>(r)];
        ChunkWalk forwards(v, group);
        ChunkWalk backwards(v, group);
        const auto takeForward = [&](int k) {
            const int chunk = forwards.chunk(k);
            list.push_back(traces::forward(Stage{chunk * p + r}, forwards.take(chunk)));
        };
        const auto takeBackward = [&](int k) {
            const int chunk = v - 1 - backwards.chunk(k);
            list.push_back(traces::backward(Stage{chunk * p + r}, backwards.take(chunk)));
        };
        const int warmup = static_cast<int>(
            std::min<long long>(static_cast<long long>(v - 1) * group + 2LL * (p - 1 - r), total));
        for (int k = 0; k < warmup; ++k) takeForward(k);
        for (int k = warmup; k < total; ++k) {
            takeForward(k);
            takeBackward(k - warmup);
        }
        for (int k = total - warmup; k < total; ++k) takeBackward(k);
    }
    return schedule;
}

} // namespace

Generator interleaved()
{
    return {{"interleaved", "Interleaved 1F1B",
             "Each rank holds several chunks of the model: the bubble shrinks by their number, transfers grow by it.",
             "two chunks per rank or more; m a multiple of max(1, m div p)",
             "Narayanan et al. 2021, arXiv 2104.04473; PyTorch ScheduleInterleaved1F1B", 2, kAnyChunks,
             {{"PyTorch", "ScheduleInterleaved1F1B"}, {"Megatron-LM", "forward_backward_pipelining_with_interleaving"},
              {"paper", "virtual pipeline (VPP)"}}},
            &interleavedSchedule, &checkInterleaved};
}

} // namespace stagecraft::engine
