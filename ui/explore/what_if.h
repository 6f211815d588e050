// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is asked of a trace ("what if its schedule were another?") as texts of controls, the plans that follow from them, and the answers
// as a table of texts. Pure.
//
//   const traces::Expected<std::vector<engine::Plan>> plans = changedPlans(observed.plan, {.schedules = {"gpipe"}, .stageTimes = "1, 0.5"});
//   whatIfTable(rows)[1] == {"measured", "1F1B", "p = 4, v = 1, m = 8", "9.2 ms", "", "1.000", ...}
#pragma once

#include "engine/explain/what_if.h"

#include <QString>
#include <QStringList>

#include <string>
#include <vector>

namespace stagecraft::ui {

// An empty text leaves the trace's own.
struct WhatIfChanges {
    std::vector<std::string> schedules; // one plan for each; none: the trace's own schedule
    QString microbatches = {};
    QString partition = {};  // layers of each stage, "3, 2, 2, 3"
    QString stageTimes = {}; // factors on the times of each stage, "1, 1, 0.5, 1"
};

// An error names the control's text and what is allowed, or says that nothing is changed. Chunks and slices are the nearest that a
// schedule takes.
traces::Expected<std::vector<engine::Plan>> changedPlans(const engine::Plan& plan, const WhatIfChanges& changes);

// The first row has the titles.
std::vector<QStringList> whatIfTable(const std::vector<engine::WhatIfRow>& rows);

// Whether a run of `ran` is one of what was predicted as `predicted`: the same pipeline of the same model in the same parts.
bool isRunOf(const engine::Plan& ran, const engine::Plan& predicted);

} // namespace stagecraft::ui
