// SPDX-License-Identifier: Apache-2.0
#include "traces/format/journal_payload.h"

#include "traces/base/text.h"
#include "traces/format/varint.h"
#include "traces/store/bounds.h"

namespace stagecraft::traces {
namespace {

enum Type : unsigned {
    kInfo = 1,
    kLane,
    kText,
    kSlice,
    kEdge,
    kMemory,
    kStep,
    kPause,
    kNote,
    kLost,
    kSession,
    kClock,
    kGpu,
    kGpuMemory,
};

constexpr std::string_view kTypeNames[] = {"",
                                           "the info",
                                           "a lane",
                                           "a text",
                                           "a slice",
                                           "an edge",
                                           "a memory point",
                                           "a step",
                                           "a pause",
                                           "a note",
                                           "a count of lost events",
                                           "a session message",
                                           "a clock reading",
                                           "a GPU",
                                           "a memory point of a GPU"};

// Second byte of a slice: direction, and which parts follow.
constexpr unsigned kFlowMask = 0x03;
constexpr unsigned kHasPartner = 0x04;
constexpr unsigned kHasText = 0x08;

// A lane that was not declared (damaged or hostile input) has a state as well, but none that is kept.
JournalDeltas::LaneState& stateOf(JournalDeltas& deltas, LaneId lane, JournalDeltas::LaneState& spare)
{
    return index(lane) < deltas.lanes.size() ? deltas.lanes[index(lane)] : spare;
}

class PayloadWriter {
public:
    PayloadWriter(std::string& out, JournalDeltas& deltas) : out_(out), deltas_(deltas) {}

    void operator()(const InfoRecord& r)
    {
        deltas_ = {};
        const TraceInfo& info = r.info;
        appendByte(out_, static_cast<unsigned>(info.label));
        appendByte(out_, static_cast<unsigned>(info.clock));
        appendText(out_, info.title);
        appendText(out_, info.schedule);
        appendText(out_, info.planJson);
        appendZigzag(out_, info.ranks);
        appendZigzag(out_, info.chunks);
        appendZigzag(out_, info.microbatches);
        appendPlacement(info.stageToRank);
        appendText(out_, info.host);
        appendZigzag(out_, info.slices);
        appendPlacement(info.upStageToRank);
        appendZigzag(out_, info.memoryLimit);
        appendByte(out_, info.inference ? 1 : 0);
    }
    void operator()(const LaneRecord& r)
    {
        appendZigzag(out_, r.lane.rank.value);
        appendByte(out_, static_cast<unsigned>(r.lane.kind));
        appendZigzag(out_, r.lane.depth);
        appendText(out_, r.lane.name);
        deltas_.lanes.emplace_back();
    }
    void operator()(const TextRecord& r) { appendText(out_, r.text); }
    void operator()(const SliceRecord& r)
    {
        JournalDeltas::LaneState spare;
        JournalDeltas::LaneState& lane = stateOf(deltas_, r.lane, spare);
        const Action& action = r.slice.action;
        appendVarint(out_, r.lane.value);
        appendZigzag(out_, wrappingSub(r.slice.begin, lane.lastEnd));
        appendZigzag(out_, wrappingSub(r.slice.end, r.slice.begin));
        appendByte(out_, static_cast<unsigned>(action.kind()));
        const bool partner = action.partner != Work{};
        const bool text = r.slice.text != TextId{};
        appendByte(out_, static_cast<unsigned>(action.work.flow) | (partner ? kHasPartner : 0) | (text ? kHasText : 0));
        appendZigzag(out_, action.work.stage.value);
        appendZigzag(out_, action.work.microbatch.value);
        appendZigzag(out_, r.slice.step.value);
        if (partner) {
            appendByte(out_, static_cast<unsigned>(action.partner.kind));
            appendByte(out_, static_cast<unsigned>(action.partner.flow));
            appendZigzag(out_, action.partner.stage.value);
            appendZigzag(out_, action.partner.microbatch.value);
        }
        if (text) appendVarint(out_, r.slice.text.value);
        lane = {r.slice.end, lane.slices + 1};
    }
    void operator()(const EdgeRecord& r)
    {
        JournalDeltas::LaneState spare;
        const JournalDeltas::LaneState& to = stateOf(deltas_, r.edge.to.lane, spare);
        const JournalDeltas::LaneState& from = stateOf(deltas_, r.edge.from.lane, spare);
        appendByte(out_, static_cast<unsigned>(r.edge.kind));
        appendVarint(out_, r.edge.from.lane.value);
        appendZigzag(out_, from.slices - static_cast<std::int64_t>(r.edge.from.index));
        appendVarint(out_, r.edge.to.lane.value);
        appendZigzag(out_, to.slices - static_cast<std::int64_t>(r.edge.to.index));
        appendZigzag(out_, wrappingSub(r.edge.ready, to.lastEnd));
    }
    void operator()(const MemoryRecord& r)
    {
        appendZigzag(out_, r.rank.value);
        appendByte(out_, static_cast<unsigned>(r.memory));
        appendZigzag(out_, wrappingSub(r.time, deltas_.memoryTime));
        appendZigzag(out_, r.value);
        deltas_.memoryTime = r.time;
    }
    void operator()(const StepRecord& r)
    {
        appendZigzag(out_, r.step.step.value);
        appendZigzag(out_, r.step.span.begin);
        appendZigzag(out_, wrappingSub(r.step.span.end, r.step.span.begin));
        appendByte(out_, r.step.loss.has_value() ? 1 : 0);
        if (r.step.loss) appendDouble(out_, *r.step.loss);
    }
    void operator()(const PauseRecord& r)
    {
        appendZigzag(out_, r.pause.begin);
        appendZigzag(out_, wrappingSub(r.pause.end, r.pause.begin));
    }
    void operator()(const NoteRecord& r)
    {
        appendText(out_, r.note);
        if (r.kind != NoteKind::Warning) appendByte(out_, static_cast<unsigned>(r.kind));
    }
    void operator()(const GpuRecord& r)
    {
        appendText(out_, r.gpu.host);
        appendZigzag(out_, r.gpu.number);
        appendText(out_, r.gpu.name);
        appendText(out_, r.gpu.bus);
        appendZigzag(out_, r.gpu.total);
        appendPlacement(r.gpu.ranks);
    }
    void operator()(const GpuMemoryRecord& r)
    {
        appendVarint(out_, r.gpu.value);
        appendZigzag(out_, wrappingSub(r.time, deltas_.gpuTime));
        appendZigzag(out_, r.memory.active);
        appendZigzag(out_, wrappingSub(r.memory.reserved, r.memory.active));
        appendZigzag(out_, wrappingSub(r.memory.used, r.memory.reserved));
        deltas_.gpuTime = r.time;
    }
    void operator()(const LostRecord& r) { appendZigzag(out_, r.events); }
    void operator()(const SessionRecord& r) { appendText(out_, r.json); }
    void operator()(const ClockRecord& r)
    {
        appendZigzag(out_, r.reading.rank.value);
        appendText(out_, r.reading.host);
        appendZigzag(out_, r.reading.at);
        appendZigzag(out_, r.reading.offset);
        appendZigzag(out_, r.reading.error);
    }

private:
    void appendPlacement(const std::vector<Rank>& placement)
    {
        appendVarint(out_, placement.size());
        for (const Rank rank : placement) appendZigzag(out_, rank.value);
    }

    std::string& out_;
    JournalDeltas& deltas_;
};

std::vector<Rank> readPlacement(ByteReader& in)
{
    std::vector<Rank> placement;
    for (std::uint64_t count = in.varint(); count > 0 && !in.failed(); --count) // ends with the bytes at the latest
        placement.push_back(Rank{in.fit<std::int32_t>(in.zigzag())});
    return placement;
}

Record readInfo(ByteReader& in, JournalDeltas& deltas)
{
    deltas = {};
    InfoRecord r;
    r.info.label = in.oneOf(TraceLabel::Imported);
    r.info.clock = in.oneOf(ClockKind::Foreign);
    r.info.title = in.text();
    r.info.schedule = in.text();
    r.info.planJson = in.text();
    r.info.ranks = in.fit<std::int32_t>(in.zigzag());
    r.info.chunks = in.fit<std::int32_t>(in.zigzag());
    r.info.microbatches = in.fit<std::int32_t>(in.zigzag());
    r.info.stageToRank = readPlacement(in);
    r.info.host = in.text();
    if (in.remaining() > 0) { // written since there are schedules of slices and of two directions
        r.info.slices = in.fit<std::int32_t>(in.zigzag());
        r.info.upStageToRank = readPlacement(in);
    }
    if (in.remaining() > 0) r.info.memoryLimit = in.zigzag(); // written since there is a limit
    if (in.remaining() > 0) r.info.inference = in.byte() != 0;          // written since forwards let go by themselves
    return r;
}

Record readLane(ByteReader& in, JournalDeltas& deltas)
{
    LaneRecord r;
    r.lane.rank = Rank{in.fit<std::int32_t>(in.zigzag())};
    r.lane.kind = in.oneOf(kLastLaneKind);
    r.lane.depth = in.fit<std::int32_t>(in.zigzag());
    r.lane.name = in.text();
    deltas.lanes.emplace_back();
    return r;
}

Record readSlice(ByteReader& in, JournalDeltas& deltas)
{
    SliceRecord r;
    r.lane = LaneId{in.fit<std::uint32_t>(static_cast<std::int64_t>(in.varint()))};
    JournalDeltas::LaneState spare;
    JournalDeltas::LaneState& lane = stateOf(deltas, r.lane, spare);
    r.slice.begin = wrappingAdd(lane.lastEnd, in.zigzag());
    r.slice.end = wrappingAdd(r.slice.begin, in.zigzag());
    Work& work = r.slice.action.work;
    work.kind = in.oneOf(ActionKind::Optimizer);
    const unsigned flags = in.byte();
    in.require((flags & kFlowMask) <= static_cast<unsigned>(Flow::Up));
    work.flow = static_cast<Flow>(flags & kFlowMask);
    work.stage = Stage{in.fit<std::int16_t>(in.zigzag())};
    work.microbatch = MicroBatch{in.fit<std::int32_t>(in.zigzag())};
    r.slice.step = Step{in.fit<std::int32_t>(in.zigzag())};
    if ((flags & kHasPartner) != 0) {
        Work& partner = r.slice.action.partner;
        partner.kind = in.oneOf(ActionKind::Optimizer);
        partner.flow = in.oneOf(Flow::Up);
        partner.stage = Stage{in.fit<std::int16_t>(in.zigzag())};
        partner.microbatch = MicroBatch{in.fit<std::int32_t>(in.zigzag())};
    }
    if ((flags & kHasText) != 0) r.slice.text = TextId{in.fit<std::uint32_t>(static_cast<std::int64_t>(in.varint()))};
    lane = {r.slice.end, lane.slices + 1};
    return r;
}

Record readEdge(ByteReader& in, JournalDeltas& deltas)
{
    EdgeRecord r;
    JournalDeltas::LaneState spare;
    r.edge.kind = in.oneOf(EdgeKind::Flush);
    r.edge.from.lane = LaneId{in.fit<std::uint32_t>(static_cast<std::int64_t>(in.varint()))};
    r.edge.from.index = in.fit<std::uint32_t>(wrappingSub(stateOf(deltas, r.edge.from.lane, spare).slices, in.zigzag()));
    r.edge.to.lane = LaneId{in.fit<std::uint32_t>(static_cast<std::int64_t>(in.varint()))};
    const JournalDeltas::LaneState& to = stateOf(deltas, r.edge.to.lane, spare);
    r.edge.to.index = in.fit<std::uint32_t>(wrappingSub(to.slices, in.zigzag()));
    r.edge.ready = wrappingAdd(to.lastEnd, in.zigzag());
    return r;
}

Record readMemory(ByteReader& in, JournalDeltas& deltas)
{
    MemoryRecord r;
    r.rank = Rank{in.fit<std::int32_t>(in.zigzag())};
    r.memory = in.oneOf(kLastMemoryClass);
    r.time = wrappingAdd(deltas.memoryTime, in.zigzag());
    r.value = in.zigzag();
    deltas.memoryTime = r.time;
    return r;
}

Record readNote(ByteReader& in)
{
    NoteRecord r{std::string(in.text())};
    // written since not all notes are warnings; what a later version may call it is taken for one
    if (in.remaining() > 0 && in.byte() == static_cast<unsigned>(NoteKind::Information)) r.kind = NoteKind::Information;
    return r;
}

Record readGpu(ByteReader& in)
{
    GpuRecord r;
    r.gpu.host = in.text();
    r.gpu.number = in.fit<std::int32_t>(in.zigzag());
    r.gpu.name = in.text();
    r.gpu.bus = in.text();
    r.gpu.total = in.zigzag();
    r.gpu.ranks = readPlacement(in);
    return r;
}

Record readGpuMemory(ByteReader& in, JournalDeltas& deltas)
{
    GpuMemoryRecord r;
    r.gpu = GpuId{in.fit<std::uint32_t>(static_cast<std::int64_t>(in.varint()))};
    r.time = wrappingAdd(deltas.gpuTime, in.zigzag());
    r.memory.active = in.zigzag();
    r.memory.reserved = wrappingAdd(r.memory.active, in.zigzag());
    r.memory.used = wrappingAdd(r.memory.reserved, in.zigzag());
    deltas.gpuTime = r.time;
    return r;
}

Interval readInterval(ByteReader& in)
{
    const TimeNs begin = in.zigzag();
    return {begin, wrappingAdd(begin, in.zigzag())};
}

Record readStep(ByteReader& in)
{
    StepRecord r;
    r.step.step = Step{in.fit<std::int32_t>(in.zigzag())};
    r.step.span = readInterval(in);
    if (in.byte() != 0) r.step.loss = in.real();
    return r;
}

Record readClock(ByteReader& in)
{
    ClockRecord r;
    r.reading.rank = Rank{in.fit<std::int32_t>(in.zigzag())};
    r.reading.host = in.text();
    r.reading.at = in.zigzag();
    r.reading.offset = in.zigzag();
    r.reading.error = in.zigzag();
    return r;
}

std::optional<Record> readRecord(unsigned type, ByteReader& in, JournalDeltas& deltas)
{
    switch (type) {
    case kInfo: return readInfo(in, deltas);
    case kLane: return readLane(in, deltas);
    case kText: return TextRecord{std::string(in.text())};
    case kSlice: return readSlice(in, deltas);
    case kEdge: return readEdge(in, deltas);
    case kMemory: return readMemory(in, deltas);
    case kStep: return readStep(in);
    case kPause: return PauseRecord{readInterval(in)};
    case kNote: return readNote(in);
    case kLost: return LostRecord{in.zigzag()};
    case kSession: return SessionRecord{std::string(in.text())};
    case kClock: return readClock(in);
    case kGpu: return readGpu(in);
    case kGpuMemory: return readGpuMemory(in, deltas);
    default: return std::nullopt;
    }
}

struct Bounds {
    Expected<void> operator()(const InfoRecord& r) const { return checkBounds(r.info); }
    Expected<void> operator()(const LaneRecord& r) const { return checkBounds(r.lane); }
    Expected<void> operator()(const SliceRecord& r) const { return checkBounds(r.slice); }
    Expected<void> operator()(const EdgeRecord& r) const { return checkTime(r.edge.ready); }
    Expected<void> operator()(const MemoryRecord& r) const { return checkMemory(r.rank, r.time, r.value); }
    Expected<void> operator()(const StepRecord& r) const { return checkBounds(r.step.span); }
    Expected<void> operator()(const PauseRecord& r) const { return checkBounds(r.pause); }
    Expected<void> operator()(const ClockRecord& r) const { return checkBounds(r.reading); }
    Expected<void> operator()(const GpuRecord& r) const { return checkBounds(r.gpu); }
    Expected<void> operator()(const GpuMemoryRecord& r) const { return checkBounds(r.time, r.memory); }
    template <class Other>
    Expected<void> operator()(const Other&) const
    {
        return {};
    }
};

} // namespace

unsigned journalType(const Record& record)
{
    struct Types {
        Type operator()(const InfoRecord&) const { return kInfo; }
        Type operator()(const LaneRecord&) const { return kLane; }
        Type operator()(const TextRecord&) const { return kText; }
        Type operator()(const SliceRecord&) const { return kSlice; }
        Type operator()(const EdgeRecord&) const { return kEdge; }
        Type operator()(const MemoryRecord&) const { return kMemory; }
        Type operator()(const StepRecord&) const { return kStep; }
        Type operator()(const PauseRecord&) const { return kPause; }
        Type operator()(const NoteRecord&) const { return kNote; }
        Type operator()(const LostRecord&) const { return kLost; }
        Type operator()(const SessionRecord&) const { return kSession; }
        Type operator()(const ClockRecord&) const { return kClock; }
        Type operator()(const GpuRecord&) const { return kGpu; }
        Type operator()(const GpuMemoryRecord&) const { return kGpuMemory; }
    };
    return std::visit(Types{}, record);
}

void appendPayload(std::string& out, const Record& record, JournalDeltas& deltas)
{
    std::visit(PayloadWriter{out, deltas}, record);
}

Expected<std::optional<Record>> readPayload(unsigned type, std::string_view payload, JournalDeltas& deltas)
{
    ByteReader in(payload);
    std::optional<Record> record = readRecord(type, in, deltas);
    if (in.failed())
        return Error{std::string(kTypeNames[type]) + " of " + counted(payload.size(), "byte") + " cannot be read"};
    if (!record) return record;
    if (const Expected<void> fits = std::visit(Bounds{}, *record); !fits.ok()) return fits.error().in(kTypeNames[type]);
    if (deltas.lanes.size() > kMostLanes) return Error{"more than " + std::to_string(kMostLanes) + " lanes"};
    return record;
}

} // namespace stagecraft::traces
