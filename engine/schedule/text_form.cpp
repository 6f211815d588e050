// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

// Of stages and micro-batches together: what any text may ask for, be it incomplete.
constexpr std::int64_t kFewPairs = 1 << 16;

Expected<std::vector<Action>> parseLine(std::string_view line, std::size_t number)
{
    std::vector<Action> list;
    std::size_t cell = 0;
    for (std::size_t at = 0; at <= line.size();) {
        const std::size_t end = std::min(line.find(',', at), line.size());
        Expected<Action> action = traces::parseAction(line.substr(at, end - at));
        ++cell;
        if (!action.ok()) return action.error().in(fmt::format("line {}, cell {}", number, cell));
        if (action.value().kind() != ActionKind::None) list.push_back(action.value()); // an empty cell is a pause
        at = end + 1;
    }
    return list;
}

// Stage-to-rank map and counts follow from the actions.
Expected<void> deriveShape(Schedule& schedule)
{
    const std::size_t actions = schedule.actionCount();
    if (actions == 0) return Error{"the schedule has no action; write a line of actions per rank, such as 0F0,0B0"};
    std::int32_t lastStage = 0;
    std::int32_t lastMicroBatch = -1;
    const auto visit = [&](const traces::Work& work) {
        lastStage = std::max<std::int32_t>(lastStage, work.stage.value);
        lastMicroBatch = std::max(lastMicroBatch, work.microbatch.value);
    };
    for (const std::vector<Action>& list : schedule.order)
        for (const Action& action : list) {
            visit(action.work);
            if (action.kind() == ActionKind::Overlap) visit(action.partner);
        }
    // every stage takes every micro-batch forward, in an action each; a slip that asks for far more must not take the memory
    const std::int64_t pairs = (std::int64_t{lastStage} + 1) * (std::int64_t{lastMicroBatch} + 1);
    if (lastStage >= kMaxStages || pairs > std::max<std::int64_t>(kFewPairs, 2 * static_cast<std::int64_t>(actions)))
        return Error{fmt::format("stage {} and micro-batch {} are the largest numbers, but there are only {}; numbers "
                                 "count from 0 without gaps, and there are at most {} stages",
                                 lastStage, lastMicroBatch, traces::counted(actions, "action"), kMaxStages)};
    schedule.microbatches = lastMicroBatch + 1;
    const Rank nowhere{-1};
    schedule.stageToRank.assign(static_cast<std::size_t>(lastStage) + 1, nowhere);
    std::vector<int> perRank(schedule.order.size(), 0);
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto place = [&](const traces::Work& work) {
            Rank& rank = schedule.stageToRank[index(work.stage)];
            if (rank != nowhere) return; // an action on another rank is a fault that validate() names
            rank = Rank{r};
            ++perRank[r];
        };
        for (const Action& action : schedule.order[r]) {
            place(action.work);
            if (action.kind() == ActionKind::Overlap) place(action.partner);
        }
    }
    const auto gap = std::find(schedule.stageToRank.begin(), schedule.stageToRank.end(), nowhere);
    if (gap != schedule.stageToRank.end())
        return Error{fmt::format("stage {} has no action, but stage {} has; stages count from 0 without gaps",
                                 gap - schedule.stageToRank.begin(), lastStage)};
    schedule.chunks = std::max(1, *std::max_element(perRank.begin(), perRank.end()));
    return {};
}

} // namespace

std::string toText(const Schedule& schedule)
{
    std::string out;
    for (const std::vector<Action>& list : schedule.order) {
        if (list.empty()) out += ','; // an empty line would be no rank
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (i != 0) out += ',';
            traces::appendText(out, list[i]);
        }
        out += '\n';
    }
    return out;
}

Expected<Schedule> parseSchedule(std::string_view text, std::string name)
{
    Schedule schedule;
    schedule.name = std::move(name);
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = traces::trimmed(text.substr(at, end - at));
        at = end + 1;
        ++number;
        if (line.empty() || line.starts_with('#')) continue; // a rank without actions is a line of commas
        Expected<std::vector<Action>> list = parseLine(line, number);
        if (!list.ok()) return list.error();
        schedule.order.push_back(std::move(list.value()));
    }
    schedule.ranks = static_cast<int>(schedule.order.size());
    if (Expected<void> shape = deriveShape(schedule); !shape.ok()) return shape.error();
    return schedule;
}

} // namespace stagecraft::engine
