// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_process_sums_torch.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace stagecraft::runtime {

NcclProcessSums::NcclProcessSums(const Execution& run, Rank rank, NcclCliques& cliques, Exchanges exchanges)
    : run_(run), rank_(rank), device_(run.pipeline.sumDevice(Rank{rank.value % run.schedule.ranks})), cliques_(cliques), exchanges_(std::move(exchanges))
{
    for (const auto& collective : run.sums->collectives()) {
        const auto own = std::ranges::find(collective->members(), rank, &Collective::Member::rank);
        if (own == collective->members().end()) continue;
        order_.push_back(collective.get());
        sums_[collective.get()].member = static_cast<std::size_t>(own - collective->members().begin());
    }
    std::ranges::stable_sort(order_, std::greater{}, [](const Collective* each) { return each->kind().stage; });
}

NcclProcessSums::~NcclProcessSums()
{
    const DeviceWatch::Wait wait = awaitingOthers();
    try {
        device_.drain();
    } catch (...) { // a device that has failed uses nothing any more
    }
}

void NcclProcessSums::give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made)
{
    Sum& sum = sums_.at(turn.collective);
    sum = {.member = sum.member, .step = step, .values = std::move(values), .made = std::move(made), .begin = {}, .end = {}, .given = true};
    issueWhatMay();
}

void NcclProcessSums::issueWhatMay()
{
    if (!exchanges_.over()) return;
    while (next_ < order_.size() && sums_.at(order_[next_]).given && !run_.control.ending()) {
        issue(*order_[next_], sums_.at(order_[next_]));
        ++next_;
    }
    if (next_ == order_.size()) next_ = 0; // each is given once a step
}

// Two streams have no order of their own, and a sum that came first could take the room that an exchange needs, which others wait for.
void NcclProcessSums::issue(const Collective& collective, Sum& sum)
{
    const RankDevice::Scope here = device_.enter();
    device_.await(sum.made);
    sum.begin = device_.mark();
    cliques_.sum(collective, sum.member, sum.values);
    sum.values.clear();
    sum.end = device_.mark();
    sum.given = false;
    cliques_.track(collective, sum.member, sum.end);
    issued_.push_back(&collective);
}

bool NcclProcessSums::done(const std::vector<Turn>& turns)
{
    issueWhatMay();
    const RankDevice::Scope here = device_.enter();
    return std::ranges::all_of(turns, [&](const Turn& turn) {
        const DeviceMark& end = sums_.at(turn.collective).end;
        return end && end->reached();
    });
}

// On one stream: what was issued before is over before.
std::optional<TimeNs> NcclProcessSums::wait(const std::vector<Turn>& turns)
{
    exchanges_.wait();
    if (run_.control.ending()) return std::nullopt;
    issueWhatMay();
    const RankDevice::Scope here = device_.enter();
    TimeNs since = 0;
    for (const Turn& turn : turns) {
        const Sum& sum = sums_.at(turn.collective);
        if (!sum.end) { // the run ends
            if (run_.control.ending()) return std::nullopt;
            throw std::logic_error("a sum of replicas is waited for that others come before");
        }
        awaitMade(*turn.collective, sum);
        {
            const DeviceWatch::Wait wait = awaitingOthers();
            sum.end->wait();
        }
        if (run_.control.ending()) return std::nullopt; // nobody knows what it came to
        while (!issued_.empty() && sums_.at(issued_.front()).end->reached()) {
            record(*issued_.front(), sums_.at(issued_.front()));
            issued_.pop_front();
        }
        since = std::max(since, sum.end->time());
    }
    return since;
}

DeviceWatch::Wait NcclProcessSums::awaitingOthers() const { return {run_.watch, rank_, DeviceWatch::OfOthers{kEndingSums}}; }

// That is this GPU's to do, and somebody looks whether it does it; what comes behind it waits for others, at which NCCL's watchdog looks.
void NcclProcessSums::awaitMade(const Collective& collective, const Sum& sum) const
{
    const DeviceWatch::Wait wait(run_.watch, rank_, sum.step, collective.action(sum.member));
    sum.made->wait();
}

void NcclProcessSums::record(const Collective& collective, const Sum& sum)
{
    const TimeNs begin = sum.begin->time();
    const CollectiveSpan span{.step = sum.step, .begin = begin, .end = std::max(begin, sum.end->time()), .ready = sum.made->time(), .last = rank_};
    run_.recorder.collectiveRing(rank_).push(collectiveEvent(*run_.sums, collective, sum.member, span));
}

} // namespace stagecraft::runtime
