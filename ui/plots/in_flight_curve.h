// SPDX-License-Identifier: GPL-3.0-or-later
//
// Micro-batches whose activations a rank holds, for traces that record no bytes: one more from the start of a forward, one
// less from the end of a full backward or a weight gradient. Counted by stage, so that it stays whole: of a rank with v
// chunks, v of them are one micro-batch.
#pragma once

#include "ui/plots/rank_curve.h"

namespace stagecraft::ui {

class InFlightCurve final : public RankCurve {
public:
    using RankCurve::RankCurve;

    std::size_t update(const traces::Trace& trace) override;

private:
    std::vector<std::size_t> read_; // slices of each lane of the trace
    std::int64_t live_ = 0;
};

} // namespace stagecraft::ui
