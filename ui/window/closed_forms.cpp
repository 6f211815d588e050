// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/closed_forms.h"

#include <algorithm>

namespace stagecraft::ui {
namespace {

enum class Family { Unknown, Naive, GPipe, OneFOneB, Interleaved };

Family familyOf(const engine::PipelineSpec& pipeline)
{
    if (pipeline.schedule == "naive") return Family::Naive;
    if (pipeline.schedule == "gpipe") return Family::GPipe;
    if (pipeline.schedule == "1f1b") return Family::OneFOneB;
    // Where m is no multiple of p, rounds are uneven and the closed form does not hold; nor for groups of another size.
    if (pipeline.schedule == "interleaved" && pipeline.microbatches % pipeline.ranks == 0 &&
        (pipeline.group == 0 || pipeline.group == pipeline.ranks))
        return Family::Interleaved;
    return Family::Unknown;
}

} // namespace

std::optional<ClosedForm> bubbleMakespanForm(const engine::PipelineSpec& pipeline)
{
    const double p = pipeline.ranks;
    const double v = pipeline.chunks;
    const double m = pipeline.microbatches;
    switch (familyOf(pipeline)) {
    case Family::Naive: return ClosedForm{"(p−1)/p", (p - 1) / p};
    case Family::GPipe:
    case Family::OneFOneB: return ClosedForm{"(p−1)/(m+p−1)", (p - 1) / (m + p - 1)};
    case Family::Interleaved: return ClosedForm{"(p−1)/(v·m+p−1)", (p - 1) / (v * m + p - 1)};
    case Family::Unknown: break;
    }
    return std::nullopt;
}

std::optional<ClosedForm> bubbleOverIdealForm(const engine::PipelineSpec& pipeline)
{
    const double p = pipeline.ranks;
    const double v = pipeline.chunks;
    const double m = pipeline.microbatches;
    switch (familyOf(pipeline)) {
    case Family::Naive: return ClosedForm{"p−1", p - 1};
    case Family::GPipe:
    case Family::OneFOneB: return ClosedForm{"(p−1)/m", (p - 1) / m};
    case Family::Interleaved: return ClosedForm{"(p−1)/(v·m)", (p - 1) / (v * m)};
    case Family::Unknown: break;
    }
    return std::nullopt;
}

std::optional<ClosedForm> peakActivationsForm(const engine::PipelineSpec& pipeline)
{
    const double p = pipeline.ranks;
    const double v = pipeline.chunks;
    const double m = pipeline.microbatches;
    switch (familyOf(pipeline)) {
    case Family::Naive: return ClosedForm{"1", 1};
    case Family::GPipe: return ClosedForm{"m", m};
    case Family::OneFOneB: return ClosedForm{"min(p, m)", std::min(p, m)};
    case Family::Interleaved:
        return ClosedForm{"min(m, ((v−1)·p+2(p−1)+1)/v)", std::min(m, ((v - 1) * p + 2 * (p - 1) + 1) / v)};
    case Family::Unknown: break;
    }
    return std::nullopt;
}

std::optional<ClosedForm> makespanForm(const engine::PipelineSpec& pipeline, double forward, double backward)
{
    const double p = pipeline.ranks;
    const double v = pipeline.chunks;
    const double m = pipeline.microbatches;
    switch (familyOf(pipeline)) {
    case Family::Naive: return ClosedForm{"p·m·(F+B)", p * m * (forward + backward)};
    case Family::GPipe:
    case Family::OneFOneB: return ClosedForm{"(m+p−1)·(F+B)", (m + p - 1) * (forward + backward)};
    case Family::Interleaved: return ClosedForm{"(m+(p−1)/v)·(F+B)", (m + (p - 1) / v) * (forward + backward)};
    case Family::Unknown: break;
    }
    return std::nullopt;
}

} // namespace stagecraft::ui
