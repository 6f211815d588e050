// SPDX-License-Identifier: Apache-2.0
//
// Hanayo's waves (Liu et al. 2023, arXiv 2308.15762), p = 2, one wave (v = 2), m = 2; stage 0, 3 on rank 0 and stage 1, 2 on
// rank 1; "3F0" is stage 3, micro-batch 0:
//
//   rank 0 | 0F0 0F1     3F0 3B0     3F1 3B1     0B0     0B1
//   rank 1 |     1F0 2F0 1F1 2F1 2B0     1B0 2B1     1B1
//
// W waves are v = 2W chunks, laid there and back (wavePlacement()), with one copy of the weights. The order is derived here, as a
// list schedule, backwards first: in units of a chunk with F = 1 and B = 2, as the paper has it, every rank that is free takes
// from what is ready
//   a  backwards before forwards, the oldest micro-batch first; or
//   b  the oldest unit of p micro-batches; in it backwards before forwards, the deepest stage first, then the oldest,
// and a micro-batch enters when fewer than p, 3p/2 or 2p are under way: with p, as in 1F1B, ranks idle while what they could do
// comes back from the far end of a wave. All six plans are made; the shortest is taken, and of equals the one that lets fewer in.
// The costs of a request are left alone: this stands for the paper's order, not for a plan.
//
// With m = p the bubbles are near the paper's (2p-2)/(3pW+p-1): p = 4: .2131 for .2222 (W = 2), .1193 for .1176 (W = 4); p = 8:
// .2381 for .2545 (W = 2). A rank keeps m micro-batches where m <= p, and never more than 2p. Any p and m, v even.
#include "engine/schedule/families.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>

namespace stagecraft::engine {
namespace {

constexpr int kForwardTime = 1;
constexpr int kBackwardTime = 2;

enum class Preference : std::uint8_t { OldestMicroBatch, OldestUnit };

Expected<void> checkHanayo(const ScheduleRequest& request)
{
    if (request.chunks % 2 == 0) return {};
    return Error{fmt::format("schedule hanayo: {} per rank are not allowed, a wave goes there and back and makes two{}",
                             traces::counted(request.chunks, "chunk"),
                             offer(request, &ScheduleRequest::chunks, {request.chunks - 1, request.chunks + 1}, "; use an even number"))};
}

// An action as its place in the queue of its rank, the smaller goes first. 25 bits hold a micro-batch or its unit, 14 a stage or a
// place in the unit (kMaxActions, kMaxStages).
using Place = std::uint64_t;
constexpr int kStageBits = 14;
constexpr int kMicroBatchBits = 25;
static_assert(kMaxStages <= 1 << kStageBits && kMaxActions <= 1LL << kMicroBatchBits);

class ListSchedule {
public:
    ListSchedule(const ScheduleRequest& request, Preference preference, int limit)
        : request_(request), preference_(preference), limit_(std::min(limit, request.microbatches)),
          schedule_(
              emptySchedule(request, wavePlacement(request.ranks, request.chunks),
                            2 * static_cast<std::size_t>(request.microbatches) * static_cast<std::size_t>(request.chunks))),
          ranks_(static_cast<std::size_t>(request.ranks))
    {
    }

    // How long it is, in units of time; the schedule is not whole where it was stopped.
    int make()
    {
        while (entered_ < limit_) enter();
        int open = static_cast<int>(2 * schedule_.stageToRank.size()) * request_.microbatches;
        int now = 0;
        for (; open > 0 && !request_.stop.stop_requested(); ++now) {
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                RankState& rank = ranks_[r];
                if (rank.remaining == 0 || --rank.remaining > 0) continue;
                --open;
                finish(schedule_.order[r].back());
            }
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                RankState& rank = ranks_[r];
                if (rank.remaining > 0 || rank.ready.empty()) continue;
                schedule_.order[r].push_back(actionAt(rank.ready.top()));
                rank.ready.pop();
                rank.remaining = schedule_.order[r].back().kind() == ActionKind::Forward ? kForwardTime : kBackwardTime;
            }
        }
        return now;
    }

    Schedule take() { return std::move(schedule_); }

private:
    struct RankState {
        std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
        int remaining = 0; // time of what runs
    };

    void enter() { add(traces::forward(Stage{0}, MicroBatch{entered_++})); }

    void add(const Action& action)
    {
        const Place ahead = action.kind() == ActionKind::Forward ? 1 : 0;
        const Place shallow = static_cast<Place>(kMaxStages - 1 - action.stage().value);
        const auto microbatch = static_cast<Place>(action.microbatch().value);
        const auto unit = static_cast<Place>(request_.ranks);
        const Place place = preference_ == Preference::OldestMicroBatch
                                ? (((ahead << kMicroBatchBits) | microbatch) << kStageBits) | shallow
                                : (((((microbatch / unit) << 1) | ahead) << kStageBits | shallow) << kStageBits) | (microbatch % unit);
        ranks_[index(schedule_.stageToRank[index(action.stage())])].ready.push(place);
    }

    [[nodiscard]] Action actionAt(Place place) const
    {
        const auto take = [&](int bits) {
            const Place value = place & ((Place{1} << bits) - 1);
            place >>= bits;
            return static_cast<int>(value);
        };
        const bool byUnit = preference_ == Preference::OldestUnit;
        int microbatch = byUnit ? take(kStageBits) : 0;
        const Stage stage{kMaxStages - 1 - take(kStageBits)};
        if (!byUnit) microbatch = take(kMicroBatchBits);
        const bool ahead = take(1) != 0;
        if (byUnit) microbatch += take(kMicroBatchBits) * request_.ranks;
        return ahead ? traces::forward(stage, MicroBatch{microbatch}) : traces::backward(stage, MicroBatch{microbatch});
    }

    void finish(const Action& action)
    {
        const Stage stage = action.stage();
        const MicroBatch i = action.microbatch();
        if (action.kind() == ActionKind::Forward) {
            if (stage.value + 1 < schedule_.stages()) add(traces::forward(Stage{stage.value + 1}, i));
            else add(traces::backward(stage, i));
        } else if (stage.value > 0) {
            add(traces::backward(Stage{stage.value - 1}, i));
        } else if (entered_ < request_.microbatches) {
            enter();
        }
    }

    const ScheduleRequest& request_;
    Preference preference_;
    int limit_;
    int entered_ = 0;
    Schedule schedule_;
    std::vector<RankState> ranks_;
};

Schedule hanayoSchedule(const ScheduleRequest& request)
{
    const int p = request.ranks;
    Schedule best = emptySchedule(request, wavePlacement(p, request.chunks), 0);
    int shortest = 0;
    for (const int limit : {p, p + p / 2, 2 * p}) {
        for (const Preference preference : {Preference::OldestMicroBatch, Preference::OldestUnit}) {
            if (request.stop.stop_requested()) return best;
            ListSchedule list(request, preference, limit);
            const int length = list.make();
            if (shortest > 0 && length >= shortest) continue;
            shortest = length;
            best = list.take();
        }
        if (limit >= request.microbatches) break; // all are under way already
    }
    return best;
}

} // namespace

Generator hanayo()
{
    return {{"hanayo",
             "Hanayo",
             "Waves go there and back through the ranks: with every wave the bubble shrinks and transfers grow, with one "
             "copy of the weights.",
             "an even number of chunks per rank, two for each wave; any number of ranks and micro-batches",
             "Liu et al. 2023, Hanayo, arXiv 2308.15762; the order is a list schedule, backwards first",
             2,
             kAnyChunks,
             {{"paper", "Hanayo, wave-like pipeline"}}},
            &hanayoSchedule,
            &checkHanayo,
            &wavePlacement};
}

} // namespace stagecraft::engine
