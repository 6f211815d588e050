// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sum of several memory series of a rank, in bytes.
#pragma once

#include "ui/plots/rank_curve.h"

#include <array>

namespace stagecraft::ui {

class MemoryCurve final : public RankCurve {
public:
    // Sums the classes whose bit is set in `classes` (bit = MemoryClass).
    MemoryCurve(traces::Rank rank, unsigned classes) : RankCurve(rank), classes_(classes) {}
    static constexpr unsigned kAllClasses = (1U << traces::kMemoryClassCount) - 1;

    std::size_t update(const traces::Trace& trace) override;

private:
    unsigned classes_;
    std::array<std::size_t, traces::kMemoryClassCount> read_{};
    std::array<traces::Bytes, traces::kMemoryClassCount> current_{};
};

} // namespace stagecraft::ui
