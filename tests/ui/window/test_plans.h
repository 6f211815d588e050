// SPDX-License-Identifier: GPL-3.0-or-later
//
// Plans without a model: a forward takes 1 ms, a backward 2 ms, transfers are free.
#pragma once

#include "engine/plan/plan.h"

namespace stagecraft::ui {

inline engine::PipelineSpec pipelineOf(const char* schedule, int ranks, int chunks, int microbatches)
{
    engine::PipelineSpec pipeline;
    pipeline.schedule = schedule;
    pipeline.ranks = ranks;
    pipeline.chunks = chunks;
    pipeline.microbatches = microbatches;
    return pipeline;
}

inline engine::Plan planOf(const engine::PipelineSpec& pipeline)
{
    engine::Plan plan;
    plan.pipeline = pipeline;
    return plan;
}

} // namespace stagecraft::ui
