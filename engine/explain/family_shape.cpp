// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/family_shape.h"

#include "traces/base/text.h"

#include <algorithm>
#include <utility>

namespace stagecraft::engine {

int chunksFor(const std::string& schedule, int chunks)
{
    const ScheduleFamily* family = findFamily(schedule);
    return family ? std::clamp(chunks, family->minChunks, std::max(family->minChunks, family->maxChunks)) : chunks;
}

int slicesFor(const std::string& schedule, int slices)
{
    const ScheduleFamily* family = findFamily(schedule);
    return family && !family->cutsSequences ? 1 : slices;
}

Plan withSchedule(Plan plan, const std::string& schedule)
{
    if (schedule == "custom") return plan;
    plan.pipeline.schedule = schedule;
    plan.pipeline.customSchedule.clear();
    plan.pipeline.slices = slicesFor(schedule, plan.pipeline.slices);
    return withShape(std::move(plan), plan.pipeline.ranks, chunksFor(schedule, plan.pipeline.chunks));
}

Plan withChange(Plan plan, const LegalChange& change)
{
    switch (change.number) {
    case LegalChange::Number::Chunks: return withShape(plan, plan.pipeline.ranks, change.value);
    case LegalChange::Number::Ranks: return withShape(plan, change.value, plan.pipeline.chunks);
    case LegalChange::Number::Slices: plan.pipeline.slices = change.value; break;
    case LegalChange::Number::MicroBatches: plan.pipeline.microbatches = change.value; break;
    }
    return plan;
}

std::string changeText(const LegalChange& change)
{
    switch (change.number) {
    case LegalChange::Number::Chunks: return traces::counted(change.value, "chunk") + " per rank";
    case LegalChange::Number::MicroBatches: return traces::counted(change.value, "micro-batch");
    case LegalChange::Number::Ranks: return traces::counted(change.value, "rank");
    case LegalChange::Number::Slices: return traces::counted(change.value, "slice");
    }
    return {};
}

} // namespace stagecraft::engine
