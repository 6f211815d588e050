// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/memory_operations.h"

#include <array>
#include <charconv>

namespace stagecraft::traces {

namespace {

constexpr std::string_view kAllocate = "allocate ";
constexpr std::string_view kRelease = "release ";
constexpr std::string_view kAsync = " asynchronously";
constexpr std::string_view kFor = " for ";
constexpr std::string_view kLane = " memory operations";
// By MemoryPlace.
constexpr std::array<std::string_view, 5> kPlaces{"", " of pinned memory of the host", " of the host", " of managed memory", " of arrays"};

struct SizeUnit {
    std::string_view text;
    Bytes bytes;
};
constexpr std::array<SizeUnit, 4> kUnits{{{" GiB", Bytes{1} << 30}, {" MiB", Bytes{1} << 20}, {" KiB", Bytes{1} << 10}, {" B", 1}}};

// To the byte, so that it can be read again: in the largest unit of which it is a whole number.
std::string wholeSize(Bytes bytes)
{
    for (const SizeUnit& unit : kUnits)
        if (bytes % unit.bytes == 0 && (bytes != 0 || unit.bytes == 1)) return std::to_string(bytes / unit.bytes).append(unit.text);
    return {};
}

bool take(std::string_view& text, std::string_view part)
{
    if (!text.starts_with(part)) return false;
    text.remove_prefix(part.size());
    return true;
}

std::optional<Bytes> takeSize(std::string_view& text)
{
    Bytes number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    for (const SizeUnit& unit : kUnits)
        if (take(text, unit.text)) return number <= INT64_MAX / unit.bytes ? std::optional(number * unit.bytes) : std::nullopt;
    return std::nullopt;
}

template <class Visit>
void forEachOperation(const Lane& lane, const Trace& trace, Visit&& visit)
{
    for (std::size_t i = 0; i < lane.size(); ++i)
        if (const std::optional<MemoryOperation> operation = memoryOperationOf(trace.text(lane.text(i)))) visit(*operation, i);
}

} // namespace

std::string memoryOperationText(const MemoryOperation& operation)
{
    std::string text(operation.allocates ? kAllocate : kRelease);
    text += wholeSize(operation.bytes);
    text += kPlaces[static_cast<std::size_t>(operation.place)];
    if (operation.async) text += kAsync;
    if (operation.action) text.append(kFor).append(toText(*operation.action));
    return text;
}

std::optional<MemoryOperation> memoryOperationOf(std::string_view text)
{
    MemoryOperation operation{.allocates = take(text, kAllocate)};
    if (!operation.allocates && !take(text, kRelease)) return std::nullopt;
    const std::optional<Bytes> bytes = takeSize(text);
    if (!bytes) return std::nullopt;
    operation.bytes = *bytes;
    for (std::size_t place = 1; place < kPlaces.size(); ++place)
        if (take(text, kPlaces[place])) operation.place = static_cast<MemoryPlace>(place);
    operation.async = take(text, kAsync);
    if (take(text, kFor)) {
        const Expected<Action> action = parseAction(text);
        if (!action.ok()) return std::nullopt;
        operation.action = action.value();
        text = {};
    }
    return text.empty() ? std::optional(operation) : std::nullopt;
}

std::string memoryOperationsLaneName(std::uint32_t gpu) { return ("GPU " + std::to_string(gpu)).append(kLane); }

bool holdsMemoryOperations(const LaneInfo& lane) { return lane.kind == LaneKind::Stream && lane.name.find(kLane) != std::string::npos; }

void MemoryOperations::add(const MemoryOperation& operation, TimeNs took)
{
    const bool ofDevice = operation.place != MemoryPlace::Pinned && operation.place != MemoryPlace::Pageable;
    ++(operation.allocates ? allocations : releases);
    if (ofDevice) (operation.allocates ? allocated : released) += operation.bytes;
    inCalls += took;
}

MemoryOperations memoryOperationsOf(const Trace& trace, SliceRef block)
{
    MemoryOperations sum;
    const Rank rank = trace.lane(block.lane).info().rank;
    const Slice asked = trace.slice(block);
    for (const Lane& lane : trace.lanes()) {
        if (lane.info().rank != rank || !holdsMemoryOperations(lane.info())) continue;
        forEachOperation(lane, trace, [&](const MemoryOperation& operation, std::size_t i) {
            if (operation.action && operation.action->work == asked.action.work && lane.step(i) == asked.step) sum.add(operation, lane.end(i) - lane.begin(i));
        });
    }
    return sum;
}

std::vector<RankMemoryOperations> memoryOperations(const Trace& trace)
{
    std::map<Rank, RankMemoryOperations> ranks;
    for (const Lane& lane : trace.lanes()) {
        if (!holdsMemoryOperations(lane.info())) continue;
        forEachOperation(lane, trace, [&](const MemoryOperation& operation, std::size_t i) {
            RankMemoryOperations& rank = ranks.try_emplace(lane.info().rank, RankMemoryOperations{.rank = lane.info().rank, .all = {}, .byKind = {}}).first->second;
            const TimeNs took = lane.end(i) - lane.begin(i);
            rank.all.add(operation, took);
            rank.byKind[operation.action ? operation.action->kind() : ActionKind::None].add(operation, took);
        });
    }
    std::vector<RankMemoryOperations> all;
    for (auto& [rank, operations] : ranks) all.push_back(std::move(operations));
    return all;
}

} // namespace stagecraft::traces
