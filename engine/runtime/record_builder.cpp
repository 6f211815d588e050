// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/record_builder.h"

#include "engine/schedule/offload.h"
#include "traces/analysis/exchanges.h"
#include "traces/analysis/stream_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using namespace traces;

RecordBuilder::RecordBuilder(const engine::Schedule& schedule, int replicas, std::optional<Rank> only)
    : schedule_(schedule), only_(only), ranks_(static_cast<std::size_t>(schedule.ranks) * static_cast<std::size_t>(replicas))
{
}

std::string RecordBuilder::nameOf(std::size_t rank) const
{
    const auto ofReplica = static_cast<std::size_t>(schedule_.ranks);
    if (ranks_.size() == ofReplica) return fmt::format("rank {}", rank);
    return fmt::format("replica {} · rank {}", rank / ofReplica, rank % ofReplica);
}

void RecordBuilder::begin(std::vector<Record>& out)
{
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (only_ && *only_ != Rank{r}) continue;
        ranks_[r].compute =
            addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = nameOf(r)}, out);
        const LaneId transfer =
            addLane({.rank = Rank{r}, .kind = LaneKind::Transfer, .name = nameOf(r) + " sends"}, out);
        ranks_[r].transfers.push_back({transfer, 0});
    }
}

void RecordBuilder::add(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    switch (event.kind) {
    case RunEventKind::Action: addAction(rank, event, out); break;
    case RunEventKind::Memory: addMemory(rank, event, out); break;
    case RunEventKind::Copy: addCopy(rank, event, out); break;
    case RunEventKind::Wait: addWait(rank, event, out); break;
    case RunEventKind::Exchange: addExchange(rank, event, out); break;
    }
}

void RecordBuilder::add(const OperatorBatch& batch, std::vector<Record>& out)
{
    std::optional<LaneId>& lane = ranks_[index(batch.rank)].operators[static_cast<std::size_t>(batch.beside)];
    if (!lane && !batch.spans.empty())
        lane = addLane({.rank = batch.rank, .kind = LaneKind::Stream, .depth = batch.beside, .name = operatorsLaneName(nameOf(index(batch.rank)), batch.beside)}, out);
    for (const OperatorSpan& each : batch.spans) {
        const auto [text, isNew] = operatorTexts_.try_emplace(each.name);
        if (isNew) text->second = addText(each.name, out);
        addSlice(*lane, {.begin = each.begin, .end = each.end, .action = {}, .step = batch.step, .text = text->second}, out);
    }
}

void RecordBuilder::addAction(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    RankLanes& lanes = ranks_[index(rank)];
    const SliceRef slice = addSlice(
        laneOf(rank, event, out), {.begin = event.begin, .end = event.end, .action = Action{event.work, {}}, .step = event.step}, out);
    // collectives of replicas come apart from what they compute, in no known order
    if (event.value[RunEvent::kOfAll] == 1 && !only_ && ranks_.size() == static_cast<std::size_t>(schedule_.ranks)) meet(rank, event);
    if (isCompute(event.work.kind) && event.depth == 0) {
        lanes.computed = slice;
        if (lanes.after) {
            lanes.after->consumer = slice;
            lanes.waiting.push_back(*std::exchange(lanes.after, std::nullopt));
        }
    }
    const std::optional<BoxAddress> taken = inputBox(event.work, schedule_.stages());
    if (taken && event.value[RunEvent::kReady] >= 0) {
        const Producer producer{event.step, Product::Output, replicaOf(rank), *taken};
        const Stage maker{taken->receiver.value + (taken->direction == Direction::Forward ? -1 : 1)};
        if (only_ && schedule_.rankOf(taken->flow, maker).value != only_->value % schedule_.ranks) produced_.emplace(producer, addReceive(rank, event, out));
        lanes.waiting.push_back({producer, slice, event.value[RunEvent::kReady]});
    }
    if (event.value[RunEvent::kReloaded] >= 0) {
        Work reload = event.work;
        reload.kind = ActionKind::Reload;
        if (const auto known = copied_.find({event.step, replicaOf(rank), reload}); known != copied_.end())
            lanes.waiting.push_back({known->second.slice, slice, event.value[RunEvent::kReloaded]});
    }
    const std::optional<BoxAddress> given = outputBox(event.work, schedule_.stages());
    if (given && event.value[RunEvent::kAvailable] >= 0) {
        produced_.emplace(Producer{event.step, Product::Output, replicaOf(rank), *given}, slice);
        addTransfer(rank, event, out);
    }
    linkReplicas(rank, event, slice);
    linkWeights(rank, event, slice);
    for (RankLanes& other : ranks_) {
        settle(other.waiting, out);
        settle(other.collectivesWaiting, out);
    }
}

// backward -> sum of its gradients -> update
void RecordBuilder::linkReplicas(Rank rank, const RunEvent& event, SliceRef slice)
{
    RankLanes& lanes = ranks_[index(rank)];
    const BoxAddress stage{Direction::Forward, event.work.stage, MicroBatch{0}, event.work.flow};
    const TimeNs ready = event.value[RunEvent::kReady];
    const bool last = event.value[RunEvent::kLast] != 0;
    switch (event.work.kind) {
    case ActionKind::Backward:
    case ActionKind::WeightGrad:
        if (last) produced_.emplace(Producer{event.step, Product::Gradients, rank.value, stage}, slice);
        break;
    case ActionKind::AllReduce:
    case ActionKind::ReduceGrad:
        if (ready >= 0 && event.value[RunEvent::kOfAll] == 0) {
            const Rank from{static_cast<std::int32_t>(event.value[RunEvent::kFrom])};
            BoxAddress made = stage;
            if (schedule_.twoDirections() && schedule_.rankOf(made.flow, made.receiver) != Rank{from.value % schedule_.ranks})
                made.flow = made.flow == Flow::Up ? Flow::Down : Flow::Up;
            lanes.collectivesWaiting.push_back({Producer{event.step, Product::Gradients, from.value, made}, slice, ready});
        }
        if (last) produced_.emplace(Producer{event.step, Product::Sum, rank.value, stage}, slice);
        break;
    case ActionKind::Optimizer:
        if (ready >= 0) lanes.waiting.push_back({Producer{event.step, Product::Sum, rank.value, stage}, slice, ready});
        break;
    default: break;
    }
}

// UNSHARD -> what uses the weights, up to the RESHARD. The two come from two threads, but each in order: what follows the k-th RESHARD of
// a stage uses what its next UNSHARD gathers.
void RecordBuilder::linkWeights(Rank rank, const RunEvent& event, SliceRef slice)
{
    const auto moves = [&](ActionKind kind) -> int& {
        return weightMoves_[{event.step, rank, makeAction(kind, event.work.stage, kNoMicroBatch, event.work.flow).work}];
    };
    const auto gather = [&](int number) {
        return Producer{event.step, Product::Weights, rank.value, {Direction::Forward, event.work.stage, MicroBatch{number}, event.work.flow}};
    };
    if (event.work.kind == ActionKind::Unshard) produced_.emplace(gather(moves(ActionKind::Unshard)++), slice);
    if (event.work.kind == ActionKind::Reshard) ++moves(ActionKind::Reshard);
    if (event.value[RunEvent::kGathered] >= 0)
        ranks_[index(rank)].waiting.push_back({gather(moves(ActionKind::Reshard)), slice, event.value[RunEvent::kGathered]});
}

// The others have waited for the rank that comes last, which is known when all have come.
void RecordBuilder::meet(Rank rank, const RunEvent& event)
{
    const Producer brought{event.step, Product::Meeting, 0, {}};
    RankLanes& lanes = ranks_[index(rank)];
    lanes.after = WaitingEdge{brought, {}, event.value[RunEvent::kReady]};
    Meeting& meeting = meetings_[event.step];
    if (meeting.ranks++ == 0 || event.begin > meeting.came) {
        meeting.came = event.begin;
        meeting.broughtBy = lanes.computed;
    }
    if (meeting.ranks < schedule_.ranks) return;
    produced_.emplace(brought, meeting.broughtBy);
    meetings_.erase(event.step);
}

// What keeps the rank lies between its actions; the wait for the other ranks on the lane of what ranks do together.
void RecordBuilder::addWait(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    Slice slice{.begin = event.begin, .end = event.end, .action = {}, .step = event.step};
    LaneId lane = ranks_[index(rank)].compute;
    switch (static_cast<WaitCause>(event.value[0])) {
    case WaitCause::Room: slice.action = Action{event.work, {}}; break;
    case WaitCause::Hold: slice.text = addText(fmt::format("stage {} held", event.work.stage.value), out); break;
    case WaitCause::Flush:
        slice.text = addText("flush: waits for the other ranks", out);
        lane = collectivesOf(rank, out);
        break;
    }
    addSlice(lane, slice, out);
}

// No hand-off by itself, which lasts from the producer's end to the arrival, but what the device did for it: so it is named and no action.
void RecordBuilder::addExchange(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    std::optional<LaneId>& lane = ranks_[index(rank)].exchanges;
    if (!lane) lane = addLane({.rank = rank, .kind = LaneKind::Stream, .name = exchangesLaneName(nameOf(index(rank)))}, out);
    const TextId text = addText(exchangeText(exchangeOf(event)), out);
    addSlice(*lane, {.begin = event.begin, .end = event.end, .action = {}, .step = event.step, .text = text}, out);
}

TextId RecordBuilder::addText(std::string text, std::vector<Record>& out)
{
    auto known = std::find(texts_.begin(), texts_.end(), text);
    if (known == texts_.end()) {
        out.push_back(TextRecord{text});
        known = texts_.insert(texts_.end(), std::move(text));
    }
    return TextId{static_cast<std::uint32_t>(known - texts_.begin() + 1)};
}

// On the rank's lane of that direction; a partner that keeps what goes away has the same on a lane of its own.
void RecordBuilder::addCopy(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    const Slice slice{.begin = event.begin, .end = event.end, .action = Action{event.work, {}}, .step = event.step};
    const bool back = event.work.kind == ActionKind::Reload;
    const SliceRef own = addToCopyLane(rank, back ? 1 : 0, slice, out);
    if (schedule_.offloadTo == engine::OffloadTo::Partner) {
        const Rank partner = schedule_.partnerOf(Rank{rank.value % schedule_.ranks});
        addToCopyLane(Rank{replicaOf(rank) * schedule_.ranks + partner.value}, back ? 3 : 2, slice, out);
    }
    copied_[{event.step, replicaOf(rank), event.work}] = {own, event.end};
    Work away = event.work;
    away.kind = ActionKind::Offload;
    if (const auto known = copied_.find({event.step, replicaOf(rank), away}); back && known != copied_.end())
        out.push_back(EdgeRecord{{EdgeKind::Data, known->second.slice, own, known->second.end}});
}

SliceRef RecordBuilder::addToCopyLane(Rank rank, std::size_t which, const Slice& slice, std::vector<Record>& out)
{
    std::optional<LaneId>& lane = ranks_[index(rank)].copies[which];
    if (!lane)
        lane = addLane({.rank = rank,
                        .kind = LaneKind::Copy,
                        .depth = static_cast<std::int32_t>(which),
                        .name = fmt::format("{} {}", nameOf(index(rank)), engine::copyLaneText(static_cast<int>(which)))},
                       out);
    return addSlice(*lane, slice, out);
}

// A slice on the sender's side, from the producer's end to the moment from which the other rank has the tensor.
void RecordBuilder::addTransfer(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    const bool forward = event.work.kind == ActionKind::Forward;
    const Stage receiver{event.work.stage.value + (forward ? 1 : -1)};
    if (schedule_.rankOf(event.work.flow, receiver).value == rank.value % schedule_.ranks) return; // handed over at once, nothing moves

    const Action send = makeAction(forward ? ActionKind::SendForward : ActionKind::SendBackward, event.work.stage,
                                   event.work.microbatch, event.work.flow);
    layTransfer(rank, {.begin = std::max(event.end, event.value[RunEvent::kSent]), .end = event.value[RunEvent::kAvailable], .action = send, .step = event.step}, out);
}

SliceRef RecordBuilder::addReceive(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    const bool forward = event.work.kind == ActionKind::Forward;
    const Action receive = makeAction(forward ? ActionKind::RecvForward : ActionKind::RecvBackward, event.work.stage,
                                      event.work.microbatch, event.work.flow);
    const TimeNs ready = event.value[RunEvent::kReady];
    return layTransfer(rank, {.begin = ready, .end = ready, .action = receive, .step = event.step}, out);
}

// Those that overlap go to lanes of their own.
SliceRef RecordBuilder::layTransfer(Rank rank, const Slice& slice, std::vector<Record>& out)
{
    std::vector<TransferLane>& depths = ranks_[index(rank)].transfers;
    std::size_t depth = 0;
    while (depth < depths.size() && depths[depth].lastEnd > slice.begin) ++depth;
    if (depth == depths.size()) {
        const LaneId id = addLane({.rank = rank,
                                   .kind = LaneKind::Transfer,
                                   .depth = static_cast<std::int32_t>(depth),
                                   .name = nameOf(index(rank)) + " sends"},
                                  out);
        depths.push_back({id, 0});
    }
    depths[depth].lastEnd = slice.end;
    return addSlice(depths[depth].id, slice, out);
}

void RecordBuilder::addMemory(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    std::optional<BytesByClass>& last = ranks_[index(rank)].memory;
    for (std::size_t c = 0; c < event.value.size(); ++c) {
        if (last && (*last)[c] == event.value[c]) continue;
        out.push_back(MemoryRecord{rank, static_cast<MemoryClass>(c), event.begin, event.value[c]});
    }
    last = event.value;
}

void RecordBuilder::settle(std::deque<WaitingEdge>& waiting, std::vector<Record>& out)
{
    while (!waiting.empty()) {
        const WaitingEdge& edge = waiting.front();
        if (const auto* there = std::get_if<SliceRef>(&edge.from)) {
            out.push_back(EdgeRecord{{EdgeKind::Data, *there, edge.consumer, edge.ready}});
        } else {
            const Producer& known = std::get<Producer>(edge.from);
            const auto producer = produced_.find(known);
            if (producer == produced_.end()) return;
            // who came last to a meeting waited for nobody
            const bool own = known.product == Product::Meeting && producer->second.lane == edge.consumer.lane;
            if (!own) out.push_back(EdgeRecord{{EdgeKind::Data, producer->second, edge.consumer, edge.ready}});
            if (known.product == Product::Output) produced_.erase(producer); // an output has one consumer
        }
        waiting.pop_front();
    }
}

void RecordBuilder::endStep(Step step, std::vector<Record>& out)
{
    for (RankLanes& lanes : ranks_)
        for (std::deque<WaitingEdge>* waiting : {&lanes.waiting, &lanes.collectivesWaiting}) {
            settle(*waiting, out);
            while (!waiting->empty() && std::get<Producer>(waiting->front().from).step <= step) {
                waiting->pop_front();
                settle(*waiting, out);
            }
        }
    std::erase_if(meetings_, [&](const auto& entry) { return entry.first <= step; });
    std::erase_if(weightMoves_, [&](const auto& entry) { return std::get<Step>(entry.first) <= step; });
    std::erase_if(copied_, [&](const auto& entry) { return std::get<Step>(entry.first) <= step; });
    std::erase_if(produced_, [&](const auto& entry) { return entry.first.step <= step; });
}

LaneId RecordBuilder::collectivesOf(Rank rank, std::vector<Record>& out)
{
    std::optional<LaneId>& lane = ranks_[index(rank)].collectives;
    if (!lane) lane = addLane({.rank = rank, .kind = LaneKind::Collective, .name = nameOf(index(rank)) + " collectives"}, out);
    return *lane;
}

LaneId RecordBuilder::laneOf(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    RankLanes& lanes = ranks_[index(rank)];
    // RESHARD is no work of the lane beside, but of the rank itself, which lets go of memory
    if (paintClass(event.work.kind) == PaintClass::Collective && event.work.kind != ActionKind::Reshard) return collectivesOf(rank, out);
    if (event.depth == 0) return lanes.compute;
    if (!lanes.beside)
        lanes.beside =
            addLane({.rank = rank, .kind = LaneKind::Compute, .depth = 1, .name = nameOf(index(rank)) + " (2)"}, out);
    return *lanes.beside;
}

LaneId RecordBuilder::addLane(LaneInfo info, std::vector<Record>& out)
{
    const LaneId id{slices_.size()};
    slices_.push_back(0);
    out.push_back(LaneRecord{std::move(info)});
    return id;
}

SliceRef RecordBuilder::addSlice(LaneId lane, const Slice& slice, std::vector<Record>& out)
{
    out.push_back(SliceRecord{lane, slice});
    return {lane, slices_[index(lane)]++};
}

} // namespace stagecraft::runtime
