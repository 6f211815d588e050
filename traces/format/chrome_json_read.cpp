// SPDX-License-Identifier: Apache-2.0
#include "traces/format/chrome_json.h"

#include "traces/format/chrome_words.h"
#include "traces/format/json_text.h"
#include "traces/format/varint.h"
#include "traces/store/bounds.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

namespace stagecraft::traces {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::int64_t kVersion = 1;

struct Refused {
    Error error;
};

[[noreturn]] void refuse(std::string message) { throw Refused{Error{std::move(message)}}; }

void require(const Expected<void>& fits)
{
    if (!fits.ok()) refuse(fits.error().message);
}

// What any of our events holds; members that an event does not have keep their defaults.
struct Event {
    char phase = ' ';
    std::string_view name;
    std::string_view category;
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::int64_t id = 0;
    TimeNs ts = 0;
    TimeNs duration = 0; // of a slice or, from its arguments, of a pause
    std::string_view kind;
    std::int64_t step = 0;
    std::int64_t slice = 0;
    TimeNs ready = 0;
    std::optional<double> loss;
    std::array<std::optional<std::int64_t>, kMemoryClassCount> memory{};
    std::array<std::int64_t, kGpuMemoryWords.size()> gpu{};
};

struct FlowEnd {
    std::int64_t tid = 0;
    std::int64_t slice = 0;
    TimeNs ready = 0;
};

TimeNs timeOf(value v)
{
    std::string_view token = std::string_view(v.raw_json_token());
    const std::size_t end = token.find_last_not_of(" \t\r\n");
    token = token.substr(0, end + 1);
    const Expected<TimeNs> time = parseMicroseconds(token);
    if (!time.ok()) refuse(time.error().message);
    return time.value();
}

template <class Int>
Int fit(std::int64_t number, std::string_view what)
{
    if (number < std::numeric_limits<Int>::min() || number > std::numeric_limits<Int>::max())
        refuse("the " + std::string(what) + " " + std::to_string(number) + " is out of range");
    return static_cast<Int>(number);
}

class Reader {
public:
    Trace read(std::string_view json, const FileWatch& watch)
    {
        WatchedWork work(watch, json.size());
        simdjson::padded_string padded(json);
        simdjson::ondemand::parser parser;
        simdjson::ondemand::document document = parser.iterate(padded);
        if (document.type() != simdjson::ondemand::json_type::object) refuseForeign();
        for (auto field : document.get_object()) {
            const std::string_view key = field.unescaped_key();
            if (key == "baseTimeNanoseconds") base_ = std::int64_t(field.value());
            else if (key == "otherData") otherData(field.value());
            else if (key == "traceEvents") {
                if (!ours_) refuseForeign();
                const char* before = padded.data();
                for (auto event : field.value().get_array()) {
                    take(eventOf(event));
                    const char* now = document.current_location();
                    work.advance(static_cast<std::uint64_t>(now - before));
                    before = now;
                }
            }
        }
        if (!ours_) refuseForeign();
        require(checkBounds(trace_.info));
        build();
        return std::move(trace_);
    }

private:
    [[noreturn]] static void refuseForeign()
    {
        refuse("this is not an export of Stagecraft (no \"otherData\" with \"format\":\"stagecraft\" before its events); "
               "traces of other tools cannot be opened yet");
    }

    void otherData(object data)
    {
        TraceInfo& info = trace_.info;
        for (auto field : data) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "format") ours_ = std::string_view(v) == "stagecraft";
            else if (key == "version") {
                const std::int64_t version = v;
                if (version > kVersion)
                    refuse("the file has version " + std::to_string(version) + " of the export, this program knows up to " +
                           std::to_string(kVersion) + "; open it with a newer Stagecraft");
            } else if (key == "label") info.label = enumerator(v, TraceLabel::Imported, labelText, "label");
            else if (key == "clock") info.clock = enumerator(v, ClockKind::Foreign, clockText, "clock");
            else if (key == "title") info.title = std::string_view(v);
            else if (key == "schedule") info.schedule = std::string_view(v);
            else if (key == "plan") info.planJson = std::string_view(v);
            else if (key == "host") info.host = std::string_view(v);
            else if (key == "ranks") info.ranks = fit<std::int32_t>(v, key);
            else if (key == "chunks") info.chunks = fit<std::int32_t>(v, key);
            else if (key == "microbatches") info.microbatches = fit<std::int32_t>(v, key);
            else if (key == "slices") info.slices = fit<std::int32_t>(v, key);
            else if (key == "memoryLimit") info.memoryLimit = v;
            else if (key == "inference") info.inference = v;
            else if (key == "stageToRank" || key == "upStageToRank") {
                std::vector<Rank>& placement = key == "stageToRank" ? info.stageToRank : info.upStageToRank;
                for (auto rank : v.get_array()) placement.push_back(Rank{fit<std::int32_t>(std::int64_t(rank), "rank")});
            } else if (key == "lostEvents") trace_.addLostEvents(v);
            else if (key == "notes") {
                for (auto note : v.get_array()) trace_.addNote(std::string(std::string_view(note)));
            } else if (key == "information") {
                for (auto text : v.get_array()) trace_.addInformation(std::string(std::string_view(text)));
            } else if (key == "gpus") {
                for (auto gpu : v.get_array()) addGpu(gpu);
            } else if (key == "clocks") {
                for (auto reading : v.get_array()) addClock(reading);
            } else if (key == "lanes") {
                for (auto lane : v.get_array()) addLane(lane);
            }
        }
    }

    template <class Enum, class Text>
    static Enum enumerator(std::string_view word, Enum last, Text text, std::string_view what)
    {
        const std::optional<Enum> found = enumeratorOf(word, last, text);
        if (!found) refuse("the " + std::string(what) + " '" + std::string(word) + "' is not known");
        return *found;
    }

    void addClock(object fields)
    {
        ClockReading reading;
        for (auto field : fields) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "rank") reading.rank = Rank{fit<std::int32_t>(v, key)};
            else if (key == "at") reading.at = v;
            else if (key == "offset") reading.offset = v;
            else if (key == "error") reading.error = v;
            else if (key == "host") reading.host = std::string_view(v);
        }
        require(checkBounds(reading));
        trace_.addClockReading(std::move(reading));
    }

    void addGpu(object fields)
    {
        Gpu gpu;
        std::int64_t pid = 0;
        for (auto field : fields) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "pid") pid = v;
            else if (key == "number") gpu.number = fit<std::int32_t>(v, key);
            else if (key == "total") gpu.total = v;
            else if (key == "host") gpu.host = std::string_view(v);
            else if (key == "name") gpu.name = std::string_view(v);
            else if (key == "bus") gpu.bus = std::string_view(v);
            else if (key == "ranks")
                for (auto rank : v.get_array()) gpu.ranks.push_back(Rank{fit<std::int32_t>(std::int64_t(rank), "rank")});
        }
        require(checkBounds(gpu));
        if (trace_.gpus().size() >= kMostGpus) refuse("more than " + std::to_string(kMostGpus) + " GPUs");
        gpus_[pid] = trace_.addGpu(std::move(gpu));
    }

    void addLane(object fields)
    {
        LaneInfo lane;
        std::int64_t tid = 0;
        for (auto field : fields) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "tid") tid = v;
            else if (key == "rank") lane.rank = Rank{fit<std::int32_t>(v, key)};
            else if (key == "kind") lane.kind = enumerator(v, kLastLaneKind, laneKindText, "lane kind");
            else if (key == "depth") lane.depth = fit<std::int32_t>(v, key);
            else if (key == "name") lane.name = std::string_view(v);
        }
        require(checkBounds(lane));
        if (trace_.laneCount() >= kMostLanes) refuse("more than " + std::to_string(kMostLanes) + " lanes");
        lanes_[tid] = trace_.addLane(std::move(lane));
        slices_.emplace_back();
    }

    static Event eventOf(object fields)
    {
        Event event;
        for (auto field : fields) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "ph") {
                const std::string_view phase = v;
                if (phase.size() == 1) event.phase = phase.front();
            } else if (key == "name") event.name = v;
            else if (key == "cat") event.category = v;
            else if (key == "pid") event.pid = v;
            else if (key == "tid") event.tid = v;
            else if (key == "id") event.id = v;
            else if (key == "ts") event.ts = timeOf(v);
            else if (key == "dur") event.duration = timeOf(v);
            else if (key == "args") arguments(event, v);
        }
        return event;
    }

    static void arguments(Event& event, object fields)
    {
        for (auto field : fields) {
            const std::string_view key = field.unescaped_key();
            value v = field.value();
            if (key == "step") event.step = v;
            else if (key == "slice") event.slice = v;
            else if (key == "kind") event.kind = v;
            else if (key == "ready") event.ready = timeOf(v);
            else if (key == "duration") event.duration = timeOf(v);
            else if (key == "loss") event.loss = lossOf(v);
            else if (const auto memory = enumeratorOf(key, kLastMemoryClass, memoryClassText))
                event.memory[static_cast<std::size_t>(*memory)] = std::int64_t(v);
            else if (const auto part = std::find(kGpuMemoryWords.begin(), kGpuMemoryWords.end(), key); part != kGpuMemoryWords.end())
                event.gpu[static_cast<std::size_t>(part - kGpuMemoryWords.begin())] = v;
        }
    }

    static double lossOf(value v)
    {
        if (v.type() == simdjson::ondemand::json_type::number) return v;
        return std::strtod(std::string(std::string_view(v)).c_str(), nullptr); // "nan", "inf", "-inf"
    }

    [[nodiscard]] TimeNs absolute(TimeNs relative) const { return wrappingAdd(base_, relative); }

    [[nodiscard]] LaneId laneOf(std::int64_t tid) const
    {
        const auto lane = lanes_.find(tid);
        if (lane == lanes_.end()) refuse("an event is on thread " + std::to_string(tid) + ", which no lane has");
        return lane->second;
    }

    void take(const Event& event)
    {
        switch (event.phase) {
        case 'X':
            event.category == "step" && lanes_.find(event.tid) == lanes_.end() ? takeStep(event) : takeSlice(event);
            break;
        case 's': flowStarts_[{event.category, event.id}] = {event.tid, event.slice}; break;
        case 'f': flowEnds_[{event.category, event.id}] = {event.tid, event.slice, absolute(event.ready)}; break;
        case 'C': counters_.push_back(event); break;
        case 'i':
            if (event.category == "pause" && event.name == "paused")
                trace_.addPause(spanOf(event));
            break;
        default: break; // names and sort order stand in otherData
        }
    }

    [[nodiscard]] Interval spanOf(const Event& event) const
    {
        const Interval span{absolute(event.ts), wrappingAdd(absolute(event.ts), event.duration)};
        require(checkBounds(span));
        return span;
    }

    void takeStep(const Event& event)
    {
        trace_.addStep({.step = Step{fit<std::int32_t>(event.step, "step")},
                        .span = spanOf(event),
                        .loss = event.loss});
    }

    void takeSlice(const Event& event)
    {
        Slice slice;
        slice.begin = absolute(event.ts);
        slice.end = wrappingAdd(slice.begin, event.duration);
        slice.step = Step{fit<std::int32_t>(event.step, "step")};
        if (event.kind.empty()) {
            slice.text = trace_.intern(event.name);
        } else {
            const Expected<Action> action = parseAction(event.name);
            if (!action.ok()) refuse(action.error().message);
            slice.action = action.value();
        }
        require(checkBounds(slice));
        slices_[index(laneOf(event.tid))].push_back(slice);
    }

    void build()
    {
        for (std::size_t l = 0; l < slices_.size(); ++l) {
            std::stable_sort(slices_[l].begin(), slices_[l].end(),
                             [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
            for (const Slice& slice : slices_[l]) {
                if (!trace_.lane(LaneId{l}).canAppend(slice))
                    refuse("the slices of lane '" + trace_.lane(LaneId{l}).info().name + "' overlap at " +
                           std::to_string(slice.begin) + " ns");
                trace_.append(LaneId{l}, slice);
            }
        }
        addEdges();
        addMemory();
    }

    [[nodiscard]] SliceRef sliceOf(const FlowEnd& end) const
    {
        const LaneId lane = laneOf(end.tid);
        if (end.slice < 0 || static_cast<std::size_t>(end.slice) >= trace_.lane(lane).size())
            refuse("a flow names slice " + std::to_string(end.slice) + " of thread " + std::to_string(end.tid) +
                   ", which does not have it");
        return {lane, static_cast<std::uint32_t>(end.slice)};
    }

    void addEdges()
    {
        std::vector<Edge> edges;
        for (const auto& [key, end] : flowEnds_) {
            const auto start = flowStarts_.find(key);
            if (start == flowStarts_.end()) refuse("flow " + std::to_string(key.second) + " ends but does not start");
            const auto kind = enumeratorOf(key.first, EdgeKind::Flush, edgeKindText);
            if (!kind) continue;
            require(checkTime(end.ready));
            edges.push_back({.kind = *kind, .from = sliceOf(start->second), .to = sliceOf(end), .ready = end.ready});
        }
        std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
        for (const Edge& edge : edges) trace_.addEdge(edge);
    }

    // Points that only repeat a value were written for the sake of another class.
    void addMemory()
    {
        std::stable_sort(counters_.begin(), counters_.end(), [](const Event& a, const Event& b) { return a.ts < b.ts; });
        std::map<std::pair<std::int64_t, std::size_t>, std::int64_t> last;
        for (const Event& event : counters_) {
            if (const auto gpu = gpus_.find(event.pid); gpu != gpus_.end()) {
                addGpuMemory(gpu->second, event);
                continue;
            }
            for (std::size_t m = 0; m < kMemoryClassCount; ++m) {
                if (!event.memory[m]) continue;
                std::int64_t& known = last[{event.pid, m}];
                if (known == *event.memory[m]) continue;
                known = *event.memory[m];
                const Rank rank{fit<std::int32_t>(wrappingSub(event.pid, 1), "rank")};
                require(checkMemory(rank, absolute(event.ts), known));
                trace_.addMemory(rank, static_cast<MemoryClass>(m), absolute(event.ts), known);
            }
        }
    }

    void addGpuMemory(GpuId gpu, const Event& event)
    {
        GpuMemory memory{.active = event.gpu[0]};
        memory.reserved = wrappingAdd(memory.active, event.gpu[1]);
        memory.used = wrappingAdd(memory.reserved, event.gpu[2]);
        require(checkBounds(absolute(event.ts), memory));
        trace_.addGpuMemory(gpu, absolute(event.ts), memory);
    }

    Trace trace_;
    bool ours_ = false;
    TimeNs base_ = 0;
    std::map<std::int64_t, LaneId> lanes_;                                    // by tid
    std::vector<std::vector<Slice>> slices_;                                  // by lane
    std::map<std::pair<std::string_view, std::int64_t>, FlowEnd> flowStarts_; // by category and id
    std::map<std::pair<std::string_view, std::int64_t>, FlowEnd> flowEnds_;
    std::map<std::int64_t, GpuId> gpus_; // by pid
    std::vector<Event> counters_;
};

} // namespace

Expected<Trace> readChromeJson(std::string_view json, const FileWatch& watch)
{
    try {
        return Reader{}.read(json, watch);
    } catch (const Refused& refused) {
        return refused.error;
    } catch (const simdjson::simdjson_error& error) {
        return Error{std::string("the JSON cannot be read: ") + error.what()};
    }
}

} // namespace stagecraft::traces
