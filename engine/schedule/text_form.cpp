// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include "engine/schedule/batch.h"
#include "engine/schedule/deepspeed.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace stagecraft::engine {
namespace {

// Of stages and micro-batches together: what any text may ask for, be it incomplete.
constexpr std::int64_t kFewPairs = 1 << 16;

constexpr std::string_view kBatchWord = "P2P";

// "(0SEND_F2;0RECV_B0)P2P"
bool isBatch(std::string_view cell)
{
    const std::string_view text = traces::trimmed(cell);
    return text.starts_with('(') && text.ends_with(kBatchWord);
}

Expected<std::vector<Action>> parseBatch(std::string_view cell)
{
    const std::string_view text = traces::trimmed(cell);
    const auto bad = [&](std::string_view why) {
        return Error{fmt::format("action \"{}\": {}; expected a form such as (0SEND_F2;0RECV_B0)P2P", text, why)};
    };
    const std::size_t close = text.find(')');
    if (close == std::string_view::npos || traces::trimmed(text.substr(close + 1)) != kBatchWord) return bad("a batch ends in )P2P");
    std::vector<Action> transfers;
    for (std::size_t at = 1; at <= close;) {
        const std::size_t end = std::min(text.find(';', at), close);
        Expected<Action> transfer = traces::parseAction(text.substr(at, end - at));
        if (!transfer.ok()) return transfer.error();
        if (!traces::isTransfer(transfer.value().kind())) return bad("only SEND and RECV are posted together");
        transfers.push_back(transfer.value());
        at = end + 1;
    }
    if (transfers.size() > kMaxBatch) return bad(fmt::format("at most {} are posted together", kMaxBatch));
    return transfers;
}

Expected<std::vector<Action>> parseLine(std::string_view line, std::size_t number)
{
    std::vector<Action> list;
    std::size_t cell = 0;
    for (std::size_t at = 0; at <= line.size();) {
        const std::size_t end = std::min(line.find(',', at), line.size());
        ++cell;
        if (isBatch(line.substr(at, end - at))) {
            Expected<std::vector<Action>> batch = parseBatch(line.substr(at, end - at));
            if (!batch.ok()) return batch.error().in(fmt::format("line {}, cell {}", number, cell));
            appendBatch(list, batch.value());
            at = end + 1;
            continue;
        }
        Expected<Action> action = traces::parseAction(line.substr(at, end - at));
        if (!action.ok()) return action.error().in(fmt::format("line {}, cell {}", number, cell));
        if (action.value().kind() != ActionKind::None) list.push_back(action.value()); // an empty cell is a pause
        at = end + 1;
    }
    return list;
}

// What the actions of one direction say of it.
struct FlowExtent {
    std::int32_t lastStage = -1;
    std::int32_t lastUnit = -1;

    void add(const traces::Work& work)
    {
        lastStage = std::max<std::int32_t>(lastStage, work.stage.value);
        lastUnit = std::max(lastUnit, work.microbatch.value);
    }
    [[nodiscard]] bool used() const { return lastStage >= 0; }
};

template <class Visit>
void forEachWorkOf(const Schedule& schedule, Visit&& visit)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Action& action : schedule.order[r]) {
            visit(Rank{r}, action.work);
            if (action.kind() == ActionKind::Overlap) visit(Rank{r}, action.partner);
        }
}

// Where each stage of the direction first appears; an action on another rank is a fault that validate() names.
Expected<std::vector<Rank>> derivePlacement(const Schedule& schedule, Flow flow, std::int32_t lastStage)
{
    const Rank nowhere{-1};
    std::vector<Rank> placement(static_cast<std::size_t>(lastStage) + 1, nowhere);
    forEachWorkOf(schedule, [&](Rank r, const traces::Work& work) {
        if (work.flow != flow) return;
        Rank& rank = placement[index(work.stage)];
        if (rank == nowhere) rank = r;
    });
    const auto gap = std::find(placement.begin(), placement.end(), nowhere);
    if (gap != placement.end())
        return Error{fmt::format("stage {}{} has no action, but stage {} has; stages count from 0 without gaps", gap - placement.begin(),
                                 flow == Flow::Single ? "" : flow == Flow::Up ? " of direction u" : " of direction d", lastStage)};
    return placement;
}

int mostStagesOfARank(const Schedule& schedule, const std::vector<Rank>& placement)
{
    std::vector<int> perRank(schedule.order.size(), 0);
    for (const Rank rank : placement) ++perRank[index(rank)];
    return std::max(1, *std::max_element(perRank.begin(), perRank.end()));
}

// Placement and counts follow from the actions.
Expected<void> deriveShape(Schedule& schedule)
{
    const std::size_t actions = schedule.actionCount();
    if (actions == 0) return Error{"the schedule has no action; write a line of actions per rank, such as 0F0,0B0"};
    std::array<FlowExtent, 3> extents; // by Flow
    forEachWorkOf(schedule, [&](Rank, const traces::Work& work) { extents[static_cast<std::size_t>(work.flow)].add(work); });
    const auto& [single, down, up] = extents;
    const bool two = down.used() || up.used();
    if (two && single.used())
        return Error{"some actions name a direction (d or u) and some do not; in a schedule of two directions all do"};
    if (two && down.lastStage != up.lastStage)
        return Error{fmt::format("direction d has {} and direction u has {}; both go through the whole model",
                                 traces::counted(down.lastStage + 1, "stage"), traces::counted(up.lastStage + 1, "stage"))};
    const FlowExtent& first = two ? down : single;
    // every stage takes every micro-batch forward, in an action each; a slip that asks for far more must not take the memory
    for (const FlowExtent& extent : {first, up}) {
        const std::int64_t pairs = (std::int64_t{extent.lastStage} + 1) * (std::int64_t{extent.lastUnit} + 1);
        if (extent.lastStage >= kMaxStages || pairs > std::max<std::int64_t>(kFewPairs, 2 * static_cast<std::int64_t>(actions)))
            return Error{fmt::format("stage {} and micro-batch {} are the largest numbers, but there are only {}; numbers "
                                     "count from 0 without gaps, and there are at most {} stages",
                                     extent.lastStage, extent.lastUnit, traces::counted(actions, "action"), kMaxStages)};
    }
    const std::int32_t units = first.lastUnit + 1 + (two ? up.lastUnit + 1 : 0);
    if (units % schedule.slices != 0 || (two && (up.lastUnit + 1) % schedule.slices != 0))
        return Error{fmt::format("the sequences have {} each, but {} are named in all, which is no multiple",
                                 traces::counted(schedule.slices, "slice"), traces::counted(units, "slice"))};
    if (schedule.asynchronous() && (two || schedule.slices != 1))
        return Error{"the weights change while micro-batches are in flight, which goes with one direction and whole sequences only; leave "
                     "the line of updates out"};
    schedule.microbatches = units / schedule.slices;
    Expected<std::vector<Rank>> placement = derivePlacement(schedule, two ? Flow::Down : Flow::Single, first.lastStage);
    if (!placement.ok()) return placement.error();
    schedule.stageToRank = std::move(placement.value());
    schedule.chunks = mostStagesOfARank(schedule, schedule.stageToRank);
    if (!two) return {};
    Expected<std::vector<Rank>> other = derivePlacement(schedule, Flow::Up, up.lastStage);
    if (!other.ok()) return other.error();
    schedule.upStageToRank = std::move(other.value());
    schedule.upMicrobatches = (up.lastUnit + 1) / schedule.slices;
    return {};
}

constexpr std::array<std::pair<std::string_view, UpdateRule>, 3> kUpdateWords{
    {{"stashed", UpdateRule::Stashed}, {"vertical-sync", UpdateRule::VerticalSync}, {"double-buffered", UpdateRule::DoubleBuffered}}};

// Takes a number of 1 or more off the front; nothing where there is none.
std::optional<int> takeCount(std::string_view& text)
{
    int count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || count < 1) return std::nullopt;
    text = traces::trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
    return count;
}

Expected<void> readSlices(std::string_view text, std::size_t number, Schedule& schedule)
{
    std::string_view rest = text;
    const std::optional<int> slices = takeCount(rest);
    if (!slices || !rest.empty())
        return Error{fmt::format("line {}: \"{}\" is no number of slices of a sequence; 1 or more", number, text)};
    schedule.slices = *slices;
    return {};
}

Expected<void> readUpdates(std::string_view text, std::size_t number, Schedule& schedule)
{
    std::string_view rest = text;
    const std::optional<int> group = takeCount(rest);
    for (const auto& [word, rule] : kUpdateWords) {
        if (!group || rest != word) continue;
        schedule.updates = rule;
        schedule.microbatchesPerUpdate = *group;
        return {};
    }
    return Error{fmt::format("line {}: \"{}\" does not say when weights change; the micro-batches of an update, and stashed, "
                             "vertical-sync or double-buffered, such as 4 double-buffered",
                             number, text)};
}

Expected<void> readOffload(std::string_view text, std::size_t number, Schedule& schedule)
{
    if (text != "partner") return Error{fmt::format("line {}: \"{}\" is no place for activations; partner, or leave the line out", number, text)};
    schedule.offloadTo = OffloadTo::Partner;
    return {};
}

// "# slices 2", "# updates 4 stashed", "# offload to partner": the comments that say something, for the actions cannot.
Expected<void> readComment(std::string_view line, std::size_t number, Schedule& schedule)
{
    const std::string_view text = traces::trimmed(line.substr(1));
    for (const auto& [word, read] : {std::pair{std::string_view{"slices "}, &readSlices}, {"updates ", &readUpdates}, {"offload to ", &readOffload}})
        if (text.starts_with(word)) return read(traces::trimmed(text.substr(word.size())), number, schedule);
    return {};
}

} // namespace

std::string toText(const Schedule& schedule)
{
    std::string out;
    if (schedule.slices > 1) out += fmt::format("# slices {}\n", schedule.slices);
    for (const auto& [word, rule] : kUpdateWords)
        if (schedule.updates == rule) out += fmt::format("# updates {} {}\n", schedule.microbatchesPerUpdate, word);
    if (schedule.offloadTo == OffloadTo::Partner) out += "# offload to partner\n";
    for (const std::vector<Action>& list : schedule.order) {
        if (list.empty()) out += ','; // an empty line would be no rank
        for (std::size_t i = 0; i < list.size();) {
            if (i != 0) out += ',';
            const std::size_t end = batchEnd(list, i);
            const bool together = end - i > 1;
            if (together) out += '(';
            for (const std::size_t begin = i; i < end; ++i) {
                if (i != begin) out += ';';
                traces::appendText(out, list[i]);
            }
            if (together) out.append(")").append(kBatchWord);
        }
        out += '\n';
    }
    return out;
}

Expected<Schedule> parseSchedule(std::string_view text, std::string name)
{
    if (looksLikeDeepSpeed(text)) {
        Expected<Schedule> read = readDeepSpeed(text, std::move(name));
        if (!read.ok()) return read.error();
        read.value().ranks = static_cast<int>(read.value().order.size());
        if (Expected<void> shape = deriveShape(read.value()); !shape.ok()) return shape.error();
        return read;
    }
    Schedule schedule;
    schedule.name = std::move(name);
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = traces::trimmed(text.substr(at, end - at));
        at = end + 1;
        ++number;
        if (line.empty()) continue; // a rank without actions is a line of commas
        if (line.starts_with('#')) {
            if (Expected<void> read = readComment(line, number, schedule); !read.ok()) return read.error();
            continue;
        }
        Expected<std::vector<Action>> list = parseLine(line, number);
        if (!list.ok()) return list.error();
        schedule.order.push_back(std::move(list.value()));
    }
    schedule.ranks = static_cast<int>(schedule.order.size());
    if (Expected<void> shape = deriveShape(schedule); !shape.ok()) return shape.error();
    return schedule;
}

} // namespace stagecraft::engine
