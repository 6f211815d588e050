// SPDX-License-Identifier: Apache-2.0
#include "random_case.h"
#include "unit_costs.h"

#include "engine/schedule/handoff.h"
#include "engine/schedule/lower.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/transfer_order.h"
#include "engine/schedule/validate.h"
#include "engine/simulate/action_time.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

using namespace stagecraft;
using namespace stagecraft::test;
using engine::Action;
using engine::ActionKind;
using engine::LoweringRule;
using engine::Rank;
using engine::Schedule;
using engine::Transfer;
using engine::TransferGroup;
using engine::TransferOrder;
using engine::TransferPart;
using traces::Work;
using ::testing::HasSubstr;

namespace {

// How a rank's host behaves: it enqueues all and looks at nothing, or it has one stream for all and waits for each thing that it enqueues.
enum class Host { RunsAhead, WaitsForEach };

// Carries out a step as NCCL does (the model of transfer_order.h), by what the schedule's actions need and not by what the order says of
// them. Nothing is chosen here, so where it stands still nothing else would have got on.
class Rendezvous {
public:
    // With costs it also takes time: an action that of the costs, a transfer none.
    Rendezvous(const Schedule& schedule, const TransferOrder& order, Host host, const engine::CostTable* costs = nullptr)
        : schedule_(engine::withoutCommunication(schedule)), order_(order), host_(host), costs_(costs), ranks_(schedule_.order.size())
    {
        for (const std::vector<Action>& list : schedule_.order)
            for (const Action& action : list) noteWork(action);
    }

    // Empty where all came to its end, else what stands still.
    std::string run()
    {
        for (bool progress = true; progress;) {
            progress = false;
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                while (enqueue(r)) progress = true;
                while (compute(r)) progress = true;
                progress = exchange(r) || progress;
            }
        }
        std::string stuck = fault_;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            const RankState& rank = ranks_[r];
            if (rank.computed < schedule_.order[r].size()) stuck += fmt::format("rank {} at {}; ", r, toText(schedule_.order[r][rank.computed]));
            if (rank.exchanged < order_.groups[r].size())
                stuck += fmt::format("rank {} at its group {} ({}); ", r, rank.exchanged, toText(Action{nextGroupOf(r), {}}));
        }
        return stuck;
    }

    [[nodiscard]] traces::TimeNs makespan() const
    {
        traces::TimeNs last = 0;
        for (const RankState& rank : ranks_) last = std::max(last, rank.computeTime);
        return last;
    }

private:
    struct RankState {
        std::size_t actions = 0, groups = 0;     // enqueued
        std::size_t computed = 0, exchanged = 0; // ended
        traces::TimeNs computeTime = 0, streamTime = 0; // when the last of each ended
    };

    void noteWork(const Action& action)
    {
        engine::forEachWork(action, [&](const Work& work) {
            if (const auto out = engine::outputOf(schedule_, work)) maker_[out->send.work] = action;
        });
    }

    [[nodiscard]] const Work& nextGroupOf(std::size_t r) const
    {
        return order_.transfers[order_.groups[r][ranks_[r].exchanged].slots[0].transfer].work;
    }

    bool enqueue(std::size_t r)
    {
        RankState& rank = ranks_[r];
        const bool idle = rank.actions == rank.computed && rank.groups == rank.exchanged;
        if (host_ == Host::WaitsForEach && !idle) return false;
        const std::vector<TransferGroup>& groups = order_.groups[r];
        if (rank.groups < groups.size() && groups[rank.groups].behind <= rank.actions) {
            for (const TransferPart& part : groups[rank.groups].parts())
                if (part.sends && !isThere(r, order_.transfers[part.transfer], rank.actions, posted_.contains({offloadOf(order_.transfers[part.transfer].work), r})))
                    fault_ += fmt::format("rank {} would send {} before it is enqueued; ", r, toText(Action{order_.transfers[part.transfer].work, {}}));
            for (const TransferPart& part : groups[rank.groups].parts()) posted_.insert({order_.transfers[part.transfer].work, r});
            ++rank.groups;
            return true;
        }
        if (rank.actions == schedule_.order[r].size()) return false;
        for (const Work& need : needsOf(schedule_.order[r][rank.actions]))
            if (!posted_.contains({need, r})) fault_ += fmt::format("rank {} would not wait for {}; ", r, toText(Action{need, {}}));
        ++rank.actions;
        return true;
    }

    // The transfers that an action waits for, by the names that their senders give them.
    [[nodiscard]] std::vector<Work> needsOf(const Action& action) const
    {
        std::vector<Work> needs;
        engine::forEachWork(action, [&](const Work& work) {
            if (const auto input = engine::inputOf(schedule_, work)) needs.push_back(input->send.work);
            if (!engine::isBackward(work.kind) || schedule_.offloadTo != engine::OffloadTo::Partner) return;
            const Work reload{ActionKind::Reload, work.flow, work.stage, work.microbatch};
            const auto& list = schedule_.order[index(schedule_.rankOf(work.flow, work.stage))];
            if (std::any_of(list.begin(), list.end(), [&](const Action& a) { return a.work == reload; })) needs.push_back(reload);
        });
        return needs;
    }

    static Work offloadOf(const Work& reload) { return {ActionKind::Offload, reload.flow, reload.stage, reload.microbatch}; }

    // What it sends is made among the first `count` actions of the rank, or was brought to it.
    [[nodiscard]] bool isThere(std::size_t r, const Transfer& transfer, std::size_t count, bool brought) const
    {
        if (transfer.work.kind == ActionKind::Reload) return brought;
        const Action maker = transfer.work.kind == ActionKind::Offload ? Action{transfer.work, {}} : maker_.at(transfer.work);
        const auto& list = schedule_.order[r];
        return std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count), maker) != list.begin() + static_cast<std::ptrdiff_t>(count);
    }

    bool compute(std::size_t r)
    {
        RankState& rank = ranks_[r];
        if (rank.computed == rank.actions) return false;
        const Action& action = schedule_.order[r][rank.computed];
        for (const Work& need : needsOf(action)) {
            const auto arrived = arrived_.find(need);
            if (arrived == arrived_.end()) return false;
            rank.computeTime = std::max(rank.computeTime, arrived->second);
        }
        if (costs_ != nullptr) rank.computeTime += engine::actionTime(*costs_, action, costs_->seed);
        endOf_[action] = rank.computeTime;
        ++rank.computed;
        return true;
    }

    [[nodiscard]] const TransferGroup* atHead(std::size_t r) const
    {
        const RankState& rank = ranks_[r];
        if (rank.exchanged == rank.groups) return nullptr;
        const TransferGroup& group = order_.groups[r][rank.exchanged];
        for (const TransferPart& part : group.parts())
            if (part.sends && !isThere(r, order_.transfers[part.transfer], rank.computed, arrived_.contains(offloadOf(order_.transfers[part.transfer].work))))
                return nullptr;
        return &group;
    }

    bool exchange(std::size_t r)
    {
        const TransferGroup* own = atHead(r);
        if (own == nullptr) return false;
        const TransferGroup* others = atHead(index(own->peer));
        if (others == nullptr || index(others->peer) != r || others->count != own->count) return false;
        for (std::size_t k = 0; k < own->count; ++k)
            if (own->slots[k].transfer != others->slots[k].transfer || own->slots[k].sends == others->slots[k].sends) return false;
        RankState& peer = ranks_[index(own->peer)];
        traces::TimeNs time = std::max(ranks_[r].streamTime, peer.streamTime);
        for (const TransferPart& part : own->parts()) time = std::max(time, madeAt(order_.transfers[part.transfer].work));
        for (const TransferPart& part : own->parts()) arrived_[order_.transfers[part.transfer].work] = time;
        ranks_[r].streamTime = peer.streamTime = time;
        ++ranks_[r].exchanged;
        ++peer.exchanged;
        return true;
    }

    [[nodiscard]] traces::TimeNs madeAt(const Work& transfer) const
    {
        if (transfer.kind == ActionKind::Reload) return 0; // the partner has it since the OFFLOAD, which is before on both streams
        return endOf_.at(transfer.kind == ActionKind::Offload ? Action{transfer, {}} : maker_.at(transfer));
    }

    Schedule schedule_;
    const TransferOrder& order_;
    Host host_;
    const engine::CostTable* costs_;
    std::vector<RankState> ranks_;
    std::map<Work, Action> maker_; // of what a SEND names
    std::set<std::pair<Work, std::size_t>> posted_; // by rank, of both sides
    std::map<Work, traces::TimeNs> arrived_;
    std::map<Action, traces::TimeNs> endOf_;
    std::string fault_;
};

std::string stuckAt(const Schedule& schedule, const TransferOrder& order)
{
    return Rendezvous(schedule, order, Host::RunsAhead).run() + Rendezvous(schedule, order, Host::WaitsForEach).run();
}

TransferOrder ordered(const Schedule& schedule, const engine::CostTable* costs = nullptr)
{
    traces::Expected<TransferOrder> order = engine::transferOrder(schedule, costs);
    if (!order.ok()) throw std::runtime_error(order.error().message);
    return std::move(order).value();
}

// What must hold of every order, beside that it does not hang: every transfer is there once, and both sides have it.
void expectWhole(const Schedule& schedule, const TransferOrder& order)
{
    std::set<Work> expected;
    const Schedule computing = engine::withoutCommunication(schedule);
    for (const std::vector<Action>& list : computing.order)
        for (const Action& action : list) {
            const bool moves = action.kind() == ActionKind::Offload || action.kind() == ActionKind::Reload;
            if (moves && schedule.offloadTo == engine::OffloadTo::Partner) expected.insert(action.work);
            engine::forEachWork(action, [&](const Work& work) {
                if (const auto out = engine::outputOf(computing, work)) expected.insert(out->send.work);
            });
        }
    std::multiset<Work> found;
    for (const Transfer& transfer : order.transfers) found.insert(transfer.work);
    EXPECT_EQ(std::multiset<Work>(expected.begin(), expected.end()), found);

    std::vector<int> sides(order.transfers.size(), 0);
    for (std::size_t r = 0; r < order.groups.size(); ++r) {
        std::size_t last = 0;
        for (const TransferGroup& group : order.groups[r]) {
            ASSERT_GE(group.count, 1);
            EXPECT_GE(group.behind, last);
            last = group.behind;
            for (const TransferPart& part : group.parts()) {
                const Transfer& transfer = order.transfers[part.transfer];
                EXPECT_EQ(part.sends ? transfer.from : transfer.to, Rank{r});
                EXPECT_EQ(part.sends ? transfer.to : transfer.from, group.peer);
                sides[part.transfer] += part.sends ? 1 : 16;
            }
            if (group.count == 2) {
                EXPECT_NE(group.slots[0].sends, group.slots[1].sends);
            }
        }
        EXPECT_LE(last, computing.order[r].size());
    }
    EXPECT_THAT(sides, ::testing::Each(17));
}

// A rank's transfers as it would issue them by itself: each receipt before the action that needs it, each send behind its maker.
TransferOrder naiveOrder(const Schedule& schedule)
{
    TransferOrder order = ordered(schedule);
    std::map<Work, std::size_t> number;
    for (std::size_t t = 0; t < order.transfers.size(); ++t) number[order.transfers[t].work] = t;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        order.groups[r].clear();
        const auto add = [&](const engine::Handoff& handoff, bool sends, std::size_t behind) {
            order.groups[r].push_back({.slots = {TransferPart{number.at(handoff.send.work), sends}},
                                       .count = 1,
                                       .peer = sends ? handoff.to : handoff.from,
                                       .behind = behind});
        };
        for (std::size_t at = 0; at < schedule.order[r].size(); ++at)
            engine::forEachWork(schedule.order[r][at], [&](const Work& work) {
                if (const auto in = engine::inputOf(schedule, work)) add(*in, false, at);
                if (const auto out = engine::outputOf(schedule, work)) add(*out, true, at + 1);
            });
    }
    return order;
}

// "0SEND_F1>1,1SEND_B0<1": a rank's groups in brackets, each transfer by the name that its sender gives it.
std::string textOf(const TransferOrder& order, std::size_t rank)
{
    std::string text;
    for (const TransferGroup& group : order.groups[rank]) {
        std::string cell;
        for (const TransferPart& part : group.parts())
            cell += (cell.empty() ? "" : " ") + toText(Action{order.transfers[part.transfer].work, {}}) + (part.sends ? ">" : "<");
        text += (text.empty() ? "" : " ") + (group.count > 1 ? "(" + cell + ")" : cell);
    }
    return text;
}

TEST(TransferOrder, PutsOpposite1F1BTransfersOfAPairTogether)
{
    const Schedule schedule = made("1f1b", 2, 3);
    //  rank 0  F0 F1 .  .  B0 F2 .  .  B1 .  .  B2
    //  rank 1  .  F0 B0 B0 F1 B1 B1 F2 B2 B2          F1 goes ahead while B0 comes back
    const TransferOrder order = ordered(schedule);
    EXPECT_EQ(textOf(order, 0), "0SEND_F0> (0SEND_F1> 1SEND_B0<) (0SEND_F2> 1SEND_B1<) 1SEND_B2<");
    EXPECT_EQ(textOf(order, 1), "0SEND_F0< (0SEND_F1< 1SEND_B0>) (0SEND_F2< 1SEND_B1>) 1SEND_B2>");
    std::vector<std::size_t> behind;
    for (const TransferGroup& group : order.groups[1]) behind.push_back(group.behind);
    EXPECT_THAT(behind, ::testing::ElementsAre(0, 2, 4, 6)); // 1F0 1B0 | 1F1 1B1 | 1F2 1B2
}

TEST(TransferOrder, KeepsApartWhatTheSecondNeedsTheFirstFor)
{
    // each gradient is of the activation that was sent just before
    const Schedule schedule = engine::parseSchedule("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n").value();
    const TransferOrder order = ordered(schedule);
    EXPECT_EQ(textOf(order, 0), "0SEND_F0> 1SEND_B0< 0SEND_F1> 1SEND_B1<");
    EXPECT_EQ(stuckAt(schedule, order), "");
}

TEST(TransferOrder, SeesAGroupThatWaitsForItself)
{
    const Schedule schedule = engine::parseSchedule("0F0,0B0\n1F0,1B0\n").value();
    TransferOrder order = ordered(schedule);
    for (std::vector<TransferGroup>& list : order.groups) {
        list[0].slots[1] = list[1].slots[0];
        list[0].count = 2;
        list[0].behind = std::max(list[0].behind, list[1].behind);
        list.pop_back();
    }
    EXPECT_THAT(Rendezvous(schedule, order, Host::RunsAhead).run(), HasSubstr("rank 1 at 1F0"));
}

TEST(TransferOrder, SendsActivationsToAPartnerAndHasThemSentBack)
{
    const Schedule schedule = engine::parseSchedule("# offload to partner\n0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n1F0,1B0,1F1,1B1\n").value();
    const TransferOrder order = ordered(schedule);
    EXPECT_THAT(textOf(order, 0), HasSubstr("0OFFLOAD0>"));
    EXPECT_THAT(textOf(order, 0), HasSubstr("0RELOAD0<"));
    expectWhole(schedule, order);
    EXPECT_EQ(stuckAt(schedule, order), "");
}

TEST(TransferOrder, GoesByTheCostsThatItIsGiven)
{
    // two micro-batches on their way from different ranks to the third: which is first depends on who is slow
    const Schedule schedule = made("1f1b", 3, 2);
    engine::CostTable costs = slotCosts(3, kSlot, 2 * kSlot);
    costs.stages[1].forward = 10 * kSlot;
    const TransferOrder slow = ordered(schedule, &costs);
    const auto place = [](const TransferOrder& order, const char* text) {
        const Work work = traces::parseAction(text).value().work;
        return std::find_if(order.transfers.begin(), order.transfers.end(), [&](const Transfer& t) { return t.work == work; }) - order.transfers.begin();
    };
    EXPECT_LT(place(slow, "0SEND_F1"), place(slow, "1SEND_F0"));
    costs.stages[0].forward = 100 * kSlot;
    const TransferOrder fast = ordered(schedule, &costs);
    EXPECT_GT(place(fast, "0SEND_F1"), place(fast, "1SEND_F0"));
    costs.stages.pop_back();
    EXPECT_THAT(engine::transferOrder(schedule, &costs).error().message, HasSubstr("the costs are of 2 stages, and it has 3"));
}

TEST(TransferOrder, RefusesWhatCannotBeExecuted)
{
    const auto refusal = [](const char* text) { return engine::transferOrder(engine::parseSchedule(text).value()).error().message; };
    EXPECT_THAT(refusal("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"), HasSubstr("rank 0 waits at position 1 (0B0) for 1B0"));
    EXPECT_THAT(refusal("0F0\n1F0,1B0\n"), HasSubstr("0B0 is missing"));
}

TEST(TransferOrder, IsEmptyWhereOneRankHasAll)
{
    const TransferOrder order = ordered(engine::parseSchedule("0F0,1F0,1B0,0B0\n").value());
    EXPECT_TRUE(order.transfers.empty());
    EXPECT_TRUE(order.groups[0].empty());
}

// The rule that everybody would write first hangs with the second micro-batch; what is judged here can fail.
TEST(TransferOrder, IsNeededByOrdinarySchedules)
{
    const auto hangs = [](const Schedule& schedule) { return !Rendezvous(schedule, naiveOrder(schedule), Host::RunsAhead).run().empty(); };
    EXPECT_THAT(Rendezvous(made("1f1b", 2, 2), naiveOrder(made("1f1b", 2, 2)), Host::RunsAhead).run(),
                HasSubstr("rank 0 at its group 1 (0SEND_F1); rank 1 at 1F1; rank 1 at its group 1 (1SEND_B0)"));
    EXPECT_FALSE(hangs(made("gpipe", 4, 8)));
    for (const auto& [family, chunks] : {std::pair{"1f1b", 1}, std::pair{"zb-h1", 1}, std::pair{"zb-v", 2}, std::pair{"hanayo", 2}})
        EXPECT_TRUE(hangs(made(family, 4, 8, chunks))) << family;
}

class AnyTransferOrder : public testing::TestWithParam<unsigned> {};

TEST_P(AnyTransferOrder, LeavesNobodyWaitingForEver)
{
    const unsigned turn = GetParam();
    std::mt19937 random(977 + turn);
    for (unsigned draw = 0; draw < 12; ++draw) {
        const Schedule schedule = drawSchedule(random, turn, 6, 12);
        const std::string about = fmt::format("{} p={} v={} m={} slices={}", schedule.name, schedule.ranks, schedule.chunks, schedule.microbatches, schedule.slices);
        SCOPED_TRACE(about);
        engine::CostTable costs = slotCosts(schedule.stages(), 0, 0, static_cast<traces::TimeNs>(random() % 300));
        for (engine::StageCosts& stage : costs.stages) { // often 0: then much has the same moment
            stage.forward = static_cast<traces::TimeNs>(random() % 4);
            stage.backward = static_cast<traces::TimeNs>(random() % 1000);
            stage.inputGrad = static_cast<traces::TimeNs>(random() % 2);
            stage.weightGrad = static_cast<traces::TimeNs>(random() % 1000);
        }
        for (const engine::CostTable* given : {static_cast<const engine::CostTable*>(nullptr), &std::as_const(costs)}) {
            const TransferOrder its = ordered(schedule, given);
            expectWhole(schedule, its);
            EXPECT_EQ(stuckAt(schedule, its), "");
        }
        // Where everything takes as long as was thought, sends and receipts that wait for each other delay nobody.
        costs.transfer = 0;
        const TransferOrder order = ordered(schedule, &costs);
        Rendezvous timed(schedule, order, Host::RunsAhead, &costs);
        EXPECT_EQ(timed.run(), "");
        EXPECT_EQ(timed.makespan(), figuresOf(schedule, costs).makespan);

        for (const LoweringRule rule : engine::kLoweringRules) {
            const traces::Expected<Schedule> lowered = engine::lowerCommunication(schedule, rule);
            if (!lowered.ok()) continue; // Megatron's is for two families
            const TransferOrder its = ordered(lowered.value());
            expectWhole(lowered.value(), its);
            EXPECT_EQ(stuckAt(lowered.value(), its), "") << engine::loweringRuleName(rule);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(EveryFamily, AnyTransferOrder, testing::Range(0U, static_cast<unsigned>(engine::scheduleFamilies().size())),
                         [](const auto& instance) {
                             std::string name = engine::scheduleFamilies()[instance.param].name;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

// Nobody's family: stages anywhere, each rank's actions in any order that can be executed.
TEST(TransferOrder, LeavesNobodyWaitingInRandomSchedules)
{
    std::mt19937 random(4711);
    int groupsOfTwo = 0;
    for (int draw = 0; draw < 200; ++draw) {
        const int ranks = 2 + static_cast<int>(random() % 4);
        const int stages = ranks + static_cast<int>(random() % 5);
        const int microbatches = 1 + static_cast<int>(random() % 5);
        Schedule schedule{"custom", ranks, 1, microbatches, {}, {}};
        for (int s = 0; s < stages; ++s) schedule.stageToRank.emplace_back(s < ranks ? s : static_cast<int>(random() % static_cast<unsigned>(ranks)));
        schedule.order.resize(static_cast<std::size_t>(ranks));
        // each micro-batch goes through all stages and back, in turns by chance
        std::vector<int> done(static_cast<std::size_t>(microbatches), 0);
        for (int left = 2 * stages * microbatches; left > 0; --left) {
            std::size_t i = random() % done.size();
            while (done[i] == 2 * stages) i = (i + 1) % done.size();
            const int at = done[i]++;
            const traces::Stage stage{at < stages ? at : 2 * stages - 1 - at};
            const ActionKind kind = at < stages ? ActionKind::Forward : ActionKind::Backward;
            schedule.order[index(schedule.rankOf(traces::Flow::Single, stage))].push_back(traces::makeAction(kind, stage, traces::MicroBatch{i}));
        }
        ASSERT_TRUE(engine::validate(schedule).legal()) << engine::toText(schedule);
        const TransferOrder order = ordered(schedule);
        expectWhole(schedule, order);
        EXPECT_EQ(stuckAt(schedule, order), "") << engine::toText(schedule);
        for (const auto& list : order.groups)
            for (const TransferGroup& group : list) groupsOfTwo += group.count == 2 ? 1 : 0;
    }
    EXPECT_GT(groupsOfTwo, 100); // or the fusing was not tried
}

} // namespace
