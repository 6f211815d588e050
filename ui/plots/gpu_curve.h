// SPDX-License-Identifier: GPL-3.0-or-later
//
// A part of a GPU's memory with all that lies below it when the parts are stacked, in bytes.
#pragma once

#include "ui/plots/rank_curve.h"

namespace stagecraft::ui {

enum class GpuPart : std::uint8_t { Active, Reserved, Used };

class GpuCurve final : public RankCurve {
public:
    GpuCurve(traces::GpuId gpu, GpuPart part) : RankCurve(traces::Rank{}), gpu_(gpu), part_(part) {}

    std::size_t update(const traces::Trace& trace) override;

private:
    traces::GpuId gpu_;
    GpuPart part_;
    std::size_t read_ = 0; // points of the series
};

} // namespace stagecraft::ui
