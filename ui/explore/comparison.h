// SPDX-License-Identifier: GPL-3.0-or-later
//
// Steps set side by side: the figures of each, and how each differs from the first, as a table of texts for the window and for
// exports. Pure.
//
//   comparisonTable({{"GPipe", gpipe, 8}, {"ZB-H1", zbH1, 8}})[1] == {"step", "33 ms", "27 ms (−18.18 %)"}
#pragma once

#include "traces/analysis/figures.h"

#include <QString>
#include <QStringList>

#include <optional>
#include <vector>

namespace stagecraft::ui {

struct ComparedStep {
    QString title;
    traces::StepFigures figures;
    int microbatches = 0;             // of the step; 0: not known
    std::optional<long long> handOffs{}; // nullopt: not known, of a trace that was opened
    std::optional<int> weightCopies{};
};

// The first row has the titles, the first column the figures' names.
std::vector<QStringList> comparisonTable(const std::vector<ComparedStep>& steps);

} // namespace stagecraft::ui
