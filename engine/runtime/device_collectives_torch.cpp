// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_collectives_torch.h"

#include "engine/probe/cupti/work_scope.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/replica_part.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;
using traces::Step;

namespace {

// Of several members of a replica the first makes the sum that its replica gets.
std::size_t makerFor(const Collective& collective, std::size_t member)
{
    const int replica = collective.members()[member].replica;
    while (member > 0 && collective.members()[member - 1].replica == replica) --member;
    return member;
}

bool divided(const Collective& collective) { return !collective.sums() || collective.kind().result == Collective::Result::OwnPart; }

// Who makes a part of it, and whose parts a member takes over.
bool makesPart(const Collective& collective, std::size_t member)
{
    return !collective.sums() || !divided(collective) || makerFor(collective, member) == member;
}
bool takesFrom(const Collective& collective, std::size_t member, std::size_t other)
{
    if (!collective.sums()) return other != member; // it has its own
    return !divided(collective) || makerFor(collective, member) == other;
}

// The member's part of each that has some for it. A view that counts no changes: a graph may hold on to weights, which come and go.
std::vector<Tensor> partsOf(const Collective& collective, std::size_t member, const std::vector<Tensor>& tensors)
{
    std::vector<Tensor> parts;
    for (const Tensor& tensor : tensors) {
        const PartRange part = divided(collective) ? partOf(tensor.numel(), collective.members()[member].replica, collective.replicas())
                                                   : partOf(tensor.numel(), static_cast<int>(member), static_cast<int>(collective.members().size()));
        if (part.size() > 0) parts.push_back(tensor.data().view(-1).narrow(0, part.begin, part.size()));
    }
    return parts;
}

} // namespace

DeviceCollectives::DeviceCollectives(const std::vector<Execution>& replicas)
    : replicas_(replicas), timed_(replicas.front().plan.run.tracing >= traces::TraceLevel::Events)
{
    for (const Execution& replica : replicas)
        for (int r = 0; r < replica.schedule.ranks; ++r)
            ranks_.push_back({.device = &replica.pipeline.sumDevice(Rank{r}), .ledger = &replica.pipeline.ledger(Rank{r}), .asked = {}});
}

DeviceCollectives::~DeviceCollectives()
{
    for (const RankParts& rank : ranks_) {
        try {
            rank.device->drain();
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
    const RankDevice::Scope here = rank.device->enter();
    const DeviceWatch::Wait wait(replicas_.front().watch, who.rank, cycle->step, collective.action(member), DeviceWatch::Thread::Sums);
    const WorkScope mark(replicas_.front().marks, cycle->step, collective.action(member), who.replica);
    const AllocationScope scope({.ledger = rank.ledger});
    const at::NoGradGuard noGrad;
    if (round == 0) return makePart(collective, member, *cycle);
    takeParts(collective, member, *cycle);
    const std::lock_guard lock(mutex_);
    ends_[{&collective, member}] = cycle->members[member].end;
}

void DeviceCollectives::makePart(const Collective& collective, std::size_t member, Cycle& cycle)
{
    Member& own = cycle.members[member];
    RankDevice& device = *ranks_[traces::index(collective.members()[member].rank)].device;
    for (const Member& each : cycle.members) device.await(each.ready);
    own.begin = device.mark();
    const auto fetched = [&](const Member& from) {
        std::vector<Tensor> parts = partsOf(collective, member, from.given);
        for (Tensor& part : parts) part = device.fetch({part, from.ready}).tensor;
        return parts;
    };
    if (!collective.sums()) {
        for (const Tensor& part : partsOf(collective, member, own.given)) own.part.push_back(part.clone());
    } else if (makesPart(collective, member)) {
        const std::vector<Tensor> first = fetched(cycle.members[0]);
        if (!first.empty()) own.part = at::_foreach_add(first, fetched(cycle.members[1]));
        for (std::size_t m = 2; m < cycle.members.size() && !first.empty(); ++m) at::_foreach_add_(own.part, fetched(cycle.members[m]));
    }
    own.partMade = device.mark();
}

// Not before all are through with reading what is written here.
void DeviceCollectives::takeParts(const Collective& collective, std::size_t member, Cycle& cycle)
{
    Member& own = cycle.members[member];
    RankDevice& device = *ranks_[traces::index(collective.members()[member].rank)].device;
    for (const Member& each : cycle.members) device.await(each.partMade);
    for (std::size_t m = 0; m < cycle.members.size(); ++m)
        if (takesFrom(collective, member, m)) device.copy(partsOf(collective, m, own.given), cycle.members[m].part, cycle.members[m].partMade);
    own.given.clear();
    own.end = device.mark();
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
    return std::make_unique<DeviceCollectives>(replicas);
}

} // namespace stagecraft::runtime
