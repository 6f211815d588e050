// SPDX-License-Identifier: GPL-3.0-or-later
//
// The idle intervals and figures of the steps of one trace, kept for views that paint them again and again.
#pragma once

#include "ui/timeline/step_table.h"

#include "traces/analysis/figures.h"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace stagecraft::ui {

// The gaps of one step, by rank and time.
class GapTable {
public:
    GapTable() = default;
    explicit GapTable(std::vector<traces::Gap> gaps);

    [[nodiscard]] std::span<const traces::Gap> all() const { return gaps_; }
    [[nodiscard]] std::span<const traces::Gap> of(traces::Rank rank) const;
    // The gap of a rank at a moment, or null.
    [[nodiscard]] const traces::Gap* at(traces::Rank rank, traces::TimeNs t) const;

private:
    std::vector<traces::Gap> gaps_;
};

// Works out a step when it is first asked for, and again when it has grown or is finished: by any slice while it is small,
// by a noticeable part when it is large, so that a long step costs no more per slice than a short one. Steps with more
// than kMostSlices are left out: they take longer than a frame, and no picture shows their gaps one by one.
class StepAnalyses {
public:
    static constexpr std::size_t kMostSlices = 200'000;

    const GapTable& gaps(const traces::Trace& trace, const StepTable& steps, traces::Step step);
    const std::optional<traces::StepFigures>& figures(const traces::Trace& trace, const StepTable& steps, traces::Step step);

private:
    struct Kept {
        StepPlace gapsAt;    // how far the step had come
        StepPlace figuresAt;
        GapTable gaps;
        std::optional<traces::StepFigures> figures;
    };
    static bool isCurrent(const StepPlace& kept, const StepPlace& now);

    std::map<traces::Step, Kept> kept_;
};

} // namespace stagecraft::ui
