// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/virtual_copies_torch.h"

#include <algorithm>

namespace stagecraft::runtime {

using namespace traces;

VirtualCopies::VirtualCopies(const Execution& run, VirtualMemory& memory)
    : run_(run), memory_(memory), links_(run.costs, run.schedule.ranks), lanes_(static_cast<std::size_t>(run.schedule.ranks))
{
}

void VirtualCopies::beginStep(TimeNs at)
{
    for (Lanes& lanes : lanes_) lanes = {at, at};
    away_.clear();
    back_.clear();
}

TimeNs VirtualCopies::timeOf(Rank rank, const Work& work)
{
    const Bytes bytes = run_.pipeline.moved(work);
    if (run_.schedule.offloadTo == engine::OffloadTo::Host) {
        const engine::Link& host = run_.costs.machine.host;
        return host.latency + host.occupied(bytes);
    }
    const engine::Links::Hop way = links_.hop(rank, run_.schedule.partnerOf(rank), bytes);
    return way.latency + way.occupied;
}

void VirtualCopies::ask(Rank rank, const Work& work, TimeNs now, Step step)
{
    const bool back = work.kind == ActionKind::Reload;
    Lanes& lanes = lanes_[index(rank)];
    TimeNs& free = back ? lanes.back : lanes.away;
    const TimeNs begin = std::max({now, free, back ? away_.at(unitOf(work)) : now});
    const TimeNs end = begin + timeOf(rank, work);
    free = end;
    (back ? back_ : away_)[unitOf(work)] = end;
    due_.emplace(begin, Due{rank, work, step, false});
    due_.emplace(end, Due{rank, work, step, true});
    run_.recorder.ring(run_.among(rank)).push(copyEvent(step, work, {begin, end}));
}

bool VirtualCopies::runUntil(TimeNs time)
{
    while (!due_.empty() && due_.begin()->first <= time) {
        const auto next = due_.extract(due_.begin());
        if (!run(next.key(), next.mapped())) return false;
    }
    return true;
}

bool VirtualCopies::run(TimeNs time, const Due& due)
{
    std::vector<Rank> touched{due.rank};
    if (run_.schedule.offloadTo == engine::OffloadTo::Partner) touched.push_back(run_.schedule.partnerOf(due.rank));
    std::vector<BytesByClass> before;
    for (const Rank rank : touched) before.push_back(run_.pipeline.ledger(rank).held());
    try {
        if (due.ends) run_.pipeline.letGo(due.work);
        else run_.pipeline.copy(due.work);
        run_.pipeline.copyDevice(due.rank).drain();
    } catch (...) {
        run_.control.fail(describeFailure(due.work, due.step, run_.among(due.rank), std::current_exception()));
        return false;
    }
    for (std::size_t i = 0; i < touched.size(); ++i) memory_.change(run_.among(touched[i]), time, before[i], run_.pipeline.ledger(touched[i]).held());
    return true;
}

TimeNs VirtualCopies::reloaded(const Work& work) const
{
    const auto found = back_.find(unitOf(work));
    const bool takes = work.kind == ActionKind::Backward || work.kind == ActionKind::InputGrad;
    return takes && found != back_.end() ? found->second : -1;
}

} // namespace stagecraft::runtime
