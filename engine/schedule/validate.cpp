// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/validate.h"

#include "engine/schedule/dry_run.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/sharding_rules.h"
#include "engine/schedule/validate_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace stagecraft::engine {
namespace {

// Kinds that belong to one (stage, micro-batch) and may occur once for it.
constexpr std::array<ActionKind, 11> kTracked{ActionKind::Forward,      ActionKind::Backward,     ActionKind::InputGrad,   ActionKind::WeightGrad,
                                              ActionKind::SendForward,  ActionKind::RecvForward,  ActionKind::SendBackward,
                                              ActionKind::RecvBackward, ActionKind::Offload,      ActionKind::Reload,
                                              ActionKind::Recompute};

bool has(const Schedule& schedule, ActionKind kind)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [kind](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [kind](const Action& action) { return action.kind() == kind; });
    });
}

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
          offloads_(hasOffload(schedule)), recomputes_(has(schedule, ActionKind::Recompute)),
          stages_(static_cast<std::size_t>(schedule.stages())),
          units_(static_cast<std::size_t>(std::max({schedule.units(Flow::Down), schedule.units(Flow::Up), 0}))),
          position_(2 * kTracked.size() * stages_ * units_, -1)
    {
    }

    std::vector<ScheduleFault> inspect()
    {
        collect();
        if (units_ == 0)
            missing({schedule_.flows().front(), Stage{0}, MicroBatch{0}}, ActionKind::Forward, "a step takes at least one micro-batch");
        if (faults_.empty()) {
            checkCompleteness();
            checkOrder();
            checkSharding(schedule_, [this](Rank rank, int position, const std::string& action, const std::string& what) {
                fault(rank, position, action, what);
            });
        }
        if (faults_.empty())
            checkUpdates(schedule_, [&](Rank rank, int at, const std::string& action, const std::string& what) { fault(rank, at, action, what); });
        if (leftOut_ > 0) faults_.back().message += fmt::format(" (and {} more)", leftOut_);
        return std::move(faults_);
    }

    [[nodiscard]] std::size_t leftOut() const { return leftOut_; }

private:
    using Work = traces::Work;
    // What every stage takes once: a micro-batch, or a slice of one.
    struct Unit {
        Flow flow = Flow::Single;
        Stage stage{};
        MicroBatch number{};
    };

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

    int& positionOf(std::size_t kind, const Unit& u)
    {
        return position_[((2 * kind + (u.flow == Flow::Up ? 1 : 0)) * stages_ + index(u.stage)) * units_ + index(u.number)];
    }
    int positionOf(ActionKind kind, const Unit& u) { return positionOf(*trackedIndex(kind), u); }
    [[nodiscard]] Rank rankOf(const Unit& u) const { return schedule_.rankOf(u.flow, u.stage); }
    static std::string textOf(ActionKind kind, const Unit& u) { return toText(traces::makeAction(kind, u.stage, u.number, u.flow)); }

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
        if (!schedule_.has(work.flow))
            return fault(rank, at, text, schedule_.twoDirections() ? "names no direction, and the schedule has two; write d or u before it"
                                                                   : "names a direction, and the schedule has only one; leave d and u out");
        if (work.stage.value < 0 || index(work.stage) >= stages_)
            return fault(rank, at, text, fmt::format("names stage {}; there are stages 0 to {}", work.stage.value, stages_ - 1));
        if (schedule_.rankOf(work.flow, work.stage) != rank)
            return fault(rank, at, text, fmt::format("does not belong here, stage {}{} is on rank {}", work.stage.value,
                                                     work.flow == Flow::Single ? "" : work.flow == Flow::Up ? " of direction u" : " of direction d",
                                                     schedule_.rankOf(work.flow, work.stage).value));
        const std::optional<std::size_t> kind = trackedIndex(work.kind);
        if (!kind) return;
        if (work.microbatch.value < 0 || work.microbatch.value >= schedule_.units(work.flow))
            return fault(rank, at, text, fmt::format("names micro-batch {}; there are 0 to {}", work.microbatch.value,
                                                     schedule_.units(work.flow) - 1));
        int& place = positionOf(*kind, {work.flow, work.stage, work.microbatch});
        if (place >= 0)
            return fault(rank, at, text, fmt::format("is there twice, first at position {}; an action happens once", place));
        place = at;
    }

    void missing(const Unit& u, ActionKind kind, const std::string& why) { fault(rankOf(u), -1, textOf(kind, u), "is missing; " + why); }

    // A schedule without any backward is forward-only, and complete as such.
    [[nodiscard]] bool forwardOnly()
    {
        const std::size_t perKind = 2 * stages_ * units_;
        for (std::size_t k = 1; k <= 3; ++k)
            for (std::size_t i = 0; i < perKind; ++i)
                if (position_[k * perKind + i] >= 0) return false;
        return true;
    }

    void checkCompleteness()
    {
        const bool trains = !forwardOnly();
        forEachUnit([&](const Unit& u) {
            if (positionOf(ActionKind::Forward, u) < 0) missing(u, ActionKind::Forward, "every stage takes every micro-batch forward once");
            if (!trains) return;
            const bool full = positionOf(ActionKind::Backward, u) >= 0;
            const bool input = positionOf(ActionKind::InputGrad, u) >= 0;
            const bool weight = positionOf(ActionKind::WeightGrad, u) >= 0;
            if (full && (input || weight))
                fault(rankOf(u), positionOf(ActionKind::Backward, u), textOf(ActionKind::Backward, u),
                      "is a full backward, but there is an I or W for it as well; take one or the other");
            if (!full && !input && !weight) missing(u, ActionKind::Backward, "every forward needs a B, or an I and a W");
            if (!full && input && !weight) missing(u, ActionKind::WeightGrad, "an I needs a W");
            if (!full && weight && !input) missing(u, ActionKind::InputGrad, "a W needs an I");
        });
        if (communicates_) checkCommunication(trains);
        if (offloads_) forEachUnit([&](const Unit& u) { checkMoved(u, trains); });
        if (recomputes_) forEachUnit([&](const Unit& u) { checkRecomputed(u, trains); });
    }

    // What is computed again was not kept, so there is nothing to move; and somebody needs it.
    void checkRecomputed(const Unit& u, bool trains)
    {
        const int again = positionOf(ActionKind::Recompute, u);
        if (again < 0) return;
        if (!trains)
            fault(rankOf(u), again, textOf(ActionKind::Recompute, u), "computes what nothing will need, there is no backward; remove it");
        else if (positionOf(ActionKind::Offload, u) >= 0)
            fault(rankOf(u), again, textOf(ActionKind::Recompute, u),
                  fmt::format("computes again what {} moves away to be kept; take one or the other", textOf(ActionKind::Offload, u)));
    }

    // What left its rank comes back for its backward.
    void checkMoved(const Unit& u, bool trains)
    {
        const int away = positionOf(ActionKind::Offload, u);
        const int back = positionOf(ActionKind::Reload, u);
        if (away >= 0 && !trains)
            return fault(rankOf(u), away, textOf(ActionKind::Offload, u), "moves what nothing will need, there is no backward; remove it");
        if (away >= 0 && schedule_.offloadTo == OffloadTo::Partner && schedule_.partnerOf(rankOf(u)) == rankOf(u))
            return fault(rankOf(u), away, textOf(ActionKind::Offload, u), "would go to the rank itself, the middle one is its own partner; remove it");
        if (away >= 0 && back < 0) missing(u, ActionKind::Reload, "what was offloaded has to be there for its backward");
        if (away < 0 && back >= 0) missing(u, ActionKind::Offload, "there is nothing to reload");
    }

    void checkCommunication(bool trains)
    {
        forEachUnit([&](const Unit& u) {
            const Unit next{u.flow, Stage{u.stage.value + 1}, u.number};
            if (index(next.stage) >= stages_) return;
            const bool crosses = rankOf(u) != rankOf(next);
            const auto pair = [&](ActionKind send, const Unit& from, ActionKind recv, const Unit& to) {
                const bool sends = positionOf(send, from) >= 0;
                const bool receives = positionOf(recv, to) >= 0;
                if (!crosses && (sends || receives)) {
                    const ActionKind kind = sends ? send : recv;
                    const Unit& extra = sends ? from : to;
                    fault(rankOf(extra), positionOf(kind, extra), textOf(kind, extra),
                          "is not needed, both stages are on this rank; remove it");
                } else if (crosses) {
                    if (!sends) missing(from, send, fmt::format("stage {} is on another rank and needs it", to.stage.value));
                    if (!receives) missing(to, recv, fmt::format("stage {} is on another rank and sends it", from.stage.value));
                }
            };
            pair(ActionKind::SendForward, u, ActionKind::RecvForward, next);
            if (trains) pair(ActionKind::SendBackward, next, ActionKind::RecvBackward, u);
        });
    }

    // `later` must come after `earlier` on the rank of the stage, where both are there.
    void inOrder(const Unit& u, ActionKind earlier, ActionKind later) { inOrder(u, earlier, u, later); }
    void inOrder(const Unit& a, ActionKind earlier, const Unit& b, ActionKind later)
    {
        const int first = positionOf(earlier, a);
        const int second = positionOf(later, b);
        // the two of an overlapped pair stand at one position, and neither may wait for the other
        if (first < 0 || second < 0 || first < second) return;
        fault(rankOf(b), second, textOf(later, b),
              fmt::format("comes {} {} (position {}), which it needs; move it behind", first == second ? "together with" : "before",
                          textOf(earlier, a), first));
    }

    void checkOrder()
    {
        forEachUnit([&](const Unit& u) {
            inOrder(u, ActionKind::Forward, ActionKind::Backward);
            inOrder(u, ActionKind::Forward, ActionKind::InputGrad);
            inOrder(u, ActionKind::InputGrad, ActionKind::WeightGrad);
            if (schedule_.slices > 1) checkSlices(u);
            if (offloads_) {
                inOrder(u, ActionKind::Forward, ActionKind::Offload);
                inOrder(u, ActionKind::Offload, ActionKind::Reload);
                inOrder(u, ActionKind::Reload, ActionKind::Backward);
                inOrder(u, ActionKind::Reload, ActionKind::InputGrad);
            }
            if (recomputes_) {
                inOrder(u, ActionKind::Forward, ActionKind::Recompute);
                inOrder(u, ActionKind::Recompute, ActionKind::Backward);
                inOrder(u, ActionKind::Recompute, ActionKind::InputGrad);
            }
            if (!communicates_) return;
            inOrder(u, ActionKind::RecvForward, ActionKind::Forward);
            inOrder(u, ActionKind::Forward, ActionKind::SendForward);
            inOrder(u, ActionKind::RecvBackward, ActionKind::Backward);
            inOrder(u, ActionKind::RecvBackward, ActionKind::InputGrad);
            inOrder(u, ActionKind::Backward, ActionKind::SendBackward);
            inOrder(u, ActionKind::InputGrad, ActionKind::SendBackward);
        });
    }

    // Keys and values go from slice to slice, their gradients the other way.
    void checkSlices(const Unit& u)
    {
        if (u.number.value % schedule_.slices == schedule_.slices - 1) return;
        const Unit next{u.flow, u.stage, MicroBatch{u.number.value + 1}};
        inOrder(u, ActionKind::Forward, next, ActionKind::Forward);
        for (const ActionKind behind : {ActionKind::Backward, ActionKind::InputGrad})
            for (const ActionKind ahead : {ActionKind::Backward, ActionKind::InputGrad}) inOrder(next, behind, u, ahead);
    }

    template <class Visit>
    void forEachUnit(Visit&& visit)
    {
        for (const Flow flow : schedule_.flows())
            for (std::size_t s = 0; s < stages_; ++s)
                for (int i = 0; i < schedule_.units(flow); ++i) visit(Unit{flow, Stage{s}, MicroBatch{i}});
    }

    const Schedule& schedule_;
    std::size_t maxErrors_;
    bool communicates_;
    bool offloads_;
    bool recomputes_;
    std::size_t stages_;
    std::size_t units_; // of the direction that has more
    std::vector<int> position_; // by tracked kind, direction, stage, unit; -1 where there is none
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
    // without communication a rendezvous has no sides to meet and a channel no messages: PyTorch's lowering gives them
    if (options.send != SendMode::Buffered && !hasCommunication(schedule)) {
        if (Expected<Schedule> lowered = lowerCommunication(schedule); lowered.ok()) {
            report.deadlock = deadlockOf(lowered.value());
            return report;
        }
    }
    report.deadlock = deadlockOf(schedule);
    return report;
}

} // namespace stagecraft::engine
