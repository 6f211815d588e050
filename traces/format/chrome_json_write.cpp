// SPDX-License-Identifier: Apache-2.0
#include "traces/format/chrome_json.h"

#include "traces/format/chrome_words.h"
#include "traces/format/json_text.h"
#include "traces/format/varint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

namespace stagecraft::traces {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

class Writer {
public:
    Writer(const Trace& trace, const std::function<void(std::string_view)>& sink, const ChromeJsonOptions& options)
        : trace_(trace), sink_(sink), options_(options), base_(earliest())
    {
        for (const Lane& lane : trace_.lanes()) ranks_.insert(lane.info().rank);
        for (const MemorySeries& series : trace_.memory()) ranks_.insert(series.rank);
        const int lastPid = ranks_.empty() ? 0 : pidOf(*ranks_.rbegin());
        stepsPid_ = lastPid + 1;
        gpusPid_ = stepsPid_ + 1;
        firstTid_ = gpusPid_ + static_cast<int>(trace_.gpus().size());
        stepsTid_ = firstTid_ + static_cast<int>(trace_.laneCount());
    }

    void run()
    {
        head();
        nameEverything();
        steps();
        pauses();
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) slices(LaneId{l});
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) flows(LaneId{l});
        for (const Rank rank : ranks_) memory(rank);
        for (std::size_t g = 0; g < trace_.gpus().size(); ++g) gpuMemory(g);
        out_ += "\n]}\n";
        sink_(out_);
    }

private:
    // Relative times are never negative: readers drop or clamp what is.
    [[nodiscard]] TimeNs earliest() const
    {
        TimeNs first = std::numeric_limits<TimeNs>::max();
        for (const Lane& lane : trace_.lanes())
            if (!lane.empty()) first = std::min(first, lane.begin(0));
        for (const StepSpan& step : trace_.steps()) first = std::min(first, step.span.begin);
        for (const Interval& pause : trace_.pauses()) first = std::min(first, pause.begin);
        for (const MemorySeries& series : trace_.memory())
            if (!series.time.empty()) first = std::min(first, series.time.front());
        for (const GpuSeries& series : trace_.gpus())
            if (!series.time.empty()) first = std::min(first, series.time.front());
        return first == std::numeric_limits<TimeNs>::max() ? 0 : first;
    }

    // Process and thread numbers are small and never 0, which readers give a meaning of its own; thread numbers do not
    // occur as process numbers, which would make a lane somebody's main thread.
    static int pidOf(Rank rank) { return std::max(rank.value, 0) + 1; }
    [[nodiscard]] int tidOf(LaneId lane) const { return firstTid_ + static_cast<int>(lane.value); }
    [[nodiscard]] bool wanted(Rank rank) const { return !options_.rank || *options_.rank == rank; }
    [[nodiscard]] bool wanted(const Gpu& gpu) const
    {
        return !options_.rank || std::find(gpu.ranks.begin(), gpu.ranks.end(), *options_.rank) != gpu.ranks.end();
    }
    [[nodiscard]] bool wanted(LaneId lane) const { return wanted(trace_.lane(lane).info().rank); }

    template <class... Args>
    void print(fmt::format_string<Args...> format, Args&&... args)
    {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }
    void string(std::string_view text) { appendJsonString(out_, text); }
    void key(std::string_view name, std::string_view text)
    {
        print(",\"{}\":", name);
        string(text);
    }
    void micros(std::string_view name, TimeNs ns)
    {
        print(",\"{}\":", name);
        appendMicroseconds(out_, ns);
    }
    void at(TimeNs time) { micros("ts", wrappingSub(time, base_)); }

    void begin(char phase)
    {
        if (out_.size() >= kPieceBytes) {
            sink_(out_);
            out_.clear();
        }
        out_ += firstEvent_ ? "\n" : ",\n";
        firstEvent_ = false;
        print("{{\"ph\":\"{}\"", phase);
    }

    void clocks()
    {
        if (trace_.clockReadings().empty()) return;
        out_ += ",\"clocks\":[";
        bool first = true;
        for (const ClockReading& reading : trace_.clockReadings()) {
            print("{}\n{{\"rank\":{},\"at\":{},\"offset\":{},\"error\":{}", first ? "" : ",", reading.rank.value, reading.at, reading.offset,
                  reading.error);
            key("host", reading.host);
            out_ += "}";
            first = false;
        }
        out_ += "]";
    }

    void texts(std::string_view name, const std::vector<std::string>& all)
    {
        print(",\"{}\":[", name);
        for (std::size_t n = 0; n < all.size(); ++n) {
            if (n > 0) out_ += ",";
            string(all[n]);
        }
        out_ += "]";
    }

    void gpus()
    {
        if (trace_.gpus().empty()) return;
        out_ += ",\"gpus\":[";
        bool first = true;
        for (std::size_t g = 0; g < trace_.gpus().size(); ++g) {
            const Gpu& gpu = trace_.gpus()[g].gpu;
            if (!wanted(gpu)) continue;
            print("{}\n{{\"pid\":{},\"number\":{},\"total\":{}", first ? "" : ",", gpusPid_ + static_cast<int>(g), gpu.number, gpu.total);
            key("host", gpu.host);
            key("name", gpu.name);
            key("bus", gpu.bus);
            placement("ranks", gpu.ranks);
            out_ += "}";
            first = false;
        }
        out_ += "]";
    }

    void head()
    {
        const TraceInfo& info = trace_.info;
        print("{{\"displayTimeUnit\":\"ns\",\n\"baseTimeNanoseconds\":{},\n", base_);
        // the blank after "rank": is what HolisticTraceAnalysis looks for
        if (options_.rank)
            print("\"distributedInfo\":{{\"backend\":\"\",\"rank\": {},\"world_size\":{}}},\n", options_.rank->value,
                  info.ranks);
        out_ += "\"otherData\":{\"format\":\"stagecraft\",\"version\":1";
        key("label", labelText(info.label));
        key("clock", clockText(info.clock));
        key("title", info.title);
        key("schedule", info.schedule);
        key("plan", info.planJson);
        key("host", info.host);
        print(",\"ranks\":{},\"chunks\":{},\"microbatches\":{}", info.ranks, info.chunks, info.microbatches);
        if (info.slices != 1) print(",\"slices\":{}", info.slices);
        if (info.memoryLimit != 0) print(",\"memoryLimit\":{}", info.memoryLimit);
        if (info.inference) out_ += ",\"inference\":true";
        placement("stageToRank", info.stageToRank);
        if (!info.upStageToRank.empty()) placement("upStageToRank", info.upStageToRank);
        clocks();
        gpus();
        print(",\"lostEvents\":{}", trace_.lostEvents());
        texts("notes", trace_.notes());
        if (!trace_.information().empty()) texts("information", trace_.information());
        out_ += ",\"lanes\":[";
        bool first = true;
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) {
            const LaneInfo& lane = trace_.lane(LaneId{l}).info();
            if (!wanted(lane.rank)) continue;
            print("{}\n{{\"tid\":{},\"rank\":{},\"kind\":\"{}\",\"depth\":{}", first ? "" : ",", tidOf(LaneId{l}),
                  lane.rank.value, laneKindText(lane.kind), lane.depth);
            key("name", lane.name);
            out_ += "}";
            first = false;
        }
        out_ += "]},\n\"traceEvents\":[";
    }

    void placement(std::string_view key, const std::vector<Rank>& ranks)
    {
        print(",\"{}\":[", key);
        for (std::size_t s = 0; s < ranks.size(); ++s) print("{}{}", s == 0 ? "" : ",", ranks[s].value);
        out_ += "]";
    }

    void name(std::string_view what, int pid, int tid, std::string_view text, std::int64_t sortIndex)
    {
        begin('M');
        print(",\"name\":\"{}_name\",\"pid\":{}", what, pid);
        if (tid != 0) print(",\"tid\":{}", tid);
        out_ += ",\"args\":{\"name\":";
        string(text);
        out_ += "}}";
        begin('M');
        print(",\"name\":\"{}_sort_index\",\"pid\":{}", what, pid);
        if (tid != 0) print(",\"tid\":{}", tid);
        print(",\"args\":{{\"sort_index\":{}}}}}", sortIndex);
    }

    [[nodiscard]] static std::string nameOf(const Gpu& gpu)
    {
        std::string text = "GPU " + std::to_string(gpu.number);
        if (!gpu.name.empty()) text += " · " + gpu.name;
        if (!gpu.host.empty()) text += " · " + gpu.host;
        return text;
    }

    [[nodiscard]] std::string rankName(Rank rank) const
    {
        std::string stages;
        int count = 0;
        for (const auto& [placement, direction] : {std::pair{&trace_.info.stageToRank, ""}, {&trace_.info.upStageToRank, "u"}})
            for (std::size_t s = 0; s < placement->size(); ++s)
                if ((*placement)[s] == rank) stages += (count++ == 0 ? "" : ",") + (direction + std::to_string(s));
        std::string text = "rank " + std::to_string(rank.value);
        if (count > 0) text += (count == 1 ? " · stage " : " · stages ") + stages;
        return text;
    }

    [[nodiscard]] static std::string laneName(const LaneInfo& lane)
    {
        if (!lane.name.empty()) return lane.name;
        return std::string(laneKindText(lane.kind)) + (lane.depth > 0 ? " " + std::to_string(lane.depth) : "");
    }

    void nameEverything()
    {
        if (!trace_.steps().empty() || !trace_.pauses().empty()) name("process", stepsPid_, 0, "steps", 0);
        for (const Rank rank : ranks_)
            if (wanted(rank)) name("process", pidOf(rank), 0, rankName(rank), pidOf(rank));
        for (std::size_t g = 0; g < trace_.gpus().size(); ++g)
            if (const int pid = gpusPid_ + static_cast<int>(g); wanted(trace_.gpus()[g].gpu)) name("process", pid, 0, nameOf(trace_.gpus()[g].gpu), pid);
        for (std::size_t l = 0; l < trace_.laneCount(); ++l) {
            const LaneInfo& lane = trace_.lane(LaneId{l}).info();
            if (wanted(lane.rank))
                name("thread", pidOf(lane.rank), tidOf(LaneId{l}), laneName(lane),
                     static_cast<int>(lane.kind) * 1000 + lane.depth);
        }
    }

    // Steps of an asynchronous schedule overlap; slices of one row must not. So each goes to the first row that is free.
    void steps()
    {
        std::vector<StepSpan> sorted = trace_.steps();
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const StepSpan& a, const StepSpan& b) { return a.span.begin < b.span.begin; });
        std::vector<TimeNs> rowEnd;
        for (const StepSpan& step : sorted) {
            auto row = std::find_if(rowEnd.begin(), rowEnd.end(), [&](TimeNs end) { return end <= step.span.begin; });
            const int tid = stepsTid_ + static_cast<int>(row - rowEnd.begin());
            if (row == rowEnd.end()) {
                rowEnd.push_back(0);
                row = rowEnd.end() - 1;
                name("thread", stepsPid_, tid, "steps", tid - stepsTid_);
            }
            *row = std::max(step.span.begin, step.span.end);
            begin('X');
            print(",\"cat\":\"step\",\"name\":\"step {}\",\"pid\":{},\"tid\":{}", step.step.value, stepsPid_, tid);
            at(step.span.begin);
            micros("dur", *row - step.span.begin);
            print(",\"args\":{{\"step\":{}", step.step.value);
            if (step.loss && std::isfinite(*step.loss)) print(",\"loss\":{}", *step.loss);
            else if (step.loss) print(",\"loss\":\"{}\"", *step.loss); // JSON has no word for nan and inf
            out_ += "}}";
        }
    }

    void pauses()
    {
        if (trace_.pauses().empty()) return;
        if (trace_.steps().empty()) name("thread", stepsPid_, stepsTid_, "steps", 0);
        for (const Interval& pause : trace_.pauses()) {
            const TimeNs end = std::max(pause.begin, pause.end);
            begin('i');
            print(",\"s\":\"g\",\"cat\":\"pause\",\"name\":\"paused\",\"pid\":{},\"tid\":{}", stepsPid_, stepsTid_);
            at(pause.begin);
            out_ += ",\"args\":{\"duration\":";
            appendMicroseconds(out_, end - pause.begin);
            out_ += "}}";
            begin('i');
            print(",\"s\":\"g\",\"cat\":\"pause\",\"name\":\"resumed\",\"pid\":{},\"tid\":{}", stepsPid_, stepsTid_);
            at(end);
            out_ += "}";
        }
    }

    void slices(LaneId id)
    {
        if (!wanted(id)) return;
        const Lane& lane = trace_.lane(id);
        const int pid = pidOf(lane.info().rank);
        const int tid = tidOf(id);
        for (std::uint32_t i = 0; i < lane.size(); ++i) {
            const Slice slice = lane.slice(i);
            const ActionKind kind = slice.action.kind();
            begin('X');
            print(",\"cat\":\"{}\",\"name\":", kind == ActionKind::None ? "other" : kindName(kind));
            string(trace_.sliceName({id, i}));
            print(",\"pid\":{},\"tid\":{}", pid, tid);
            at(slice.begin);
            micros("dur", slice.duration());
            print(",\"args\":{{\"step\":{}", slice.step.value);
            if (kind != ActionKind::None) {
                print(",\"kind\":\"{}\",\"stage\":{}", kindText(kind), slice.action.stage().value);
                if (slice.action.microbatch() != kNoMicroBatch) print(",\"microbatch\":{}", slice.action.microbatch().value);
            }
            // HolisticTraceAnalysis takes for device work what has a stream: the computing, not the communication
            if (lane.info().kind == LaneKind::Compute && isCompute(kind)) print(",\"stream\":{}", tid);
            out_ += "}}";
        }
    }

    void flows(LaneId to)
    {
        for (const Edge& edge : trace_.edgesOfLane(to)) {
            ++flowId_; // the same in every file of a trace
            if (!wanted(to) || !wanted(edge.from.lane)) continue;
            const Slice from = trace_.slice(edge.from);
            const std::string_view kind = edgeKindText(edge.kind);
            begin('s');
            print(",\"cat\":\"{}\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{}", kind, kind, flowId_,
                  pidOf(trace_.lane(edge.from.lane).info().rank), tidOf(edge.from.lane));
            at(std::max(from.begin, from.end - 1)); // inside: at its end the slice is closed, and the arrow would be dropped
            print(",\"args\":{{\"slice\":{}}}}}", edge.from.index);
            begin('f');
            print(",\"bp\":\"e\",\"cat\":\"{}\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{}", kind, kind, flowId_,
                  pidOf(trace_.lane(to).info().rank), tidOf(to));
            at(trace_.slice(edge.to).begin);
            print(",\"args\":{{\"slice\":{}", edge.to.index);
            micros("ready", wrappingSub(edge.ready, base_));
            out_ += "}}";
        }
    }

    // One event for all classes of a rank, whenever one of them changes, so that viewers can stack them.
    void memory(Rank rank)
    {
        if (!wanted(rank)) return;
        struct Cursor {
            const MemorySeries* series;
            std::size_t next = 0;
            Bytes value = 0;
        };
        std::vector<Cursor> cursors;
        for (const MemorySeries& series : trace_.memory())
            if (series.rank == rank) cursors.push_back({&series});
        std::sort(cursors.begin(), cursors.end(),
                  [](const Cursor& a, const Cursor& b) { return a.series->memory < b.series->memory; });
        for (;;) {
            std::optional<TimeNs> now;
            for (const Cursor& c : cursors)
                if (c.next < c.series->time.size())
                    now = std::min(now.value_or(c.series->time[c.next]), c.series->time[c.next]);
            if (!now) return;
            begin('C');
            print(",\"name\":\"memory\",\"pid\":{}", pidOf(rank));
            at(*now);
            out_ += ",\"args\":{";
            for (Cursor& c : cursors) {
                for (; c.next < c.series->time.size() && c.series->time[c.next] == *now; ++c.next)
                    c.value = c.series->value[c.next];
                print("{}\"{}\":{}", &c == &cursors.front() ? "" : ",", memoryClassText(c.series->memory), c.value);
            }
            out_ += "}}";
        }
    }

    void gpuMemory(std::size_t number)
    {
        const GpuSeries& series = trace_.gpus()[number];
        if (!wanted(series.gpu)) return;
        for (std::size_t i = 0; i < series.time.size(); ++i) {
            const GpuMemory& now = series.value[i];
            begin('C');
            print(",\"name\":\"memory of the GPU\",\"pid\":{}", gpusPid_ + static_cast<int>(number));
            at(series.time[i]);
            print(",\"args\":{{\"{}\":{},\"{}\":{},\"{}\":{}}}}}", kGpuMemoryWords[0], now.active, kGpuMemoryWords[1], now.unused(), kGpuMemoryWords[2],
                  now.other());
        }
    }

    const Trace& trace_;
    const std::function<void(std::string_view)>& sink_;
    const ChromeJsonOptions& options_;
    TimeNs base_;
    std::set<Rank> ranks_;
    int stepsPid_ = 0;
    int gpusPid_ = 0; // of the first
    int stepsTid_ = 0;
    int firstTid_ = 0;
    std::string out_;
    bool firstEvent_ = true;
    std::int64_t flowId_ = 0;
};

} // namespace

void writeChromeJson(const Trace& trace, const std::function<void(std::string_view)>& sink, const ChromeJsonOptions& options)
{
    Writer(trace, sink, options).run();
}

} // namespace stagecraft::traces
