// SPDX-License-Identifier: Apache-2.0
//
// Cost tables in unit slots, for schedules whose figures are known as whole numbers.
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <gtest/gtest.h>

namespace stagecraft::test {

inline constexpr traces::TimeNs kSlot = 1'000'000;

inline engine::CostTable slotCosts(int stages, traces::TimeNs forward, traces::TimeNs backward, traces::TimeNs transfer = 0)
{
    engine::CostTable table;
    table.stages.assign(static_cast<std::size_t>(stages), {.forward = forward,
                                                           .backward = backward,
                                                           .inputGrad = backward / 2,
                                                           .weightGrad = backward - backward / 2,
                                                           .overlap = forward + backward});
    table.transfer = transfer;
    return table;
}

inline engine::Schedule made(const std::string& name, int ranks, int microbatches, int chunks = 1)
{
    traces::Expected<engine::Schedule> schedule =
        engine::generate({.name = name, .ranks = ranks, .chunks = chunks, .microbatches = microbatches});
    if (!schedule.ok()) throw std::runtime_error(schedule.error().message);
    return schedule.value();
}

inline traces::StepFigures figuresOf(const engine::Schedule& schedule, const engine::CostTable& costs)
{
    traces::Expected<traces::Trace> trace = engine::simulate(schedule, costs);
    if (!trace.ok()) throw std::runtime_error(trace.error().message);
    traces::Expected<traces::StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) throw std::runtime_error(figures.error().message);
    return figures.value();
}

} // namespace stagecraft::test
