// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a timeline shows: one trace, or a simulated and a measured one together.
#pragma once

#include "traces/store/trace.h"

#include <QString>

#include <memory>
#include <optional>
#include <vector>

namespace stagecraft::ui {

// What a source is to the others, whatever its place among them.
enum class SourceRole : std::uint8_t {
    Simulation, // of the plan that is edited
    Other       // a run, or an opened trace, beside it
};

// A rank that waits for ever: what it cannot start, and for whom.
struct StuckRank {
    traces::Rank rank{};
    QString text{}; // "0B1 waits for 1B1"
    traces::Rank waitsFor{};

    bool operator==(const StuckRank&) const = default;
};

struct TraceSource {
    // A finished trace, or one that its owner goes on adding to in the GUI thread; then the owner calls
    // TimelineScene::dataArrived() after each batch.
    std::shared_ptr<const traces::Trace> trace{};
    QString label{};      // "simulated 1F1B"; empty: the trace's own label and title
    bool growing = false; // a run adds to it
    std::optional<SourceRole> role{}; // nullopt: by the trace's label
    std::vector<StuckRank> stuck{};   // where it came to no end
};

SourceRole roleOf(const TraceSource& source);

enum class Arrangement : std::uint8_t {
    Stacked, // one below the other
    Overlaid // the simulated one as outlines over the other
};

// The label to show for a source.
QString sourceLabel(const TraceSource& source);

} // namespace stagecraft::ui
