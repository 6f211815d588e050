// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/record_builder.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

using namespace traces;

RecordBuilder::RecordBuilder(const engine::Schedule& schedule)
    : schedule_(schedule), ranks_(static_cast<std::size_t>(schedule.ranks))
{
}

void RecordBuilder::begin(std::vector<Record>& out)
{
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].compute =
            addLane({.rank = Rank{r}, .kind = LaneKind::Compute, .name = fmt::format("rank {}", r)}, out);
        const LaneId transfer =
            addLane({.rank = Rank{r}, .kind = LaneKind::Transfer, .name = fmt::format("rank {} sends", r)}, out);
        ranks_[r].transfers.push_back({transfer, 0});
    }
}

void RecordBuilder::add(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    switch (event.kind) {
    case RunEventKind::Action: addAction(rank, event, out); break;
    case RunEventKind::Memory: addMemory(rank, event, out); break;
    }
}

void RecordBuilder::addAction(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    RankLanes& lanes = ranks_[index(rank)];
    const SliceRef slice = addSlice(
        laneOf(rank, event, out), {.begin = event.begin, .end = event.end, .action = Action{event.work, {}}, .step = event.step}, out);
    const std::optional<BoxAddress> taken = inputBox(event.work, schedule_.stages());
    if (taken && event.value[RunEvent::kReady] >= 0)
        lanes.waiting.push_back({{event.step, *taken}, slice, event.value[RunEvent::kReady]});
    const std::optional<BoxAddress> given = outputBox(event.work, schedule_.stages());
    if (given && event.value[RunEvent::kAvailable] >= 0) {
        produced_.emplace(Producer{event.step, *given}, slice);
        addTransfer(rank, event, out);
    }
    for (RankLanes& other : ranks_) settle(other, out);
}

// A slice on the sender's side, from the producer's end to the moment from which the other rank has the tensor.
void RecordBuilder::addTransfer(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    const bool forward = event.work.kind == ActionKind::Forward;
    const Stage receiver{event.work.stage.value + (forward ? 1 : -1)};
    if (schedule_.rankOf(event.work.flow, receiver) == rank) return; // handed over at once, nothing moves

    std::vector<TransferLane>& depths = ranks_[index(rank)].transfers;
    std::size_t depth = 0;
    while (depth < depths.size() && depths[depth].lastEnd > event.end) ++depth;
    if (depth == depths.size()) {
        const LaneId id = addLane({.rank = rank,
                                   .kind = LaneKind::Transfer,
                                   .depth = static_cast<std::int32_t>(depth),
                                   .name = fmt::format("rank {} sends", rank.value)},
                                  out);
        depths.push_back({id, 0});
    }
    const TimeNs end = event.value[RunEvent::kAvailable];
    const Action send = makeAction(forward ? ActionKind::SendForward : ActionKind::SendBackward, event.work.stage,
                                   event.work.microbatch, event.work.flow);
    addSlice(depths[depth].id, {.begin = event.end, .end = end, .action = send, .step = event.step}, out);
    depths[depth].lastEnd = end;
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

void RecordBuilder::settle(RankLanes& lanes, std::vector<Record>& out)
{
    while (!lanes.waiting.empty()) {
        const WaitingEdge& edge = lanes.waiting.front();
        const auto producer = produced_.find(edge.producer);
        if (producer == produced_.end()) return;
        out.push_back(EdgeRecord{{EdgeKind::Data, producer->second, edge.consumer, edge.ready}});
        produced_.erase(producer); // an output has one consumer
        lanes.waiting.pop_front();
    }
}

void RecordBuilder::endStep(Step step, std::vector<Record>& out)
{
    for (RankLanes& lanes : ranks_) {
        settle(lanes, out);
        while (!lanes.waiting.empty() && lanes.waiting.front().producer.step <= step) {
            lanes.waiting.pop_front();
            settle(lanes, out);
        }
    }
    std::erase_if(produced_, [&](const auto& entry) { return entry.first.step <= step; });
}

LaneId RecordBuilder::laneOf(Rank rank, const RunEvent& event, std::vector<Record>& out)
{
    RankLanes& lanes = ranks_[index(rank)];
    if (event.work.kind == ActionKind::AllReduce) {
        if (!lanes.collectives)
            lanes.collectives =
                addLane({.rank = rank, .kind = LaneKind::Collective, .name = fmt::format("rank {} collectives", rank.value)}, out);
        return *lanes.collectives;
    }
    if (event.depth == 0) return lanes.compute;
    if (!lanes.beside)
        lanes.beside =
            addLane({.rank = rank, .kind = LaneKind::Compute, .depth = 1, .name = fmt::format("rank {} (2)", rank.value)}, out);
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
