// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/families.h"
#include "engine/schedule/offload.h"
#include "engine/schedule/placement.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stagecraft::engine {
namespace {

const Generator* findGenerator(std::string_view name)
{
    const auto& all = generators();
    const auto known = std::find_if(all.begin(), all.end(), [&](const Generator& g) { return g.family.name == name; });
    return known == all.end() ? nullptr : &*known;
}

std::string knownNames()
{
    std::string names;
    for (const Generator& g : generators()) names += (names.empty() ? "" : ", ") + g.family.name;
    return names;
}

Expected<void> checkRanges(const ScheduleRequest& r, const ScheduleFamily& family)
{
    const auto outside = [&](std::string_view what, int value, long long most) {
        return Error{fmt::format("schedule {}: {} {} is not allowed; 1 to {}", r.name, value, what, most)};
    };
    if (r.ranks < 1 || r.ranks > kMaxStages / family.minChunks) return outside("ranks", r.ranks, kMaxStages / family.minChunks);
    if (r.chunks < 1 || r.chunks > kMaxStages / r.ranks)
        return outside("chunks per rank", r.chunks, kMaxStages / r.ranks);
    const long long wholeMost = kMaxActions / (2LL * r.ranks * r.chunks); // micro-batches, or slices of one
    const long long mostSlices = std::min<long long>(kMaxSlices, wholeMost);
    if (r.slices < 1 || r.slices > mostSlices) return outside("slices of a sequence", r.slices, mostSlices);
    const long long most = wholeMost / r.slices;
    if (r.microbatches < 1 || r.microbatches > most) return outside("micro-batches", r.microbatches, most);
    return {};
}

ScheduleRequest with(ScheduleRequest request, int ScheduleRequest::*number, int value)
{
    request.*number = value;
    return request;
}

// "1 chunk, or ", if the request can be that; else nothing, for something else is wrong as well.
std::string orElse(std::string offered, const ScheduleRequest& request) { return checkRequest(request).ok() ? std::move(offered) + ", or " : ""; }

Expected<void> checkChunks(const ScheduleRequest& r, const ScheduleFamily& family)
{
    if (r.chunks >= family.minChunks && r.chunks <= family.maxChunks) return {};
    if (family.maxChunks == 1)
        return Error{fmt::format("schedule {}: {} chunks per rank are not allowed, it gives each rank one; use {}interleaved", r.name,
                                 r.chunks, orElse("1 chunk", with(r, &ScheduleRequest::chunks, 1)))};
    const bool fixed = family.minChunks == family.maxChunks;
    const std::string offered = orElse(fmt::format("{} chunks", family.minChunks), with(r, &ScheduleRequest::chunks, family.minChunks));
    return Error{fmt::format("schedule {}: {} per rank {} not allowed, it {}; use {}{}", r.name, traces::counted(r.chunks, "chunk"),
                             r.chunks == 1 ? "is" : "are",
                             fixed ? fmt::format("gives each rank {}", family.minChunks) : "is made of several", offered,
                             r.chunks == 1 ? "1f1b" : "interleaved")};
}

} // namespace

std::string offer(ScheduleRequest request, int ScheduleRequest::*number, std::initializer_list<int> values, std::string_view otherwise)
{
    std::string text;
    for (const int value : values) {
        request.*number = value;
        if (checkRequest(request).ok()) text += (text.empty() ? "; use " : " or ") + std::to_string(value);
    }
    return text.empty() ? std::string(otherwise) : text;
}

const std::vector<Generator>& generators()
{
    // a line each, so that a family is added without touching another's
    static const std::vector<Generator> all{
        naive(),
        gpipe(),
        gpipeLifo(),
        oneFOneB(),
        eagerOneFOneB(),
        bPipe(),
        interleaved(),
        loopedBfs(),
        zbH1(),
        zbH2(),
        zbAuto(),
        interleavedZb(),
        zbV(),
        zbVAuto(),
        vHalf(),
        vMin(),
        oneFOneBV(),
        dualPipe(),
        dualPipeV(),
        hanayo(),
        chimera(),
        seq1F1B(),
        pipeDream(),
        pipeDream2Bw(),
        forwardOnly(),
    };
    return all;
}

const std::vector<ScheduleFamily>& scheduleFamilies()
{
    static const std::vector<ScheduleFamily> families = [] {
        std::vector<ScheduleFamily> list;
        for (const Generator& g : generators()) list.push_back(g.family);
        return list;
    }();
    return families;
}

const ScheduleFamily* findFamily(std::string_view name)
{
    for (const ScheduleFamily& family : scheduleFamilies())
        if (family.name == name) return &family;
    return nullptr;
}

Expected<void> checkRequest(const ScheduleRequest& request)
{
    const Generator* known = findGenerator(request.name);
    if (!known) return Error{fmt::format("schedule \"{}\" is unknown; known are {}", request.name, knownNames())};
    if (Expected<void> ranges = checkRanges(request, known->family); !ranges.ok()) return ranges;
    if (Expected<void> chunks = checkChunks(request, known->family); !chunks.ok()) return chunks;
    if (request.group != 0 && !known->family.goesInGroups)
        return Error{fmt::format("schedule {}: groups of {} micro-batches are not allowed, it does not go in groups; use {}interleaved",
                                 request.name, request.group, orElse("0", with(request, &ScheduleRequest::group, 0)))};
    if (request.slices > 1 && !known->family.cutsSequences)
        return Error{fmt::format("schedule {}: {} slices of a sequence are not allowed, it takes sequences whole; use {}seq1f1b",
                                 request.name, request.slices, orElse("1 slice", with(request, &ScheduleRequest::slices, 1)))};
    if (request.concatenation != Concatenation::Direct && !known->family.concatenates)
        return Error{fmt::format("schedule {}: it is not made of units that could be concatenated with {}; use direct, or chimera", request.name,
                                 request.concatenation == Concatenation::Doubling ? "doubled forwards" : "halved backwards")};
    if (request.verticalSync && !known->family.stashesVersions)
        return Error{fmt::format("schedule {}: vertical sync is of schedules that keep the weights of each forward, and it does not; use pipedream, "
                                 "or leave it out",
                                 request.name)};
    if (!(request.offload >= 0 && request.offload <= 1))
        return Error{fmt::format("schedule {}: a share of {:g} to offload is not allowed; 0 to 1", request.name, request.offload)};
    if (request.offload > 0 && !known->family.takesOffload)
        return Error{fmt::format("schedule {}: a share of {:g} to offload is not allowed, it {}; use 0, or 1f1b", request.name, request.offload,
                                 request.name == "bpipe" ? "moves activations itself" : "keeps none for a backward")};
    return known->check ? known->check(request) : Expected<void>{};
}

Expected<Schedule> generate(const ScheduleRequest& request)
{
    if (Expected<void> legal = checkRequest(request); !legal.ok()) return legal.error();
    Schedule schedule = findGenerator(request.name)->generate(request);
    if (request.stop.stop_requested()) return Error{"the making of the schedule was stopped"}; // it may be a part
    return request.offload > 0 ? withOffload(std::move(schedule), request.offload) : schedule;
}

std::vector<Rank> loopPlacement(int ranks, int chunks)
{
    std::vector<Rank> placement;
    placement.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(chunks));
    for (int g = 0; g < ranks * chunks; ++g) placement.emplace_back(g % ranks);
    return placement;
}

std::vector<Rank> placementOf(std::string_view schedule, int ranks, int chunks)
{
    const Generator* known = findGenerator(schedule);
    return known ? known->placement(ranks, chunks) : loopPlacement(ranks, chunks);
}

std::vector<Rank> wavePlacement(int ranks, int chunks)
{
    std::vector<Rank> placement = loopPlacement(ranks, chunks);
    for (int chunk = 1; chunk < chunks; chunk += 2)
        std::reverse(placement.begin() + chunk * ranks, placement.begin() + (chunk + 1) * ranks);
    return placement;
}

Schedule emptySchedule(const ScheduleRequest& request, std::vector<Rank> placement, std::size_t perRank)
{
    Schedule schedule{request.name, request.ranks, request.chunks, request.microbatches, std::move(placement), {}};
    schedule.slices = request.slices;
    schedule.order.resize(static_cast<std::size_t>(request.ranks));
    for (std::vector<Action>& list : schedule.order) list.reserve(perRank);
    return schedule;
}

Schedule emptySchedule(const ScheduleRequest& request, std::size_t perRank)
{
    return emptySchedule(request, loopPlacement(request.ranks, request.chunks), perRank);
}

std::vector<Flow> Schedule::flows() const
{
    return twoDirections() ? std::vector{Flow::Down, Flow::Up} : std::vector{Flow::Single};
}

bool Schedule::inference() const
{
    const auto comesBack = [](const Action& action) {
        return (action.kind() >= ActionKind::Backward && action.kind() <= ActionKind::WeightGrad) || action.kind() == ActionKind::Overlap;
    };
    return std::none_of(order.begin(), order.end(),
                        [&](const std::vector<Action>& list) { return std::any_of(list.begin(), list.end(), comesBack); });
}

std::size_t Schedule::actionCount() const
{
    std::size_t count = 0;
    for (const std::vector<Action>& list : order) count += list.size();
    return count;
}

} // namespace stagecraft::engine
