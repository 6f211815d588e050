// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_collectives_torch.h"

#include "engine/probe/cupti/work_scope.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/copied_collectives_torch.h"
#include "engine/runtime/nccl_collectives_torch.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;
using traces::Step;

DeviceCollectives::DeviceCollectives(const std::vector<Execution>& replicas)
    : replicas_(replicas), timed_(replicas.front().plan.run.tracing >= traces::TraceLevel::Events)
{
    for (const Execution& replica : replicas)
        for (int r = 0; r < replica.schedule.ranks; ++r)
            ranks_.push_back({.device = &replica.pipeline.sumDevice(Rank{r}), .ledger = &replica.pipeline.ledger(Rank{r}), .asked = {}});
}

DeviceCollectives::~DeviceCollectives()
{
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const DeviceWatch::Wait wait(replicas_.front().watch, Rank{r}, DeviceWatch::OfOthers{"ending its sums"});
        try {
            ranks_[r].device->drain();
        } catch (...) { // a device that has failed uses nothing any more
        }
    }
}

// A member gives again once all are through with what it gave to last.
void DeviceCollectives::take(const Turn& turn, Step step, std::vector<Tensor> values, DeviceMark ready)
{
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Cycle>& cycle = cycles_[turn.collective];
    if (!cycle || cycle->given == cycle->members.size()) cycle = std::make_shared<Cycle>(turn.collective->members().size());
    cycle->step = step;
    ++cycle->given;
    Member& own = cycle->members[turn.member];
    own.given = std::move(values);
    own.givenAt = replicas_.front().clock.now();
    own.ready = std::move(ready);
}

DeviceMark DeviceCollectives::doneAt(const Turn& turn) const
{
    const std::lock_guard lock(mutex_);
    const auto known = ends_.find({turn.collective, turn.member});
    return known == ends_.end() ? nullptr : known->second;
}

std::shared_ptr<DeviceCollectives::Cycle> DeviceCollectives::cycleOf(const Collective& collective) const
{
    const std::lock_guard lock(mutex_);
    return cycles_.at(&collective);
}

void DeviceCollectives::work(const Collective& collective, std::size_t member, int round)
{
    const std::shared_ptr<Cycle> cycle = cycleOf(collective);
    const Collective::Member& who = collective.members()[member];
    const RankParts& rank = ranks_[traces::index(who.rank)];
    rank.device->useHere(); // this thread is for sums alone
    const RankDevice::Scope here = rank.device->enter();
    const DeviceWatch::Wait wait(replicas_.front().watch, who.rank, cycle->step, collective.action(member), DeviceWatch::Thread::Sums);
    const WorkScope mark(replicas_.front().marks, cycle->step, collective.action(member), who.replica);
    const AllocationScope scope({.ledger = rank.ledger});
    const at::NoGradGuard noGrad;
    make(collective, member, round, *cycle);
    if (round + 1 < rounds()) return;
    const std::lock_guard lock(mutex_);
    ends_[{&collective, member}] = cycle->members[member].end;
}

void DeviceCollectives::end(const Collective& collective, std::size_t member, const CollectiveSpan& span, const Record& record)
{
    RankParts& rank = ranks_[traces::index(collective.members()[member].rank)];
    const RankDevice::Scope here = rank.device->enter();
    rank.asked.push_back({&collective, member, span, cycleOf(collective)});
    const auto isDone = [](const Asked& asked) {
        const DeviceMark& mark = asked.cycle->members[asked.member].end;
        return !mark || mark->reached();
    };
    while (!rank.asked.empty() && isDone(rank.asked.front())) settleFirst(rank, record);
    while (rank.asked.size() > kAhead) settleFirst(rank, record);
}

void DeviceCollectives::settle(Rank which, const Record& record)
{
    RankParts& rank = ranks_[traces::index(which)];
    const RankDevice::Scope here = rank.device->enter();
    while (!rank.asked.empty()) settleFirst(rank, record);
}

// What was needed was there when the last one had made it, whoever asked for it last.
void DeviceCollectives::settleFirst(RankParts& rank, const Record& record) const
{
    Asked& asked = rank.asked.front();
    Cycle& cycle = *asked.cycle;
    const Member& own = cycle.members[asked.member];
    if (own.end) {
        const Rank who = asked.collective->members()[asked.member].rank;
        const DeviceWatch::Wait wait(replicas_.front().watch, who, cycle.step, asked.collective->action(asked.member), DeviceWatch::Thread::Sums);
        own.end->wait();
    }
    if (timed_) {
        const auto last = std::max_element(cycle.members.begin(), cycle.members.end(),
                                           [](const Member& one, const Member& other) { return one.readyAt() < other.readyAt(); });
        asked.span.ready = last->readyAt();
        asked.span.last = asked.collective->members()[static_cast<std::size_t>(last - cycle.members.begin())].rank;
        asked.span.begin = own.begin ? own.begin->time() : std::max(asked.span.begin, asked.span.ready);
        if (own.end) asked.span.end = own.end->time();
    }
    record(*asked.collective, asked.member, asked.span);
    if (cycle.left.fetch_sub(1) == 1)
        for (Member& each : cycle.members) each.part.clear();
    rank.asked.pop_front();
}

std::unique_ptr<DeviceCollectives> deviceCollectives(const std::vector<Execution>& replicas)
{
    const Execution& run = replicas.front();
    if (run.sums == nullptr || run.plan.run.device == engine::DeviceKind::Cpu) return nullptr;
    if (run.ncclSums != nullptr) return ncclCollectives(replicas, *run.ncclSums);
    return std::make_unique<CopiedCollectives>(replicas);
}

} // namespace stagecraft::runtime
