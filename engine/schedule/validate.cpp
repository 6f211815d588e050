// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/validate.h"

#include "engine/schedule/dry_run.h"
#include "engine/schedule/lower.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace stagecraft::engine {
namespace {

// Kinds that belong to one (stage, micro-batch) and may occur once for it.
constexpr std::array<ActionKind, 8> kTracked{ActionKind::Forward,     ActionKind::Backward,     ActionKind::InputGrad,
                                             ActionKind::WeightGrad,  ActionKind::SendForward,  ActionKind::RecvForward,
                                             ActionKind::SendBackward, ActionKind::RecvBackward};

std::optional<std::size_t> trackedIndex(ActionKind kind)
{
    for (std::size_t k = 0; k < kTracked.size(); ++k)
        if (kTracked[k] == kind) return k;
    return std::nullopt;
}

class Inspector {
public:
    Inspector(const Schedule& schedule, std::size_t maxErrors)
        : schedule_(schedule), maxErrors_(maxErrors), communicates_(hasCommunication(schedule)),
          stages_(static_cast<std::size_t>(schedule.stages())), microbatches_(static_cast<std::size_t>(schedule.microbatches)),
          position_(kTracked.size() * stages_ * microbatches_, -1)
    {
    }

    std::vector<ScheduleFault> inspect()
    {
        collect();
        if (microbatches_ == 0) missing(Stage{0}, MicroBatch{0}, ActionKind::Forward, "a step takes at least one micro-batch");
        if (faults_.empty()) {
            checkCompleteness();
            checkOrder();
        }
        if (leftOut_ > 0) faults_.back().message += fmt::format(" (and {} more)", leftOut_);
        return std::move(faults_);
    }

    [[nodiscard]] std::size_t leftOut() const { return leftOut_; }

private:
    using Work = traces::Work;

    void fault(Rank rank, int position, const std::string& action, const std::string& what)
    {
        if (faults_.size() >= maxErrors_) {
            ++leftOut_;
            return;
        }
        const std::string place = position < 0 ? fmt::format("rank {}", rank.value)
                                               : fmt::format("rank {}, position {}", rank.value, position);
        faults_.push_back({rank, position, action, fmt::format("{}: {} {}", place, action, what)});
    }

    int& positionOf(std::size_t kind, Stage s, MicroBatch i)
    {
        return position_[(kind * stages_ + index(s)) * microbatches_ + index(i)];
    }
    int positionOf(ActionKind kind, Stage s, MicroBatch i) { return positionOf(*trackedIndex(kind), s, i); }

    void collect()
    {
        for (std::size_t r = 0; r < schedule_.order.size(); ++r)
            for (std::size_t at = 0; at < schedule_.order[r].size(); ++at) {
                const Action& action = schedule_.order[r][at];
                forEachWork(action, [&](const Work& work) { collect(Rank{r}, static_cast<int>(at), action, work); });
            }
    }

    void collect(Rank rank, int at, const Action& action, const Work& work)
    {
        const std::string text = toText(action);
        if (work.flow != traces::Flow::Single)
            return fault(rank, at, text, "belongs to a two-direction schedule, which cannot be executed yet");
        if (work.stage.value < 0 || index(work.stage) >= stages_)
            return fault(rank, at, text, fmt::format("names stage {}; there are stages 0 to {}", work.stage.value, stages_ - 1));
        if (schedule_.stageToRank[index(work.stage)] != rank)
            return fault(rank, at, text, fmt::format("does not belong here, stage {} is on rank {}", work.stage.value,
                                                     schedule_.stageToRank[index(work.stage)].value));
        const std::optional<std::size_t> kind = trackedIndex(work.kind);
        if (!kind) return;
        if (work.microbatch.value < 0 || index(work.microbatch) >= microbatches_)
            return fault(rank, at, text, fmt::format("names micro-batch {}; there are 0 to {}", work.microbatch.value,
                                                     microbatches_ - 1));
        int& place = positionOf(*kind, work.stage, work.microbatch);
        if (place >= 0)
            return fault(rank, at, text, fmt::format("is there twice, first at position {}; an action happens once", place));
        place = at;
    }

    void missing(Stage s, MicroBatch i, ActionKind kind, const std::string& why)
    {
        fault(schedule_.stageToRank[index(s)], -1, toText(traces::makeAction(kind, s, i)), "is missing; " + why);
    }

    // A schedule without any backward is forward-only, and complete as such.
    [[nodiscard]] bool forwardOnly()
    {
        const std::size_t perKind = stages_ * microbatches_;
        for (std::size_t k = 1; k <= 3; ++k)
            for (std::size_t i = 0; i < perKind; ++i)
                if (position_[k * perKind + i] >= 0) return false;
        return true;
    }

    void checkCompleteness()
    {
        const bool trains = !forwardOnly();
        forEachPair([&](Stage s, MicroBatch i) {
            if (positionOf(ActionKind::Forward, s, i) < 0)
                missing(s, i, ActionKind::Forward, "every stage takes every micro-batch forward once");
            if (!trains) return;
            const bool full = positionOf(ActionKind::Backward, s, i) >= 0;
            const bool input = positionOf(ActionKind::InputGrad, s, i) >= 0;
            const bool weight = positionOf(ActionKind::WeightGrad, s, i) >= 0;
            if (full && (input || weight))
                fault(schedule_.stageToRank[index(s)], positionOf(ActionKind::Backward, s, i),
                      toText(traces::backward(s, i)), "is a full backward, but there is an I or W for it as well; take one or the other");
            if (!full && !input && !weight)
                missing(s, i, ActionKind::Backward, "every forward needs a B, or an I and a W");
            if (!full && input && !weight) missing(s, i, ActionKind::WeightGrad, "an I needs a W");
            if (!full && weight && !input) missing(s, i, ActionKind::InputGrad, "a W needs an I");
        });
        if (communicates_) checkCommunication(trains);
    }

    void checkCommunication(bool trains)
    {
        forEachPair([&](Stage s, MicroBatch i) {
            const Stage next{s.value + 1};
            if (index(next) >= stages_) return;
            const bool crosses = schedule_.stageToRank[index(s)] != schedule_.stageToRank[index(next)];
            const auto pair = [&](ActionKind send, Stage from, ActionKind recv, Stage to) {
                const bool sends = positionOf(send, from, i) >= 0;
                const bool receives = positionOf(recv, to, i) >= 0;
                if (!crosses && (sends || receives)) {
                    const Action extra = traces::makeAction(sends ? send : recv, sends ? from : to, i);
                    fault(schedule_.stageToRank[index(extra.stage())], positionOf(extra.kind(), extra.stage(), i),
                          toText(extra), "is not needed, both stages are on this rank; remove it");
                } else if (crosses) {
                    if (!sends) missing(from, i, send, fmt::format("stage {} is on another rank and needs it", to.value));
                    if (!receives)
                        missing(to, i, recv, fmt::format("stage {} is on another rank and sends it", from.value));
                }
            };
            pair(ActionKind::SendForward, s, ActionKind::RecvForward, next);
            if (trains) pair(ActionKind::SendBackward, next, ActionKind::RecvBackward, s);
        });
    }

    // `later` must come after `earlier` on the rank of the stage, where both are there.
    void inOrder(Stage s, MicroBatch i, ActionKind earlier, ActionKind later)
    {
        const int first = positionOf(earlier, s, i);
        const int second = positionOf(later, s, i);
        if (first < 0 || second < 0 || first < second) return;
        fault(schedule_.stageToRank[index(s)], second, toText(traces::makeAction(later, s, i)),
              fmt::format("comes before {} (position {}), which it needs; move it behind",
                          toText(traces::makeAction(earlier, s, i)), first));
    }

    void checkOrder()
    {
        forEachPair([&](Stage s, MicroBatch i) {
            inOrder(s, i, ActionKind::Forward, ActionKind::Backward);
            inOrder(s, i, ActionKind::Forward, ActionKind::InputGrad);
            inOrder(s, i, ActionKind::InputGrad, ActionKind::WeightGrad);
            if (!communicates_) return;
            inOrder(s, i, ActionKind::RecvForward, ActionKind::Forward);
            inOrder(s, i, ActionKind::Forward, ActionKind::SendForward);
            inOrder(s, i, ActionKind::RecvBackward, ActionKind::Backward);
            inOrder(s, i, ActionKind::RecvBackward, ActionKind::InputGrad);
            inOrder(s, i, ActionKind::Backward, ActionKind::SendBackward);
            inOrder(s, i, ActionKind::InputGrad, ActionKind::SendBackward);
        });
    }

    template <class Visit>
    void forEachPair(Visit&& visit)
    {
        for (std::size_t s = 0; s < stages_; ++s)
            for (std::size_t i = 0; i < microbatches_; ++i) visit(Stage{s}, MicroBatch{i});
    }

    const Schedule& schedule_;
    std::size_t maxErrors_;
    bool communicates_;
    std::size_t stages_;
    std::size_t microbatches_;
    std::vector<int> position_; // by tracked kind, stage, micro-batch; -1 where there is none
    std::vector<ScheduleFault> faults_;
    std::size_t leftOut_ = 0;
};

} // namespace

ValidationReport validate(const Schedule& schedule, const ValidationOptions& options)
{
    ValidationReport report;
    Inspector inspector(schedule, options.maxErrors);
    report.errors = inspector.inspect();
    report.faultCount = report.errors.size() + inspector.leftOut();
    if (!report.errors.empty()) return report;
    const auto deadlockOf = [&](const Schedule& executed) {
        DryRun run(executed, options.send);
        run.execute();
        return run.complete() ? std::vector<WaitingRank>{} : run.circle();
    };
    // without communication a rendezvous has no sides to meet: PyTorch's lowering gives it
    if (options.send == SendMode::Rendezvous && !hasCommunication(schedule)) {
        if (Expected<Schedule> lowered = lowerCommunication(schedule); lowered.ok()) {
            report.deadlock = deadlockOf(lowered.value());
            return report;
        }
    }
    report.deadlock = deadlockOf(schedule);
    return report;
}

} // namespace stagecraft::engine
