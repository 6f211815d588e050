// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/device_lanes.h"

#include <algorithm>
#include <fmt/format.h>

namespace stagecraft::runtime {

using traces::Interval;
using traces::LaneId;
using traces::Record;
using traces::TextId;
using traces::TimeNs;

LaneId OwnRecordNumbers::addLane(traces::LaneInfo info, std::vector<Record>& out)
{
    out.push_back(traces::LaneRecord{std::move(info)});
    return LaneId{lanes_++};
}

TextId OwnRecordNumbers::addText(std::string text, std::vector<Record>& out)
{
    out.push_back(traces::TextRecord{std::move(text)});
    return TextId{++texts_};
}

std::string_view DeviceLanes::nameOf(NameId name, std::string_view otherwise) const
{
    return name.value > 0 && name.value <= names_.size() ? std::string_view(names_[name.value - 1]) : otherwise;
}

std::string_view DeviceLanes::peerCopyName(const PeerCopyActivity& copy)
{
    std::string& name = peerCopies_[{copy.from, copy.to}];
    if (name.empty()) name = fmt::format("copy GPU {} to GPU {}", copy.from, copy.to);
    return name;
}

void DeviceLanes::add(const JoinedActivity& joined)
{
    const Attribution whose = ranks_.of(joined);
    if (const auto* memory = std::get_if<MemoryActivity>(&joined.activity)) return addMemory(whose, *memory, joined.call.value_or(Interval{memory->at, memory->at}));
    std::visit(
        [&](const auto& activity) {
            addTo(whose, activity);
            if constexpr (requires { activity.place; activity.span; }) {
                Stream& stream = streamOf(activity.place.context, activity.place.stream);
                stream.place = activity.place;
                stream.pending.push_back({{activity.span, joined.call}, whose.rank, whose.work ? whose.work->step : traces::Step{}});
            }
        },
        joined.activity);
}

void DeviceLanes::addTo(const Attribution& whose, const KernelActivity& kernel) { addToStream(whose, kernel, nameOf(kernel.name, "kernel")); }

void DeviceLanes::addTo(const Attribution& whose, const CopyActivity& copy) { addToStream(whose, copy, copyDirectionText(copy.direction)); }

void DeviceLanes::addTo(const Attribution& whose, const PeerCopyActivity& copy) { addToStream(whose, copy, peerCopyName(copy)); }

void DeviceLanes::addTo(const Attribution& whose, const MemsetActivity& memset) { addToStream(whose, memset, "memset"); }

void DeviceLanes::addTo(const Attribution& whose, const SyncActivity& wait)
{
    if (wait.sync == SyncKind::StreamWait) { // the host goes on at once
        streamOf(wait.context, wait.stream).gaps.wait(wait.span.begin);
        return;
    }
    put({.rank = whose.rank, .row = Row::Waits, .place = {}}, whose, wait.span, syncKindText(wait.sync));
}

void DeviceLanes::addTo(const Attribution& whose, const ApiActivity& call)
{
    if (!options_.calls) return;
    put({.rank = whose.rank, .row = Row::Calls, .place = {}, .thread = call.thread}, whose, call.span, nameOf(call.name, "call"));
}

// A moment, told as long as the call took in which it was.
void DeviceLanes::addMemory(const Attribution& whose, const MemoryActivity& memory, Interval span)
{
    traces::MemoryOperation operation{
        .allocates = memory.operation == MemoryOperation::Allocate, .bytes = memory.bytes, .place = memory.memory, .async = memory.async};
    if (whose.work) operation.action = traces::Action{.work = whose.work->work};
    const std::string& text = *memoryTexts_.insert(memoryOperationText(operation)).first;
    put({.rank = whose.rank, .row = Row::Memory, .place = {.device = memory.place.device}}, whose, span, text);
}

void DeviceLanes::addTo(const Attribution& whose, const OverheadActivity& overhead)
{
    if (!options_.overhead) return;
    put({.rank = whose.rank, .row = Row::Overhead, .place = {}}, whose, overhead.span, overheadKindText(overhead.overhead));
}

template <class Activity>
void DeviceLanes::addToStream(const Attribution& whose, const Activity& activity, std::string_view text)
{
    const Row row = whose.work ? (whose.beside ? Row::Beside : Row::Stream) : traces::isNcclName(text) ? Row::Nccl : Row::Unattributed;
    if (row == Row::Unattributed) ++unattributed_;
    put({.rank = whose.rank, .row = row, .place = activity.place}, whose, activity.span, text);
}

void DeviceLanes::put(const RowKey& key, const Attribution& whose, Interval span, std::string_view text)
{
    put(key, whose.work ? whose.work->step : traces::Step{}, span, text);
}

void DeviceLanes::put(const RowKey& key, traces::Step step, Interval span, std::string_view text)
{
    if (last_ == nullptr || last_->first != key) last_ = &*rows_.try_emplace(key).first;
    last_->second.pending.push_back({.span = span, .step = step, .text = text});
}

// A gap is of the rank whose work ends it.
void DeviceLanes::putGaps(Stream& stream)
{
    std::stable_sort(stream.pending.begin(), stream.pending.end(),
                     [](const PendingWork& a, const PendingWork& b) { return a.work.span.begin < b.work.span.begin; });
    for (const PendingWork& each : stream.pending)
        if (const std::optional<StreamGap> gap = stream.gaps.before(each.work))
            for (const GapPart& part : partsOf(*gap))
                put({.rank = each.rank, .row = Row::Gaps, .place = stream.place}, each.step, part.span, traces::streamGapText(part.cause));
    stream.pending.clear();
}

std::string DeviceLanes::rowName(const RowKey& key)
{
    switch (key.row) {
    case Row::Stream: return fmt::format("GPU {} stream {}", key.place.device, key.place.stream);
    case Row::Unattributed: return fmt::format("GPU {} stream {}, of no action", key.place.device, key.place.stream);
    case Row::Beside: return traces::besideLaneName(fmt::format("GPU {} stream {}", key.place.device, key.place.stream));
    case Row::Nccl: return traces::ncclLaneName(fmt::format("GPU {} stream {}", key.place.device, key.place.stream));
    case Row::Gaps: return traces::gapsLaneName(fmt::format("GPU {} stream {}", key.place.device, key.place.stream));
    case Row::Waits: return "host waits";
    case Row::Calls: return fmt::format("CUDA calls of thread {}", key.thread);
    case Row::Memory: return traces::memoryOperationsLaneName(key.place.device);
    case Row::Overhead: return "overhead of recording";
    }
    return {};
}

DeviceLanes::LaneEnd& DeviceLanes::laneFor(const RowKey& key, RowLanes& row, TimeNs begin, std::vector<Record>& out)
{
    const auto fits = std::find_if(row.lanes.begin(), row.lanes.end(), [&](const LaneEnd& each) { return each.lastEnd <= begin; });
    if (fits != row.lanes.end()) {
        if (fits != row.lanes.begin()) ++late_;
        return *fits;
    }
    std::string name = rowName(key);
    if (!row.lanes.empty()) {
        name += fmt::format(" ({})", row.lanes.size() + 1);
        ++late_;
    }
    const LaneId id = numbers_.addLane(
        {.rank = key.rank, .kind = traces::LaneKind::Stream, .depth = depths_[key.rank]++, .name = std::move(name)}, out);
    return row.lanes.emplace_back(LaneEnd{.id = id, .lastEnd = begin});
}

TextId DeviceLanes::textOf(std::string_view text, std::vector<Record>& out)
{
    const auto [known, isNew] = texts_.try_emplace(text.data());
    if (isNew) known->second = numbers_.addText(std::string(text), out);
    return known->second;
}

void DeviceLanes::flush(std::vector<Record>& out)
{
    for (auto& [key, stream] : streams_) putGaps(stream);
    for (auto& [key, row] : rows_) {
        std::stable_sort(row.pending.begin(), row.pending.end(),
                         [](const PendingSlice& a, const PendingSlice& b) { return a.span.begin < b.span.begin; });
        for (const PendingSlice& each : row.pending) {
            const TextId text = textOf(each.text, out);
            LaneEnd& lane = laneFor(key, row, each.span.begin, out);
            lane.lastEnd = each.span.end;
            out.push_back(traces::SliceRecord{
                lane.id, {.begin = each.span.begin, .end = each.span.end, .action = {}, .step = each.step, .text = text}});
        }
        row.pending.clear();
    }
}

} // namespace stagecraft::runtime
