// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/emulated_sums_torch.h"

#include "engine/runtime/run_messages.h"
#include "engine/schedule/shard.h"

#include <exception>

namespace stagecraft::runtime {

using namespace traces;

EmulatedSums::EmulatedSums(VirtualRanks ranks, VirtualMemory& memory)
    : ranks_(ranks), run_(ranks.replicas.front()), memory_(memory), onDevices_(deviceCollectives(ranks.replicas)),
      virtual_(run_.costs.machine, static_cast<int>(ranks.replicas.size()) * run_.schedule.ranks, onDevices_ ? *onDevices_ : onCpu_)
{
    if (run_.sums->byActions()) return;
    for (const Execution& replica : ranks_.replicas)
        for (const Place& place : places(run_.schedule))
            replica.pipeline.stage(place).onFinalGradients([this, &replica, place](int layer) { giveGradients(replica, place, layer); });
}

EmulatedSums::~EmulatedSums()
{
    for (const Execution& replica : ranks_.replicas)
        for (const Place& place : places(run_.schedule)) replica.pipeline.stage(place).onFinalGradients({});
}

std::optional<TimeNs> EmulatedSums::summedAt(Rank rank, const Place& place) const
{
    return virtual_.doneAt(run_.sums->gradients(ranks_.replicaOf(rank), place));
}

std::optional<TimeNs> EmulatedSums::gatheredAt(Rank rank, const Work& work) const
{
    if (!(engine::usesWeights(work.kind) || work.kind == ActionKind::Reshard)) return -1;
    const std::vector<Turn>& turns = run_.sums->gathers(ranks_.replicaOf(rank), placeOf(work));
    return turns.empty() ? std::optional<TimeNs>(-1) : virtual_.doneAt(turns);
}

void EmulatedSums::beginAction(const ActionBegin& begin)
{
    action_ = begin;
    asking_ = true;
}

// While an action runs; the collectives are made after it. When a GPU has made them it tells when the action is over.
void EmulatedSums::giveGradients(const Execution& replica, const Place& place, int layer)
{
    const TimeNs at = action_.at + (run_.clock.now() - action_.real);
    for (const Turn& turn : run_.sums->gradients(replica.replica, place))
        if (turn.layer == layer) give(turn, at, replica.pipeline.stage(place).wholeGradients(turn.parameters));
}

void EmulatedSums::give(const Turn& turn, TimeNs at, std::vector<at::Tensor> values)
{
    if (!onDevices_) return virtual_.give(turn, step_, at, memoryOf(values));
    const RankDevice& device = ranks_.deviceOf(turn.collective->members()[turn.member].rank);
    const RankDevice::Scope here = device.enter();
    const DeviceMark made = device.mark();
    onDevices_->take(turn, step_, std::move(values), made);
    if (made && asking_) givenWithin_.push_back({turn, made});
    else virtual_.give(turn, step_, at, {});
}

void EmulatedSums::giveFromDevice()
{
    for (const auto& [turn, made] : std::exchange(givenWithin_, {}))
        virtual_.give(turn, step_, action_.at + (made->time() - action_.mark->time()), {});
}

void EmulatedSums::settle(Rank rank, const Work& work, TimeNs end)
{
    const Execution& run = ranks_.runOf(rank);
    if (work.kind == ActionKind::Optimizer)
        for (const Turn& turn : run_.sums->weights(run.replica, placeOf(work))) give(turn, end, run.pipeline.stage(placeOf(work)).values(turn.parameters));
    if (work.kind == ActionKind::AllReduce) occupy(rank, end);
    make();
}

void EmulatedSums::begin(Rank rank, const Work& work, TimeNs at)
{
    const Execution& run = ranks_.runOf(rank);
    StageModule& stage = run.pipeline.stage(placeOf(work));
    if (work.kind == ActionKind::Unshard)
        for (const Turn& turn : run_.sums->gathers(run.replica, placeOf(work))) give(turn, at, stage.values(turn.parameters));
    else
        for (const Turn& turn : run_.sums->gradients(run.replica, placeOf(work))) give(turn, at, stage.wholeGradients(turn.parameters));
    make();
}

void EmulatedSums::make()
{
    virtual_.settle([&](const Collective& collective, std::size_t member, const CollectiveSpan& span) {
        run_.recorder.collectiveRing(collective.members()[member].rank).push(collectiveEvent(*run_.sums, collective, member, span));
    });
}

void EmulatedSums::endUntil(TimeNs time)
{
    virtual_.endUntil(time, [this](const Collective& sum, TimeNs at) { keepOwnGradients(sum, at); });
}

void EmulatedSums::keepOwnGradients(const Collective& sum, TimeNs at)
{
    if (!run_.sums->isLastSum(sum) || sum.kind().result == Collective::Result::All) return;
    for (std::size_t m = 0; m < sum.members().size(); ++m) {
        const Collective::Member& member = sum.members()[m];
        Pipeline& pipeline = ranks_.runOf(member.rank).pipeline;
        const RankDevice& device = ranks_.deviceOf(member.rank);
        MemoryLedger& ledger = pipeline.ledger(ranks_.inReplica(member.rank));
        const BytesByClass before = ledger.held();
        const RankDevice::Scope here = device.enter();
        try {
            pipeline.stage(member.place).keepOwnGradients();
            device.drain();
        } catch (...) {
            run_.control.fail(describeFailure(sum.action(m), step_, member.rank, std::current_exception()));
        }
        memory_.change(member.rank, at, before, ledger.held());
    }
}

} // namespace stagecraft::runtime
