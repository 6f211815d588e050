// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/exchanges.h"

#include "traces/analysis/rank_clocks.h"
#include "traces/analysis/replicas.h"
#include "traces/analysis/stream_lanes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace stagecraft::traces {

namespace {

constexpr std::string_view kAnd = " + ";
// The engine's events and CUPTI's times of the same stream are apart by some microseconds.
constexpr TimeNs kSlack = 20'000;

struct LaneRange {
    LaneId lane{};
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

// Steps follow each other on a lane of exchanges, and on one of collectives.
std::optional<LaneRange> rangeOfStep(const Trace& trace, LaneId id, Step step)
{
    const Lane& lane = trace.lane(id);
    const auto first = [&](Step from) {
        std::size_t low = 0;
        std::size_t high = lane.size();
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (lane.step(middle) < from) low = middle + 1;
            else high = middle;
        }
        return static_cast<std::uint32_t>(low);
    };
    const LaneRange range{id, first(step), first(Step{step.value + 1})};
    return range.begin < range.end ? std::optional(range) : std::nullopt;
}

// From the middle between the exchange before and the first to that behind the last, as far as the two clocks may be apart.
Interval reachOf(const Trace& trace, const LaneRange& exchanges)
{
    const Lane& lane = trace.lane(exchanges.lane);
    Interval reach{lane.begin(exchanges.begin) - kSlack, lane.end(exchanges.end - 1) + kSlack};
    const auto middle = [](TimeNs a, TimeNs b) { return a + (b - a) / 2; };
    if (exchanges.begin > 0) reach.begin = std::max(reach.begin, middle(lane.end(exchanges.begin - 1), lane.begin(exchanges.begin)));
    if (exchanges.end < lane.size()) reach.end = std::min(reach.end, middle(lane.end(exchanges.end - 1), lane.begin(exchanges.end)));
    return reach;
}

bool isWithin(TimeNs time, Interval span) { return time >= span.begin && time < span.end; }

Interval spanOf(const Trace& trace, SliceRef ref) { return {trace.lane(ref.lane).begin(ref.index), trace.lane(ref.lane).end(ref.index)}; }

using NcclLanes = std::map<Rank, std::vector<LaneId>>;

NcclLanes ncclLanesOf(const Trace& trace)
{
    NcclLanes lanes;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        if (const LaneInfo& info = trace.lane(LaneId{l}).info(); holdsNccl(info)) lanes[info.rank].push_back(LaneId{l});
    return lanes;
}

// In the order of time.
std::vector<SliceRef> kernelsIn(const Trace& trace, const std::vector<LaneId>& lanes, Interval reach, bool (*isOne)(std::string_view))
{
    std::vector<SliceRef> kernels;
    for (const LaneId id : lanes) {
        const Lane& lane = trace.lane(id);
        for (std::size_t i = lane.firstEndingAfter(reach.begin); i < lane.size() && lane.begin(i) < reach.end; ++i)
            if (isWithin(lane.begin(i) + (lane.end(i) - lane.begin(i)) / 2, reach) && isOne(trace.text(lane.text(i))))
                kernels.push_back({id, static_cast<std::uint32_t>(i)});
    }
    std::stable_sort(kernels.begin(), kernels.end(), [&](SliceRef a, SliceRef b) { return spanOf(trace, a).begin < spanOf(trace, b).begin; });
    return kernels;
}

// What meets: of a hand-off its sender and its receiver, of each replica for itself. Both name it by the same one of two.
struct Meeting {
    int replica = 0;
    bool forward = true;
    Flow flow = Flow::Single;
    Stage maker{};
    MicroBatch microbatch{};
    auto operator<=>(const Meeting&) const = default;
};

Meeting meetingOf(const TraceInfo& info, Rank rank, const Work& work)
{
    const bool forward = work.kind == ActionKind::SendForward || work.kind == ActionKind::RecvForward;
    const bool receives = work.kind == ActionKind::RecvForward || work.kind == ActionKind::RecvBackward;
    const Stage maker = receives ? Stage{work.stage.value + (forward ? -1 : 1)} : work.stage;
    return {replicaOf(info, rank), forward, work.flow, maker, work.microbatch};
}

bool receivesSomething(const Action& exchange)
{
    const auto receives = [](ActionKind kind) { return kind == ActionKind::RecvForward || kind == ActionKind::RecvBackward; };
    return receives(exchange.work.kind) || receives(exchange.partner.kind);
}

// One rank's part of a meeting.
struct Side {
    Rank rank{};
    SliceRef exchange{};
    Action action{};
    std::optional<SliceRef> kernel{};
};

void addSides(const Trace& trace, const std::vector<LaneId>& lanes, const LaneRange& exchanges, std::vector<Side>& sides)
{
    const Rank rank = trace.lane(exchanges.lane).info().rank;
    const std::vector<SliceRef> kernels = kernelsIn(trace, lanes, reachOf(trace, exchanges), isExchangeName);
    const bool told = kernels.size() == exchanges.end - exchanges.begin;
    for (std::uint32_t i = exchanges.begin; i < exchanges.end; ++i) {
        Side side{.rank = rank, .exchange = {exchanges.lane, i}};
        const std::optional<Action> action = exchangeOfText(trace.text(trace.lane(exchanges.lane).text(i)));
        if (!action) continue;
        side.action = *action;
        if (told) {
            const SliceRef kernel = kernels[i - exchanges.begin];
            const Interval span = spanOf(trace, side.exchange);
            const Interval at = spanOf(trace, kernel);
            if (at.begin <= span.end + kSlack && at.end >= span.begin - kSlack) side.kernel = kernel;
        }
        sides.push_back(side);
    }
}

// When the last of all that meet had begun.
std::optional<TimeNs> metOf(const Trace& trace, const Side& own, const std::vector<const Side*>& others)
{
    const Interval span = spanOf(trace, *own.kernel);
    TimeNs met = span.begin;
    for (const Side* other : others) {
        if (!other->kernel) return std::nullopt;
        met = std::max(met, spanOf(trace, *other->kernel).begin);
    }
    if (met < span.end || met == span.begin) return met;
    if (receivesSomething(own.action)) return std::nullopt; // the clocks are not known well enough
    return span.begin;
}

void addHandOffs(const Trace& trace, Step step, const NcclLanes& kernels, std::map<Rank, TimeNs>& clockErrors, std::vector<ExchangeKernel>& out)
{
    std::vector<Side> sides;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const LaneInfo& info = trace.lane(LaneId{l}).info();
        if (!holdsExchanges(info)) continue;
        const auto own = kernels.find(info.rank);
        if (const std::optional<LaneRange> range = rangeOfStep(trace, LaneId{l}, step))
            addSides(trace, own != kernels.end() ? own->second : std::vector<LaneId>(), *range, sides);
    }
    std::map<Meeting, std::vector<const Side*>> meetings;
    for (const Side& side : sides) meetings[meetingOf(trace.info, side.rank, side.action.work)].push_back(&side);
    for (const auto& [what, members] : meetings)
        for (const Side* own : members) {
            if (!own->kernel) continue;
            ExchangeKernel each{.kernel = *own->kernel, .exchange = own->exchange};
            std::vector<const Side*> others;
            for (const Side* other : members)
                if (other->rank != own->rank) others.push_back(other);
            if (members.size() == 2 && others.size() == 1) {
                each.peer = others.front()->rank;
                each.met = metOf(trace, *own, others);
                each.clockError = clockErrors[own->rank] + clockErrors[*each.peer];
            }
            out.push_back(each);
        }
}

// One rank's part of a sum.
struct Part {
    Rank rank{};
    SliceRef sum{};
    std::vector<SliceRef> kernels{};
};

// All replicas' ranks that hold the stage, in whichever direction, sum it as often in a step, and in one order.
std::map<std::pair<Stage, int>, std::vector<Part>> sumsOf(const Trace& trace, Step step, const NcclLanes& kernels)
{
    std::map<std::pair<Stage, int>, std::vector<Part>> sums;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const Lane& lane = trace.lane(LaneId{l});
        if (lane.info().kind != LaneKind::Collective) continue;
        const std::optional<LaneRange> range = rangeOfStep(trace, LaneId{l}, step);
        if (!range) continue;
        const auto own = kernels.find(lane.info().rank);
        std::map<Stage, int> count;
        for (std::uint32_t i = range->begin; i < range->end; ++i) {
            const Action action = lane.action(i);
            if (action.kind() != ActionKind::AllReduce) continue;
            Part part{.rank = lane.info().rank, .sum = {LaneId{l}, i}};
            if (own != kernels.end()) part.kernels = kernelsIn(trace, own->second, reachOf(trace, {LaneId{l}, i, i + 1}), isSumName);
            sums[{action.stage(), count[action.stage()]++}].push_back(std::move(part));
        }
    }
    return sums;
}

// The k-th kernel of each rank's part meet; when is not known where some part has not as many, or the clocks are not known well enough.
ExchangeKernel sumKernel(const Trace& trace, const std::vector<Part>& parts, const Part& own, std::size_t k, std::map<Rank, TimeNs>& clockErrors)
{
    const Interval span = spanOf(trace, own.kernels[k]);
    ExchangeKernel kernel{.kernel = own.kernels[k], .exchange = own.sum, .clockError = clockErrors[own.rank]};
    TimeNs lastOfOthers = std::numeric_limits<TimeNs>::min();
    for (const Part& other : parts) {
        if (other.rank == own.rank) continue;
        if (other.kernels.size() != own.kernels.size()) {
            kernel.peer = other.rank; // whose side is not known
            return kernel;
        }
        const TimeNs begin = spanOf(trace, other.kernels[k]).begin;
        kernel.clockError = std::max(kernel.clockError, clockErrors[own.rank] + clockErrors[other.rank]);
        if (begin <= lastOfOthers) continue;
        lastOfOthers = begin;
        kernel.peer = other.rank;
    }
    const TimeNs met = std::max(span.begin, lastOfOthers);
    if (kernel.peer && met < span.end) kernel.met = met;
    return kernel;
}

void addSums(const Trace& trace, Step step, const NcclLanes& kernels, std::map<Rank, TimeNs>& clockErrors, std::vector<ExchangeKernel>& out)
{
    for (const auto& [what, parts] : sumsOf(trace, step, kernels))
        for (const Part& own : parts)
            for (std::size_t k = 0; k < own.kernels.size(); ++k) out.push_back(sumKernel(trace, parts, own, k, clockErrors));
}

} // namespace

std::vector<ExchangeKernel> exchangesOf(const Trace& trace, Step step)
{
    std::vector<ExchangeKernel> out;
    const NcclLanes kernels = ncclLanesOf(trace);
    if (kernels.empty()) return out;
    std::map<Rank, TimeNs> errors;
    for (const ClockSummary& clock : clockSummaries(trace)) errors[clock.rank] = clock.error;
    addHandOffs(trace, step, kernels, errors, out);
    addSums(trace, step, kernels, errors, out);
    std::sort(out.begin(), out.end(), [](const ExchangeKernel& a, const ExchangeKernel& b) { return a.kernel < b.kernel; });
    return out;
}

namespace {

bool tellsSteps(const LaneInfo& lane, bool ofSums) { return ofSums ? lane.kind == LaneKind::Collective : holdsExchanges(lane); }

// The step in which the rank exchanged or summed something at that time, or next; none where it did not.
std::optional<Step> stepAt(const Trace& trace, Rank rank, bool ofSums, TimeNs time)
{
    for (const Lane& lane : trace.lanes()) {
        if (lane.info().rank != rank || !tellsSteps(lane.info(), ofSums)) continue;
        const std::size_t next = lane.firstEndingAfter(time);
        if (next < lane.size()) return lane.step(next);
        if (!lane.empty()) return lane.step(lane.size() - 1);
    }
    return std::nullopt;
}

} // namespace

const ExchangeKernel* findExchange(const std::vector<ExchangeKernel>& all, SliceRef kernel)
{
    const auto found = std::lower_bound(all.begin(), all.end(), kernel, [](const ExchangeKernel& each, SliceRef ref) { return each.kernel < ref; });
    return found != all.end() && found->kernel == kernel ? &*found : nullptr;
}

std::optional<ExchangeKernel> exchangeOf(const Trace& trace, SliceRef kernel)
{
    const Rank rank = trace.lane(kernel.lane).info().rank;
    const Interval span = spanOf(trace, kernel);
    const bool ofSums = isSumName(trace.text(trace.slice(kernel).text));
    std::optional<Step> tried;
    for (const TimeNs time : {span.begin + span.length() / 2, span.begin - kSlack}) { // it may lie a little behind its step's last exchange or sum
        const std::optional<Step> step = stepAt(trace, rank, ofSums, time);
        if (!step || step == tried) continue;
        tried = step;
        const std::vector<ExchangeKernel> all = exchangesOf(trace, *step);
        if (const ExchangeKernel* found = findExchange(all, kernel)) return *found;
    }
    return std::nullopt;
}

namespace {

// First what takes time, as not known; then what is known of it.
std::map<Rank, NcclTime> ncclTimesWithin(const Trace& trace, Interval within, std::optional<Rank> only)
{
    const auto lengthIn = [&](Interval span) { return std::max<TimeNs>(0, std::min(span.end, within.end) - std::max(span.begin, within.begin)); };
    const auto counts = [&](Rank rank) { return !only || rank == *only; };
    std::map<Rank, NcclTime> times;
    std::unordered_map<TextId, bool> names; // a trace has few texts and many slices
    const auto isNccl = [&](TextId id) {
        const auto [known, isNew] = names.try_emplace(id);
        if (isNew) known->second = isNcclName(trace.text(id));
        return known->second;
    };
    std::set<Step> steps;
    for (const Lane& lane : trace.lanes()) {
        const Rank rank = lane.info().rank;
        if (!counts(rank)) continue;
        const std::size_t first = lane.firstEndingAfter(within.begin);
        if (tellsSteps(lane.info(), false) || tellsSteps(lane.info(), true)) {
            for (std::size_t i = first > 0 ? first - 1 : 0; i < lane.size(); ++i) { // with one before and one behind, for kernels at their edges
                steps.insert(lane.step(i));
                if (lane.begin(i) >= within.end) break;
            }
        }
        if (!holdsStreamWork(lane.info())) continue;
        for (std::size_t i = first; i < lane.size() && lane.begin(i) < within.end; ++i)
            if (isNccl(lane.text(i))) times[rank].notKnown += lengthIn({lane.begin(i), lane.end(i)});
    }
    if (times.empty()) return times;
    for (const Step step : steps)
        for (const ExchangeKernel& each : exchangesOf(trace, step)) {
            const Rank rank = trace.lane(each.kernel.lane).info().rank;
            if (!counts(rank) || !each.met) continue;
            const Interval span = spanOf(trace, each.kernel);
            const TimeNs waiting = lengthIn({span.begin, *each.met});
            const TimeNs moving = lengthIn({*each.met, span.end});
            NcclTime& time = times[rank];
            time.waiting += waiting;
            time.moving += moving;
            time.notKnown -= waiting + moving;
        }
    return times;
}

} // namespace

NcclTime ncclTimeOf(const Trace& trace, Rank rank, Interval within) { return ncclTimesWithin(trace, within, rank)[rank]; }

std::map<Rank, NcclTime> ncclTimes(const Trace& trace)
{
    return ncclTimesWithin(trace, {std::numeric_limits<TimeNs>::min(), std::numeric_limits<TimeNs>::max()}, {});
}

std::string exchangeText(const Action& exchange)
{
    std::string text = toText(Action{exchange.work, {}});
    if (exchange.partner.kind != ActionKind::None) text.append(kAnd).append(toText(Action{exchange.partner, {}}));
    return text;
}

std::optional<Action> exchangeOfText(std::string_view text)
{
    const std::size_t more = text.find(kAnd);
    const Expected<Action> first = parseAction(text.substr(0, more));
    if (!first.ok() || !isTransfer(first.value().kind())) return std::nullopt;
    Action exchange{first.value().work, {}};
    if (more == std::string_view::npos) return exchange;
    const Expected<Action> second = parseAction(text.substr(more + kAnd.size()));
    if (!second.ok() || !isTransfer(second.value().kind())) return std::nullopt;
    exchange.partner = second.value().work;
    return exchange;
}

} // namespace stagecraft::traces
