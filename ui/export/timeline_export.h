// SPDX-License-Identifier: GPL-3.0-or-later
//
// A picture of the timeline as a file: title, ruler, lanes, legend of the colours, the step's figures. The file's ending
// chooses the form: .png, .svg, .pdf. Needs a QGuiApplication, but no display (QT_QPA_PLATFORM=offscreen).
//
//   auto done = exportTimeline({{simulated}}, {.theme = Theme::of(ThemeKind::Light)}, "pipeline.svg");
//   if (!done.ok()) show(done.error().message);      // names the file
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/lane_layout.h"
#include "ui/timeline/trace_source.h"

#include "traces/base/expected.h"
#include "traces/format/output_file.h"

#include <QSize>
#include <QString>
#include <QStringList>

#include <functional>
#include <optional>
#include <vector>

namespace stagecraft::ui {

// The lanes of a window as they are scrolled there.
struct ShownLanes {
    double height = 0;
    double scroll = 0;
};

inline constexpr int kSheetMargin = 24; // left and right of ranks and lanes

struct ExportOptions {
    int width = 1600;                       // in units of the picture: pixels at scale 1
    int height = 0;                         // 0: what the lanes need
    double scale = 0;                       // PNG: pixels per unit; 0: 2, or less where the picture would be too large
    Theme theme = Theme::of(ThemeKind::Light);
    Arrangement arrangement = Arrangement::Stacked;
    // What part of the time: all, or a shown interval, or a step; `from` and `to` count from the start of that step, or of all.
    std::optional<traces::Interval> range{};
    std::optional<traces::Step> step{};
    std::optional<traces::TimeNs> from{};
    std::optional<traces::TimeNs> to{};
    std::optional<ShownLanes> lanes{};      // nullopt: all of them
    TimelineItem selection{};               // with its arrows; of the same sources
    FoldedRanks folded{};
    bool criticalPath = false;
    QString title{};                        // empty: the trace's own
    std::vector<QStringList> table{};       // below the lanes instead of the line of figures: first row titles, first column names
};

// The picture as a file that has not taken its name yet: that is commit()'s. Without it nothing is left, and an older file of
// the name stays. `cancelled` is asked between the parts of the work.
traces::Expected<traces::OutputFile> drawTimeline(const std::vector<TraceSource>& sources, const ExportOptions& options,
                                                  const QString& file, const std::function<bool()>& cancelled = {});

// All at once.
traces::Expected<void> exportTimeline(const std::vector<TraceSource>& sources, const ExportOptions& options,
                                      const QString& file);

} // namespace stagecraft::ui
