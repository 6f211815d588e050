// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stagecraft::engine {
namespace {

struct Generator {
    ScheduleFamily family;
    Schedule (*generate)(const ScheduleRequest&);
    Expected<void> (*check)(const ScheduleRequest&) = nullptr; // beyond ranges and chunk counts
};

constexpr int kAnyChunks = std::numeric_limits<int>::max();

const std::vector<Generator>& generators()
{
    static const std::vector<Generator> all{
        {{"naive", "Naive", "One micro-batch at a time goes through all stages and back; one rank works, the others wait.",
          "any number of ranks and micro-batches; one chunk per rank", "sequential model parallelism", 1, 1},
         &naiveSchedule},
        {{"gpipe", "GPipe",
          "All forwards, then all backwards: every rank keeps the activations of all micro-batches.",
          "any number of ranks and micro-batches; one chunk per rank",
          "Huang et al. 2018, arXiv 1811.06965; PyTorch ScheduleGPipe", 1, 1},
         &gpipeSchedule},
        {{"1f1b", "1F1B",
          "After a short warm-up one forward, one backward: the bubble of GPipe, but at most p micro-batches in flight.",
          "any number of ranks and micro-batches; one chunk per rank",
          "PipeDream-Flush, Narayanan et al. 2020, arXiv 2006.09503; DAPPLE, arXiv 2007.01045", 1, 1},
         &oneFOneBSchedule},
        {{"interleaved", "Interleaved 1F1B",
          "Each rank holds several chunks of the model: the bubble shrinks by their number, transfers grow by it.",
          "two chunks per rank or more; m a multiple of max(1, m div p)",
          "Narayanan et al. 2021, arXiv 2104.04473; PyTorch ScheduleInterleaved1F1B", 2, kAnyChunks},
         &interleavedSchedule, &checkInterleaved},
    };
    return all;
}

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

Expected<void> checkRanges(const ScheduleRequest& r)
{
    const auto outside = [&](std::string_view what, int value, long long most) {
        return Error{fmt::format("schedule {}: {} {} is not allowed; 1 to {}", r.name, value, what, most)};
    };
    if (r.ranks < 1 || r.ranks > kMaxStages) return outside("ranks", r.ranks, kMaxStages);
    if (r.chunks < 1 || r.chunks > kMaxStages / r.ranks)
        return outside("chunks per rank", r.chunks, kMaxStages / r.ranks);
    const long long most = kMaxActions / (2LL * r.ranks * r.chunks);
    if (r.microbatches < 1 || r.microbatches > most) return outside("micro-batches", r.microbatches, most);
    return {};
}

Expected<void> checkChunks(const ScheduleRequest& r, const ScheduleFamily& family)
{
    if (r.chunks >= family.minChunks && r.chunks <= family.maxChunks) return {};
    if (family.maxChunks == 1)
        return Error{fmt::format("schedule {}: {} chunks per rank are not allowed, it gives each rank one; use 1 chunk, or "
                                 "interleaved",
                                 r.name, r.chunks)};
    return Error{fmt::format("schedule {}: {} chunk per rank is not allowed, it is made of several; use {} chunks, or 1f1b",
                             r.name, r.chunks, family.minChunks)};
}

} // namespace

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
    if (Expected<void> ranges = checkRanges(request); !ranges.ok()) return ranges;
    if (Expected<void> chunks = checkChunks(request, known->family); !chunks.ok()) return chunks;
    return known->check ? known->check(request) : Expected<void>{};
}

Expected<Schedule> generate(const ScheduleRequest& request)
{
    if (Expected<void> legal = checkRequest(request); !legal.ok()) return legal.error();
    Schedule schedule = findGenerator(request.name)->generate(request);
    if (request.stop.stop_requested()) return Error{"the making of the schedule was stopped"}; // it may be a part
    return schedule;
}

std::vector<Rank> loopPlacement(int ranks, int chunks)
{
    std::vector<Rank> placement;
    placement.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(chunks));
    for (int g = 0; g < ranks * chunks; ++g) placement.emplace_back(g % ranks);
    return placement;
}

Schedule emptySchedule(const ScheduleRequest& request, std::size_t perRank)
{
    Schedule schedule{request.name, request.ranks, request.chunks, request.microbatches,
                      loopPlacement(request.ranks, request.chunks), {}};
    schedule.order.resize(static_cast<std::size_t>(request.ranks));
    for (std::vector<Action>& list : schedule.order) list.reserve(perRank);
    return schedule;
}

std::size_t Schedule::actionCount() const
{
    std::size_t count = 0;
    for (const std::vector<Action>& list : order) count += list.size();
    return count;
}

} // namespace stagecraft::engine
