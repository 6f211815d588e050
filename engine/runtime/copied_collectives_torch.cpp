// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/copied_collectives_torch.h"

#include "engine/runtime/replica_part.h"

#include <ATen/ops/_foreach_add.h>

namespace stagecraft::runtime {

using at::Tensor;

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

void CopiedCollectives::make(const Collective& collective, std::size_t member, int round, Cycle& cycle)
{
    if (round == 0) makePart(collective, member, cycle);
    else takeParts(collective, member, cycle);
}

void CopiedCollectives::makePart(const Collective& collective, std::size_t member, Cycle& cycle)
{
    Member& own = cycle.members[member];
    RankDevice& device = deviceOf(collective, member);
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
void CopiedCollectives::takeParts(const Collective& collective, std::size_t member, Cycle& cycle)
{
    Member& own = cycle.members[member];
    RankDevice& device = deviceOf(collective, member);
    for (const Member& each : cycle.members) device.await(each.partMade);
    for (std::size_t m = 0; m < cycle.members.size(); ++m)
        if (takesFrom(collective, member, m)) device.copy(partsOf(collective, m, own.given), cycle.members[m].part, cycle.members[m].partMade);
    own.given.clear();
    own.end = device.mark();
}

} // namespace stagecraft::runtime
