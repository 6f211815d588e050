// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/transfer_order.h"

#include "engine/schedule/dry_run.h"
#include "engine/schedule/handoff.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/action_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace stagecraft::engine {

namespace {

// A place in the line of all: the moment, and where several have it, the order of the dry run, in which nothing comes before what it needs.
struct Place {
    TimeNs at = 0;
    std::size_t turn = 0;
    auto operator<=>(const Place&) const = default;
};

struct Placed {
    Transfer transfer;
    Place place;
};

CostTable unitCosts(int stages)
{
    CostTable costs;
    costs.stages.assign(static_cast<std::size_t>(stages),
                        {.forward = 1, .backward = 2, .inputGrad = 1, .weightGrad = 1, .overlap = 3});
    return costs;
}

bool isMove(ActionKind kind) { return kind == ActionKind::Offload || kind == ActionKind::Reload; }

// Has the micro-batch's activations to itself from then on.
bool takesBack(const Action& action, const traces::Work& reload)
{
    bool found = false;
    forEachWork(action, [&](const traces::Work& work) {
        found = found || (isBackward(work.kind) && work.stage == reload.stage && work.microbatch == reload.microbatch && work.flow == reload.flow);
    });
    return found;
}

class Orderer {
public:
    Orderer(const Schedule& schedule, const CostTable& costs)
        : schedule_(schedule), costs_(costs), communicates_(hasCommunication(schedule)), shape_(schedule, communicates_), ranks_(schedule.order.size()),
          reached_(kFactCount * shape_.factSlots, 0)
    {
        lookAtLists();
    }

    TransferOrder order()
    {
        DryRun run(schedule_, SendMode::Buffered);
        run.execute([this](Rank rank, const Action& action) { take(rank, action); });
        std::sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) { return a.place < b.place; });

        TransferOrder order;
        order.groups.resize(schedule_.order.size());
        for (const Placed& each : placed_) order.transfers.push_back(each.transfer);
        for (std::size_t number = 0; number < placed_.size(); ++number) group(order, number);
        return order;
    }

private:
    struct RankState {
        TimeNs clock = 0;
        std::vector<std::size_t> before; // of each position of the list: computing actions before it
        std::vector<Place> ends;         // of each computing action; they grow
    };

    void lookAtLists()
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            std::size_t count = 0;
            for (const Action& action : schedule_.order[r]) {
                ranks_[r].before.push_back(count);
                noteNeeds(action, count);
                if (!traces::isTransfer(action.kind())) ++count;
            }
            ranks_[r].before.push_back(count);
            ranks_[r].ends.resize(count);
        }
    }

    // The receipt's place where the schedule has one, else that of the action that takes it.
    void noteNeeds(const Action& action, std::size_t place)
    {
        if (communicates_ && receives(action.kind())) neededBefore_[slot(shape_, *gainOf(action.work))] = place;
        if (communicates_) return;
        forEachWork(action, [&](const traces::Work& work) {
            if (const std::optional<Handoff> input = inputOf(schedule_, work)) neededBefore_[slot(shape_, *gainOf(input->recv.work))] = place;
        });
    }

    void take(Rank rank, const Action& action)
    {
        RankState& state = ranks_[index(rank)];
        TimeNs begin = state.clock;
        forEachWork(action, [&](const traces::Work& work) {
            everyNeed(shape_, work, [&](const Milestone& need) {
                begin = std::max(begin, reached_[slot(shape_, need)] + (rankOf(shape_, need) == rank ? 0 : costs_.transfer));
                return true;
            });
        });
        const Place end{begin + actionTime(costs_, action, costs_.seed), turn_++};
        state.clock = end.at;
        forEachWork(action, [&](const traces::Work& work) {
            if (const std::optional<Milestone> gain = gainOf(work)) reached_[slot(shape_, *gain)] = end.at;
        });
        const auto position = static_cast<std::size_t>(&action - schedule_.order[index(rank)].data());
        if (!traces::isTransfer(action.kind())) state.ends[state.before[position]] = end;
        addTransfers(rank, position, end);
    }

    void addTransfers(Rank rank, std::size_t position, Place place)
    {
        const Action& action = schedule_.order[index(rank)][position];
        const std::size_t behind = ranks_[index(rank)].before[position + 1];
        const auto add = [&](const std::optional<Handoff>& handoff) {
            if (!handoff) return;
            const std::size_t needed = neededBefore_.at(slot(shape_, *gainOf(handoff->recv.work)));
            placed_.push_back({{handoff->send.work, handoff->from, handoff->to, behind, needed}, place});
        };
        if (isMove(action.kind())) addMove(rank, position, place);
        else if (!communicates_) forEachWork(action, [&](const traces::Work& work) { add(outputOf(schedule_, work)); });
        else if (sends(action.kind())) add(outputOf(schedule_, handedOver(action.work)));
    }

    // Activations that lie with the partner for a while: he keeps them, and nothing of his waits for them.
    void addMove(Rank rank, std::size_t position, Place place)
    {
        if (schedule_.offloadTo != OffloadTo::Partner) return;
        const std::vector<Action>& list = schedule_.order[index(rank)];
        const traces::Work& work = list[position].work;
        const Rank partner = schedule_.partnerOf(rank);
        if (work.kind == ActionKind::Offload) {
            placed_.push_back({{work, rank, partner, ranks_[index(rank)].before[position + 1], ranks_[index(partner)].ends.size()}, place});
            return;
        }
        std::size_t use = position;
        while (use < list.size() && !takesBack(list[use], work)) ++use;
        placed_.push_back({{work, partner, rank, 0, ranks_[index(rank)].before[use]}, place});
    }

    // The second of an exchange joins the first where it is the last that both ranks have.
    void group(TransferOrder& order, std::size_t number)
    {
        const Transfer& transfer = order.transfers[number];
        std::vector<TransferGroup>& sender = order.groups[index(transfer.from)];
        std::vector<TransferGroup>& receiver = order.groups[index(transfer.to)];
        const bool joins = joinsLast(order, number);
        if (!joins) {
            sender.push_back({.peer = transfer.to});
            receiver.push_back({.peer = transfer.from});
        }
        const auto put = [&](std::vector<TransferGroup>& list, Rank rank, bool sends) {
            TransferGroup& last = list.back();
            last.slots[last.count++] = {number, sends};
            last.behind = countUntil(rank, placed_[number].place);
        };
        put(sender, transfer.from, true);
        put(receiver, transfer.to, false);
    }

    static bool joinsLast(const TransferOrder& order, std::size_t number)
    {
        const Transfer& second = order.transfers[number];
        const std::vector<TransferGroup>& sender = order.groups[index(second.from)];
        const std::vector<TransferGroup>& receiver = order.groups[index(second.to)];
        if (sender.empty() || receiver.empty() || sender.back().count != 1 || receiver.back().count != 1) return false;
        if (sender.back().slots[0].transfer != receiver.back().slots[0].transfer) return false;
        const Transfer& first = order.transfers[sender.back().slots[0].transfer];
        const bool opposite = first.from == second.to;
        const bool givenBack = first.work.kind == ActionKind::Offload && second.work.kind == ActionKind::Reload &&
                               first.work.stage == second.work.stage && first.work.microbatch == second.work.microbatch &&
                               first.work.flow == second.work.flow;
        return opposite && !givenBack && second.madeBehind <= first.neededBefore;
    }

    // Computing actions of the rank that stand before it in the line.
    [[nodiscard]] std::size_t countUntil(Rank rank, const Place& place) const
    {
        const std::vector<Place>& ends = ranks_[index(rank)].ends;
        return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
    }

    const Schedule& schedule_;
    const CostTable& costs_;
    bool communicates_;
    ScheduleShape shape_;
    std::vector<RankState> ranks_;
    std::vector<TimeNs> reached_; // by slot
    std::unordered_map<std::size_t, std::size_t> neededBefore_; // by slot of the arrival
    std::size_t turn_ = 0;
    std::vector<Placed> placed_;
};

} // namespace

Expected<TransferOrder> transferOrder(const Schedule& schedule, const CostTable* costs)
{
    const ValidationReport report = validate(schedule, {.maxErrors = 1});
    if (!report.errors.empty()) return Error{fmt::format("schedule {}: {}", schedule.name, report.errors.front().message)};
    if (!report.deadlock.empty()) {
        const WaitingRank& waiting = report.deadlock.front();
        return Error{fmt::format("schedule {}: it cannot be executed, rank {} waits at position {} ({}) for {}", schedule.name, waiting.rank.value,
                                 waiting.position, waiting.action, waiting.waitsFor)};
    }
    if (costs != nullptr && costs->stages.size() != schedule.stageToRank.size())
        return Error{fmt::format("schedule {}: the costs are of {} stages, and it has {}", schedule.name, costs->stages.size(), schedule.stages())};
    const CostTable units = costs != nullptr ? CostTable{} : unitCosts(schedule.stages());
    return Orderer(schedule, costs != nullptr ? *costs : units).order();
}

} // namespace stagecraft::engine
