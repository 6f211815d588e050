// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/merge_ranks.h"

#include "traces/analysis/rank_clocks.h"
#include "traces/analysis/replicas.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace stagecraft::traces {

namespace {

constexpr std::string_view kPartOfRun = "a part of run ";

bool receives(ActionKind kind) { return kind == ActionKind::RecvForward || kind == ActionKind::RecvBackward; }
bool sends(ActionKind kind) { return kind == ActionKind::SendForward || kind == ActionKind::SendBackward; }

// What travels within a replica, named by who made it.
struct Parcel {
    int replica = 0;
    Step step{};
    bool forward = true;
    Flow flow = Flow::Single;
    Stage maker{};
    MicroBatch microbatch{};
    auto operator<=>(const Parcel&) const = default;
};

Parcel parcelOf(int replica, const Slice& slice)
{
    const Work& work = slice.action.work;
    const bool forward = work.kind == ActionKind::SendForward || work.kind == ActionKind::RecvForward || work.kind == ActionKind::Forward;
    Stage maker = work.stage;
    if (receives(work.kind)) maker = Stage{work.stage.value + (forward ? -1 : 1)};
    return {replica, slice.step, forward, work.flow, maker, work.microbatch};
}

std::set<Rank> ranksOf(const Trace& trace)
{
    std::set<Rank> ranks;
    for (const Lane& lane : trace.lanes()) ranks.insert(lane.info().rank);
    return ranks;
}

class Merger {
public:
    explicit Merger(const std::vector<Trace>& parts)
    {
        for (const Trace& part : parts) {
            const Rank rank = *ranksOf(part).begin();
            parts_.push_back({&part, rank, replicaOf(part.info, rank), RankClock(part.clockReadings()), sendsOf(part), {}});
        }
        std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
    }

    Expected<Trace> run()
    {
        whole_.info = parts_.front().trace->info;
        for (Part& part : parts_) {
            if (const auto found = findTransfers(part); !found.ok()) return inPart(part, found.error());
        }
        findSums();
        for (Part& part : parts_) {
            if (const auto copied = copyLanes(part); !copied.ok()) return inPart(part, copied.error());
        }
        layTransfers();
        std::vector<Edge> edges;
        for (const Part& part : parts_)
            if (const auto taken = takeEdges(part, edges); !taken.ok()) return inPart(part, taken.error());
        joinSums(edges);
        giveEdges(std::move(edges));
        copyMemory();
        joinGpus();
        joinSteps();
        joinPauses();
        joinNotes();
        return std::move(whole_);
    }

private:
    struct Part {
        const Trace* trace; // not owned
        Rank rank{};
        int replica = 0;
        RankClock clock;
        std::string sends; // the name of its lanes for transfers
        std::map<LaneId, LaneId> lanes; // in the whole; transfers have none
    };
    struct Sent {
        const Part* part;
        Slice slice;
    };
    using SumKey = std::tuple<Step, Stage, std::size_t>; // the how many-th
    struct Received {
        SliceRef consumer{}; // in the whole
        TimeNs at = 0;
    };

    static std::string sendsOf(const Trace& part)
    {
        for (const Lane& lane : part.lanes())
            if (lane.info().kind == LaneKind::Transfer) return lane.info().name;
        return fmt::format("rank {} sends", ranksOf(part).begin()->value);
    }

    static Error inPart(const Part& part, const Error& error) { return error.in(fmt::format("the part of rank {}", part.rank.value)); }

    static Slice onTrace(const Part& part, Slice slice)
    {
        slice.begin = part.clock.onTrace(slice.begin);
        slice.end = part.clock.onTrace(slice.end);
        return slice;
    }

    // Sends, and when what they sent was there.
    Expected<void> findTransfers(const Part& part)
    {
        for (const Lane& lane : part.trace->lanes()) {
            if (lane.info().kind != LaneKind::Transfer) continue;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const Slice slice = onTrace(part, lane.slice(i));
                if (const auto fits = checkBounds(slice); !fits.ok()) return fits;
                if (sends(slice.action.kind())) sent_.push_back({&part, slice});
                else if (receives(slice.action.kind())) arrived_[parcelOf(part.replica, slice)] = slice.end;
            }
        }
        return {};
    }

    // A reading of a clock that is not one could put what ran later before what ran earlier.
    Expected<void> copyLanes(Part& part)
    {
        for (std::size_t l = 0; l < part.trace->laneCount(); ++l) {
            const Lane& lane = part.trace->lane(LaneId{l});
            if (lane.info().kind == LaneKind::Transfer) continue;
            const LaneId id = whole_.addLane(lane.info());
            part.lanes[LaneId{l}] = id;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                Slice slice = onTrace(part, lane.slice(i));
                if (const auto fits = checkBounds(slice); !fits.ok()) return fits;
                if (!whole_.lane(id).canAppend(slice))
                    return Error{fmt::format("by the readings of its clock {} comes before what ran before it", toText(slice.action))};
                if (slice.text != TextId{}) slice.text = whole_.intern(part.trace->text(slice.text));
                const auto sum = sumOf_.find({part.rank, SliceRef{LaneId{l}, static_cast<std::uint32_t>(i)}});
                // it could begin nowhere before the last had given its part, also where a rank can tell its own alone
                if (sum != sumOf_.end()) slice.begin = std::clamp(lastGiven_.at(sum->second), slice.begin, slice.end);
                const SliceRef ref = whole_.append(id, slice);
                if (sum != sumOf_.end()) joined_[ref] = sum->second;
                if (makes(slice.action.kind())) made_[parcelOf(part.replica, slice)] = ref;
            }
        }
        transferLanes_[part.rank].push_back(
            whole_.addLane({.rank = part.rank, .kind = LaneKind::Transfer, .name = part.sends}));
        return {};
    }

    static bool makes(ActionKind kind)
    {
        return kind == ActionKind::Forward || kind == ActionKind::Backward || kind == ActionKind::InputGrad;
    }

    // Hand-offs that are under way at the same time go to lanes of their own.
    void layTransfers()
    {
        std::stable_sort(sent_.begin(), sent_.end(), [](const Sent& a, const Sent& b) { return a.slice.begin < b.slice.begin; });
        for (Sent& each : sent_) {
            if (const auto arrival = arrived_.find(parcelOf(each.part->replica, each.slice)); arrival != arrived_.end()) {
                if (arrival->second < each.slice.begin) {
                    ++early_;
                    earliest_ = std::max(earliest_, each.slice.begin - arrival->second);
                }
                each.slice.end = std::max(arrival->second, each.slice.begin);
            }
            std::vector<LaneId>& depths = transferLanes_[each.part->rank];
            const auto free = std::find_if(depths.begin(), depths.end(), [&](LaneId id) { return whole_.lane(id).canAppend(each.slice); });
            const LaneId id = free != depths.end() ? *free
                                                   : depths.emplace_back(whole_.addLane({.rank = each.part->rank,
                                                                                         .kind = LaneKind::Transfer,
                                                                                         .depth = static_cast<std::int32_t>(depths.size()),
                                                                                         .name = each.part->sends}));
            whole_.append(id, each.slice);
        }
    }

    Expected<void> takeEdges(const Part& part, std::vector<Edge>& edges) const
    {
        for (const auto& [own, id] : part.lanes)
            for (const Edge& edge : part.trace->edgesOfLane(own)) {
                const SliceRef to{id, edge.to.index};
                const TimeNs ready = part.clock.onTrace(edge.ready);
                const Slice from = part.trace->slice(edge.from);
                if (receives(from.action.kind())) {
                    if (const auto maker = made_.find(parcelOf(part.replica, from)); maker != made_.end())
                        edges.push_back({EdgeKind::Data, maker->second, to, std::max(ready, whole_.slice(maker->second).end)});
                } else if (const auto lane = part.lanes.find(edge.from.lane); lane != part.lanes.end()) {
                    edges.push_back({edge.kind, {lane->second, edge.from.index}, to, ready});
                } else {
                    return Error{fmt::format("{} waits for {}, which brings nothing to this rank", part.trace->sliceName(edge.to),
                                             part.trace->sliceName(edge.from))};
                }
            }
        return {};
    }

    // The k-th sum of a stage in a step is the same one on all ranks that hold it; where events were lost nobody knows which.
    void findSums()
    {
        if (replicasOf(whole_.info) == 1) return;
        struct Given {
            const Part* part;
            Edge edge;
        };
        std::map<std::pair<Step, Stage>, std::map<Rank, std::vector<Given>>> found;
        for (const Part& part : parts_)
            for (std::size_t l = 0; l < part.trace->laneCount(); ++l)
                for (const Edge& edge : part.trace->edgesOfLane(LaneId{l})) {
                    const Slice sum = part.trace->slice(edge.to);
                    const ActionKind kind = sum.action.kind();
                    if (kind == ActionKind::AllReduce || kind == ActionKind::ReduceGrad)
                        found[{sum.step, sum.action.stage()}][part.rank].push_back({&part, edge});
                }
        for (auto& [which, byRank] : found) {
            const std::size_t count = byRank.begin()->second.size();
            if (!std::ranges::all_of(byRank, [&](const auto& each) { return each.second.size() == count; })) continue;
            for (auto& [rank, all] : byRank) {
                std::ranges::stable_sort(all, {}, [](const Given& each) { return each.edge.to; });
                for (std::size_t k = 0; k < count; ++k) {
                    const SumKey key{which.first, which.second, k};
                    sumOf_[{rank, all[k].edge.to}] = key;
                    TimeNs& last = lastGiven_.try_emplace(key, std::numeric_limits<TimeNs>::min()).first->second;
                    last = std::max(last, all[k].part->clock.onTrace(all[k].edge.ready));
                }
            }
        }
    }

    void joinSums(std::vector<Edge>& edges) const
    {
        std::map<SumKey, std::vector<Edge*>> joined;
        for (Edge& edge : edges)
            if (const auto sum = joined_.find(edge.to); sum != joined_.end()) joined[sum->second].push_back(&edge);
        for (const auto& [which, members] : joined) {
            const Edge last = **std::ranges::max_element(members, {}, &Edge::ready);
            for (Edge* each : members) {
                each->from = last.from;
                each->ready = std::min(last.ready, whole_.slice(each->to).begin); // clocks are known to a bound alone
            }
        }
    }

    void giveEdges(std::vector<Edge> edges)
    {
        std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
        for (const Edge& edge : edges) whole_.addEdge(edge);
    }

    void copyMemory()
    {
        for (const Part& part : parts_)
            for (const MemorySeries& series : part.trace->memory()) {
                const std::size_t id = whole_.memoryIndex(series.rank, series.memory);
                for (std::size_t i = 0; i < series.time.size(); ++i) whole_.addMemory(id, part.clock.onTrace(series.time[i]), series.value[i]);
            }
    }

    // Processes that share a GPU each have a reserve of their own there, and each reads what is used by all.
    void joinGpus()
    {
        struct Source {
            const Part* part;
            const GpuSeries* series;
        };
        std::map<std::tuple<std::string, std::string, std::int32_t>, std::vector<Source>> cards;
        for (const Part& part : parts_)
            for (const GpuSeries& series : part.trace->gpus()) {
                const Gpu& gpu = series.gpu;
                cards[{gpu.host, gpu.bus, gpu.bus.empty() ? gpu.number : 0}].push_back({&part, &series});
            }
        struct Reading {
            TimeNs time = 0;
            std::size_t source = 0;
            GpuMemory memory;
        };
        for (const auto& [key, sources] : cards) {
            Gpu card = sources.front().series->gpu;
            std::set<Rank> ranks;
            std::vector<Reading> readings;
            for (std::size_t s = 0; s < sources.size(); ++s) {
                const GpuSeries& series = *sources[s].series;
                ranks.insert(series.gpu.ranks.begin(), series.gpu.ranks.end());
                for (std::size_t i = 0; i < series.time.size(); ++i) readings.push_back({sources[s].part->clock.onTrace(series.time[i]), s, series.value[i]});
            }
            card.ranks.assign(ranks.begin(), ranks.end());
            std::stable_sort(readings.begin(), readings.end(), [](const Reading& a, const Reading& b) { return a.time < b.time; });
            const GpuId id = whole_.addGpu(std::move(card));
            std::vector<GpuMemory> now(sources.size());
            Bytes used = 0; // as one of them heard it last: each of their points has it, also those that are about its own reserve
            for (const Reading& reading : readings) {
                if (reading.memory.used != now[reading.source].used) used = reading.memory.used;
                now[reading.source] = reading.memory;
                GpuMemory sum;
                for (const GpuMemory& own : now) {
                    sum.active += own.active;
                    sum.reserved += own.reserved;
                }
                sum.used = std::max(used, sum.reserved);
                whole_.addGpuMemory(id, reading.time, sum);
            }
        }
    }

    // From where the first rank begins to where the last one ends.
    void joinSteps()
    {
        struct Joined {
            StepSpan step;
            std::size_t parts = 0;
        };
        std::map<Step, Joined> joined;
        for (const Part& part : parts_)
            for (const StepSpan& own : part.trace->steps()) {
                const Interval span{part.clock.onTrace(own.span.begin), part.clock.onTrace(own.span.end)};
                const auto [place, first] = joined.try_emplace(own.step, Joined{{own.step, span, own.loss}, 0});
                StepSpan& step = place->second.step;
                if (!first) step.span = {std::min(step.span.begin, span.begin), std::max(step.span.end, span.end)};
                if (!step.loss) step.loss = own.loss;
                ++place->second.parts;
            }
        for (const auto& [number, each] : joined)
            if (each.parts == parts_.size()) whole_.addStep(each.step);
    }

    // Ranks pause one after the other; the run's pause is from the first to the last.
    void joinPauses()
    {
        std::vector<Interval> all;
        for (const Part& part : parts_)
            for (const Interval& pause : part.trace->pauses()) all.push_back({part.clock.onTrace(pause.begin), part.clock.onTrace(pause.end)});
        std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
        std::vector<Interval> joined;
        for (const Interval& pause : all) {
            if (!joined.empty() && pause.begin <= joined.back().end) joined.back().end = std::max(joined.back().end, pause.end);
            else joined.push_back(pause);
        }
        for (const Interval& pause : joined) whole_.addPause(pause);
    }

    void joinNotes()
    {
        std::set<std::string> said;
        std::set<Rank> missing;
        for (int r = 0; r < whole_.info.ranks; ++r) missing.insert(Rank{r});
        for (const Part& part : parts_) {
            missing.erase(part.rank);
            for (const std::string& note : part.trace->notes())
                if (said.insert(note).second) whole_.addNote(note);
            for (const std::string& text : part.trace->information())
                if (!text.starts_with(kPartOfRun) && said.insert(text).second) whole_.addInformation(text);
            whole_.addLostEvents(part.trace->lostEvents());
            for (const ClockReading& reading : part.trace->clockReadings()) whole_.addClockReading(reading);
        }
        for (const Rank rank : missing) whole_.addNote(fmt::format("the part of rank {} is missing", rank.value));
        if (early_ > 0)
            whole_.addNote(fmt::format("{} came before they were sent, by up to {}: the clocks are not known better; they are shown without length",
                                       counted(early_, "hand-off"), formatDuration(earliest_)));
    }

    std::vector<Part> parts_; // by rank
    Trace whole_;
    std::map<Parcel, SliceRef> made_;
    std::map<Parcel, TimeNs> arrived_;
    std::map<std::pair<Rank, SliceRef>, SumKey> sumOf_; // in the rank's part
    std::map<SumKey, TimeNs> lastGiven_;
    std::map<SliceRef, SumKey> joined_; // in the whole
    std::vector<Sent> sent_;
    std::map<Rank, std::vector<LaneId>> transferLanes_; // by depth
    std::int64_t early_ = 0;
    TimeNs earliest_ = 0;
};

// Where a part was measured is its own; all else says of which run it is.
bool samePlan(TraceInfo a, const TraceInfo& b)
{
    a.host = b.host;
    return a == b;
}

// Nothing where the two can be of one run.
std::string_view whyOfTwoRuns(const Trace& a, const Trace& b)
{
    if (!samePlan(a.info, b.info)) return "their plans differ";
    if (runOfPart(a) != runOfPart(b)) return "each run marks its parts, and these have different marks";
    return {};
}

} // namespace

bool isRankPart(const Trace& trace) { return trace.info.ranks > 1 && ranksOf(trace).size() == 1; }

std::string partOfRun(std::string_view identity) { return fmt::format("{}{}", kPartOfRun, identity); }

std::string_view runOfPart(const Trace& part)
{
    for (const std::string_view text : part.information())
        if (text.starts_with(kPartOfRun)) return text.substr(kPartOfRun.size());
    return {};
}

Expected<Trace> mergeRanks(const std::vector<Trace>& parts, const std::vector<std::string>& names)
{
    if (parts.empty()) return Error{"there is no part to merge"};
    std::map<Rank, std::size_t> seen;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        if (!isRankPart(parts[p]))
            return Error{fmt::format("only the parts of ranks are merged, and a trace of {} is whole", counted(ranksOf(parts[p]).size(), "rank"))};
        const auto nameOf = [&](std::size_t part) {
            return part < names.size() ? names[part] : fmt::format("the part of rank {}", ranksOf(parts[part]).begin()->value);
        };
        if (const std::string_view why = whyOfTwoRuns(parts.front(), parts[p]); !why.empty())
            return Error{fmt::format("{} and {} are of different runs: {}. Give the parts that one run has left; those of an older one may lie beside them",
                                     nameOf(0), nameOf(p), why)};
        const Rank rank = *ranksOf(parts[p]).begin();
        if (const auto [other, first] = seen.try_emplace(rank, p); !first)
            return Error{fmt::format("{} and {} are both of rank {}; give one part of each rank", nameOf(other->second), nameOf(p), rank.value)};
    }
    return Merger(parts).run();
}

} // namespace stagecraft::traces
