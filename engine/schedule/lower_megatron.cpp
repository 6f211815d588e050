// SPDX-License-Identifier: Apache-2.0
//
// Megatron-LM's exchanges (megatron/core/pipeline_parallel/schedules.py and p2p_communication.py, without overlap_p2p_comm), batches
// in parentheses. 1F1B on a rank in the middle, warm-up, steady state, cool-down:
//
//   R F S  R F  (S_F R_B) B (S_B R_F) F  (S_F R_B) B (S_B R_F) F ... B S_B  R_B B S_B
//
// Interleaved, where one batch follows each forward, each pair of forward and backward, each backward:
//
//   R F (S_F R_F) F (S_F R_F R_B)  F B (S_B S_F R_F R_B)  F B (S_B S_F R_F R_B) ... B (S_B R_B) B (S_B)
//
// The first rank takes the last one's activations p - 1 steps behind its own count, for so far is it ahead of that rank: where groups
// are larger than p, earlier than it needs them. The last rank takes the first one's gradients in the same way. In the code receipts
// stand between the sends (previous rank, then next); in a batch only the order among sends and among receipts matters, so here the
// sends come first.
#include "engine/schedule/batch.h"
#include "engine/schedule/handoff.h"
#include "engine/schedule/lowering_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

using traces::Work;

// A rank's order taken apart: w forwards, then pairs of a forward and a backward, then w backwards.
struct RankSteps {
    std::vector<Work> forwards;
    std::vector<Work> backwards;
    std::size_t warmup = 0;

    [[nodiscard]] std::size_t steady() const { return forwards.size() - warmup; }
};

class Exchange {
public:
    explicit Exchange(const Schedule& schedule) : schedule_(schedule) {}

    Expected<Schedule> lower()
    {
        if (schedule_.twoDirections() || schedule_.slices > 1 || schedule_.stageToRank != loopPlacement(schedule_.ranks, schedule_.chunks))
            return refused("its stages are not laid around the ranks in a loop");
        for (std::size_t r = 0; r < ranks(); ++r)
            if (Expected<void> taken = takeApart(r); !taken.ok()) return taken.error();
        Schedule lowered = schedule_;
        for (std::size_t r = 0; r < ranks(); ++r) {
            lowered.order[r].clear();
            if (schedule_.chunks == 1) writePlain(r, lowered.order[r]);
            else writeInterleaved(r, lowered.order[r]);
        }
        return lowered;
    }

private:
    [[nodiscard]] std::size_t ranks() const { return schedule_.order.size(); }

    [[nodiscard]] Error refused(const std::string& why) const
    {
        return Error{fmt::format("schedule {}: Megatron-LM has no exchanges for it, {}; take the order pytorch or deferred", schedule_.name, why)};
    }

    // Micro-batches that go through the first chunk before the second one begins.
    [[nodiscard]] std::size_t groupSize() const
    {
        const std::vector<Action>& first = schedule_.order.front();
        const auto other = std::find_if(first.begin(), first.end(),
                                        [](const Action& a) { return a.kind() != ActionKind::Forward || a.stage().value != 0; });
        return static_cast<std::size_t>(other - first.begin());
    }

    Expected<void> takeApart(std::size_t r)
    {
        RankSteps steps;
        for (const Action& action : schedule_.order[r]) {
            if (action.kind() == ActionKind::Forward) steps.forwards.push_back(action.work);
            else if (action.kind() == ActionKind::Backward) steps.backwards.push_back(action.work);
            else return refused(fmt::format("rank {} has {}, and it knows F and B only", r, toText(action)));
        }
        const std::size_t behind = ranks() - 1 - r;
        const auto chunks = static_cast<std::size_t>(schedule_.chunks);
        if (chunks > 1 && groupSize() < ranks())
            return refused(fmt::format("groups of {} micro-batches on {} ranks; it takes p or more", groupSize(), ranks()));
        steps.warmup = std::min(chunks == 1 ? behind : (chunks - 1) * groupSize() + 2 * behind, steps.forwards.size());
        if (steps.forwards.size() != steps.backwards.size() || !inTurns(schedule_.order[r], steps))
            return refused(fmt::format("rank {} does not take turns like 1F1B after {} forwards", r, steps.warmup));
        steps_.push_back(std::move(steps));
        return {};
    }

    static bool inTurns(const std::vector<Action>& list, const RankSteps& steps)
    {
        const std::size_t turns = steps.warmup + 2 * steps.steady();
        for (std::size_t at = 0; at < list.size(); ++at) {
            const bool ahead = at < steps.warmup || (at < turns && (at - steps.warmup) % 2 == 0);
            if ((list[at].kind() == ActionKind::Forward) != ahead) return false;
        }
        return true;
    }

    [[nodiscard]] std::optional<Action> sendOf(const Work& work) const
    {
        const std::optional<Handoff> output = outputOf(schedule_, work);
        return output ? std::optional(output->send) : std::nullopt;
    }
    [[nodiscard]] std::optional<Action> recvFor(const Work& work) const
    {
        const std::optional<Handoff> input = inputOf(schedule_, work);
        return input ? std::optional(input->recv) : std::nullopt;
    }
    [[nodiscard]] std::optional<Action> recvOfOutput(const Work& work) const
    {
        const std::optional<Handoff> output = outputOf(schedule_, work);
        return output ? std::optional(output->recv) : std::nullopt;
    }

    static void post(std::vector<Action>& list, std::initializer_list<std::optional<Action>> transfers)
    {
        std::vector<Action> batch;
        for (const std::optional<Action>& transfer : transfers)
            if (transfer) batch.push_back(*transfer);
        appendBatch(list, batch);
    }

    // --- one chunk per rank ----------------------------------------------------------------------------------------------

    void writePlain(std::size_t r, std::vector<Action>& list) const
    {
        const auto& [forwards, backwards, warmup] = steps_[r];
        for (std::size_t k = 0; k < warmup; ++k) {
            post(list, {recvFor(forwards[k])});
            list.push_back({forwards[k], {}});
            post(list, {sendOf(forwards[k])});
        }
        const std::size_t steady = steps_[r].steady();
        if (steady > 0) post(list, {recvFor(forwards[warmup])});
        for (std::size_t k = 0; k < steady; ++k) {
            const std::size_t f = warmup + k;
            list.push_back({forwards[f], {}});
            post(list, {sendOf(forwards[f]), recvFor(backwards[k])});
            list.push_back({backwards[k], {}});
            post(list, {sendOf(backwards[k]), k + 1 < steady ? recvFor(forwards[f + 1]) : std::nullopt});
        }
        for (std::size_t k = steady; k < backwards.size(); ++k) {
            post(list, {recvFor(backwards[k])});
            list.push_back({backwards[k], {}});
            post(list, {sendOf(backwards[k])});
        }
    }

    // --- several -----------------------------------------------------------------------------------------------------------

    // What arrives in the batch behind the k-th forward.
    [[nodiscard]] std::optional<Action> nextForwardInput(std::size_t r, std::size_t k) const
    {
        if (k + 1 >= steps_[r].forwards.size()) return std::nullopt;
        if (r != 0) return recvFor(steps_[r].forwards[k + 1]);
        if (k + 1 < ranks()) return std::nullopt; // the last rank has made nothing yet
        return recvOfOutput(steps_.back().forwards[k + 1 - ranks()]);
    }
    [[nodiscard]] std::optional<Action> nextBackwardInput(std::size_t r, std::size_t k) const
    {
        if (k + 1 >= steps_[r].backwards.size()) return std::nullopt;
        if (r + 1 != ranks()) return recvFor(steps_[r].backwards[k + 1]);
        if (k + 1 < ranks()) return std::nullopt;
        return recvOfOutput(steps_.front().backwards[k + 1 - ranks()]);
    }

    void writeInterleaved(std::size_t r, std::vector<Action>& list) const
    {
        const auto& [forwards, backwards, warmup] = steps_[r];
        const std::size_t steady = steps_[r].steady();
        post(list, {recvFor(forwards.front())});
        for (std::size_t k = 0; k < warmup; ++k) {
            list.push_back({forwards[k], {}});
            const bool turns = k + 1 == warmup && steady > 0;
            post(list, {sendOf(forwards[k]), nextForwardInput(r, k), turns ? recvFor(backwards.front()) : std::nullopt});
        }
        for (std::size_t k = 0; k < steady; ++k) {
            const std::size_t f = warmup + k;
            list.push_back({forwards[f], {}});
            list.push_back({backwards[k], {}});
            post(list, {sendOf(backwards[k]), sendOf(forwards[f]), nextForwardInput(r, f), nextBackwardInput(r, k)});
        }
        if (steady == 0) post(list, {recvFor(backwards.front())});
        for (std::size_t k = steady; k < backwards.size(); ++k) {
            list.push_back({backwards[k], {}});
            post(list, {sendOf(backwards[k]), nextBackwardInput(r, k)});
        }
    }

    const Schedule& schedule_;
    std::vector<RankSteps> steps_; // by rank
};

} // namespace

Expected<Schedule> lowerByMegatron(const Schedule& schedule) { return Exchange(schedule).lower(); }

} // namespace stagecraft::engine
