// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/device_time.h"

#include "traces/analysis/interval_set.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

namespace stagecraft::traces {

namespace {

constexpr Interval kAlways{std::numeric_limits<TimeNs>::min(), std::numeric_limits<TimeNs>::max()};

// What a text says, asked for once: a trace has few texts and many slices.
class Texts {
public:
    explicit Texts(const Trace& trace) : trace_(trace) {}
    enum class Kind : std::uint8_t { Kernel, Copy, Nccl };
    Kind kind(TextId id)
    {
        const auto [known, isNew] = kinds_.try_emplace(id);
        if (isNew) known->second = isCopyName(trace_.text(id)) ? Kind::Copy : isNcclName(trace_.text(id)) ? Kind::Nccl : Kind::Kernel;
        return known->second;
    }
    std::optional<StreamGapCause> cause(TextId id)
    {
        const auto [known, isNew] = causes_.try_emplace(id);
        if (isNew) known->second = streamGapCauseOf(trace_.text(id));
        return known->second;
    }

private:
    const Trace& trace_;
    std::unordered_map<TextId, Kind> kinds_;
    std::unordered_map<TextId, std::optional<StreamGapCause>> causes_;
};

struct Works {
    std::vector<Interval> kernels;
    std::vector<Interval> copies;
    std::vector<Interval> nccl;

    std::vector<Interval>& of(Texts::Kind kind) { return kind == Texts::Kind::Copy ? copies : kind == Texts::Kind::Nccl ? nccl : kernels; }
};

void addWorks(const Lane& lane, Interval within, Texts& texts, Works& works)
{
    for (std::size_t i = lane.firstEndingAfter(within.begin); i < lane.size() && lane.begin(i) < within.end; ++i)
        works.of(texts.kind(lane.text(i))).push_back({lane.begin(i), lane.end(i)});
}

// Kernels of the GPUs that the rank uses, whichever rank launched them; of a lane that names no GPU the rank's own.
std::vector<Interval> kernelsBeside(const Trace& trace, Rank rank, Interval within, Texts& texts)
{
    std::set<int> gpus;
    for (const Lane& lane : trace.lanes())
        if (const std::optional<int> gpu = gpuOf(lane.info()); lane.info().rank == rank && holdsStreamWork(lane.info()) && gpu) gpus.insert(*gpu);
    Works works;
    for (const Lane& lane : trace.lanes()) {
        if (!holdsStreamWork(lane.info())) continue;
        const std::optional<int> gpu = gpuOf(lane.info());
        if (lane.info().rank == rank || (gpu && gpus.contains(*gpu))) addWorks(lane, within, texts, works);
    }
    return std::move(works.kernels);
}

DeviceTime split(const Trace& trace, Rank rank, const IntervalSet& blocks, Interval copiesWithin, Texts& texts)
{
    const Interval within = blocks.empty() ? Interval{} : Interval{std::min(blocks.front().begin, copiesWithin.begin), std::max(blocks.back().end, copiesWithin.end)};
    Works works;
    struct Gaps {
        const Lane* lane;
        TimeNs kernels; // on its stream
    };
    std::vector<Gaps> gaps;
    std::map<std::string_view, TimeNs> byStream;
    for (const Lane& lane : trace.lanes()) {
        if (lane.info().rank != rank) continue;
        if (holdsGaps(lane.info())) gaps.push_back({&lane, 0});
        if (!holdsStreamWork(lane.info())) continue;
        const std::size_t before = works.kernels.size();
        addWorks(lane, within, texts, works);
        for (std::size_t i = before; i < works.kernels.size(); ++i) byStream[streamName(lane.info())] += works.kernels[i].length();
    }
    for (Gaps& each : gaps)
        if (const auto known = byStream.find(streamName(each.lane->info())); known != byStream.end()) each.kernels = known->second;
    std::stable_sort(gaps.begin(), gaps.end(), [](const Gaps& a, const Gaps& b) { return a.kernels > b.kernels; });

    DeviceTime time{.span = lengthOf(blocks)};
    const IntervalSet copies = unionOf(std::move(works.copies));
    IntervalSet left = blocks; // of which nothing is said yet
    const auto take = [&left](const IntervalSet& set) {
        const TimeNs before = lengthOf(left);
        left = differenceOf(left, set);
        return before - lengthOf(left);
    };
    time.kernels = take(unionOf(std::move(works.kernels)));
    time.copies = take(copies);
    time.exchanges = take(unionOf(std::move(works.nccl)));
    for (const Gaps& stream : gaps) {
        std::array<std::vector<Interval>, kStreamGapCauses.size()> byCause;
        for (std::size_t i = stream.lane->firstEndingAfter(within.begin); i < stream.lane->size() && stream.lane->begin(i) < within.end; ++i)
            if (const std::optional<StreamGapCause> cause = texts.cause(stream.lane->text(i)))
                byCause[static_cast<std::size_t>(*cause)].push_back({stream.lane->begin(i), stream.lane->end(i)});
        for (std::size_t c = 0; c < byCause.size(); ++c) time.gaps[c] += take(unionOf(std::move(byCause[c])));
    }
    time.notKnown = lengthOf(left);

    const IntervalSet copying = intersectionOf(copies, unionOf({copiesWithin}));
    time.copying = lengthOf(copying);
    if (time.copying > 0) time.hidden = lengthOf(intersectionOf(copying, unionOf(kernelsBeside(trace, rank, within, texts))));
    return time;
}

bool hasKernels(const Trace& trace, Rank rank)
{
    return std::any_of(trace.lanes().begin(), trace.lanes().end(),
                       [&](const Lane& lane) { return lane.info().rank == rank && !lane.empty() && holdsKernels(lane.info()); });
}

} // namespace

std::optional<DeviceTime> deviceTimeOf(const Trace& trace, SliceRef block)
{
    const Rank rank = trace.lane(block.lane).info().rank;
    if (!hasKernels(trace, rank)) return std::nullopt;
    const Slice slice = trace.slice(block);
    const Interval span{slice.begin, slice.end};
    Texts texts(trace);
    DeviceTime time = split(trace, rank, unionOf({span}), span, texts);
    time.nccl = ncclTimeOf(trace, rank, span);
    return time;
}

std::vector<RankDeviceTime> deviceTimes(const Trace& trace, const std::stop_token& stop)
{
    std::set<Rank> ranks;
    for (const Lane& lane : trace.lanes()) ranks.insert(lane.info().rank);
    std::vector<RankDeviceTime> out;
    Texts texts(trace);
    std::map<Rank, NcclTime> nccl = ncclTimes(trace);
    for (const Rank rank : ranks) {
        if (stop.stop_requested()) return out;
        if (!hasKernels(trace, rank)) continue;
        std::vector<Interval> blocks;
        for (const Lane& lane : trace.lanes())
            for (std::size_t i = 0; lane.info().kind == LaneKind::Compute && lane.info().rank == rank && i < lane.size(); ++i)
                if (isCompute(lane.action(i).kind())) blocks.push_back({lane.begin(i), lane.end(i)});
        const IntervalSet apart = unionOf(std::move(blocks));
        if (apart.empty()) continue;
        out.push_back({rank, split(trace, rank, apart, kAlways, texts)});
        out.back().time.nccl = nccl[rank];
    }
    return out;
}

} // namespace stagecraft::traces
