// SPDX-License-Identifier: GPL-3.0-or-later
//
// What theory says of a schedule with p ranks, v chunks and m micro-batches, for equal stages and free transfers: the
// formula as text and its value, to stand beside what was simulated and measured.
// GPipe: arXiv 1811.06965 sec. 2.3; 1F1B and interleaving: arXiv 2104.04473 sec. 2.2.
#pragma once

#include "engine/plan/plan.h"

#include <optional>
#include <string>

namespace stagecraft::ui {

struct ClosedForm {
    std::string text; // "(p-1)/(m+p-1)"
    double value = 0;
};

std::optional<ClosedForm> bubbleMakespanForm(const engine::PipelineSpec& pipeline);
std::optional<ClosedForm> bubbleOverIdealForm(const engine::PipelineSpec& pipeline);
std::optional<ClosedForm> peakActivationsForm(const engine::PipelineSpec& pipeline);
// `forward` and `backward`: times of one rank for one micro-batch, in ns.
std::optional<ClosedForm> makespanForm(const engine::PipelineSpec& pipeline, double forward, double backward);

} // namespace stagecraft::ui
