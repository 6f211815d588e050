// SPDX-License-Identifier: Apache-2.0
//
// Every schedule that there is, simulated with one plan: what a gallery shows and what docs/schedules.md tells. Pure; any thread.
//
//   for (const ScheduleFamily& family : scheduleFamilies()) {
//       SurveyEntry entry = survey(plan, family);
//       if (entry.refusal.empty()) draw(pictureOf(*entry.trace));
//   }
//
// The plan keeps its ranks, micro-batches and costs. Chunks and slices are the plan's where the family takes that number, else the
// nearest it takes; an asynchronous family is simulated for the same micro-batches.
#pragma once

#include "engine/explain/closed_forms.h"
#include "engine/plan/plan.h"
#include "engine/explain/family_shape.h"
#include "traces/analysis/figures.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace stagecraft::engine {

struct SurveyEntry {
    const ScheduleFamily* family = nullptr; // lives as long as the program; null for a custom order
    Plan plan;           // with the family's schedule, chunks and slices: what choosing it would make of the plan
    std::string refusal; // why it cannot be simulated; empty: it was
    std::optional<LegalChange> nearest = {}; // where that helps
    std::shared_ptr<const traces::Trace> trace = {};
    traces::StepFigures figures = {};
    ClosedForms forms = {};
    double peakActivations = 0; // of the fullest rank
    Bytes peakMemory = 0;       // likewise; 0: not known
    long long handOffs = 0;     // tensors that go from one rank to another in a step
    Bytes sentBytes = 0;        // all of them together; 0: not known
    long long copies = 0;       // activations that go out of a rank's memory for keeping (BPipe, offload)
    int weightCopies = 1;       // of a stage, at most: in two directions, or versions of an asynchronous schedule
};

SurveyEntry survey(const Plan& plan, const ScheduleFamily& family, const std::stop_token& stop = {});
// The plan as it is, with its own schedule.
SurveyEntry survey(Plan plan, const std::stop_token& stop = {});

} // namespace stagecraft::engine
