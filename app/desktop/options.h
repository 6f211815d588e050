// SPDX-License-Identifier: GPL-3.0-or-later
//
// The command line of the desktop program.
#pragma once

#include "engine/explain/sweep_figures.h"
#include "traces/base/units.h"
#include "ui/explore/explore_windows.h"
#include "ui/theme/theme.h"

#include <QSize>
#include <QString>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace stagecraft::desktop {

// When the picture of a run is taken: in the midst of a step, or once the run is over.
struct PictureTime {
    std::optional<int> step; // nullopt: at the end
};

struct WindowCommand {
    QString plan;  // file or preset; empty: the first preset with a model
    QString trace; // file
    std::optional<ui::ThemeKind> theme;
    QString screenshot; // file; empty: the window is shown
    QSize size{1280, 800};
    std::optional<ui::ExploreWindow> show; // one of the windows beside; a picture is then of that one
    bool statistics = false; // with that panel in front
    bool run = false;
    bool useMeasured = false; // after the run its times become the plan's costs
    PictureTime at;
};

struct RenderCommand {
    QString source; // plan file, preset or trace
    QString out;
    std::optional<ui::ThemeKind> theme;
    int width = 1600;
    double scale = 0; // PNG; 0: what fits
    std::optional<int> step;
    std::optional<traces::TimeNs> from; // from the start of the step, or of all
    std::optional<traces::TimeNs> to;
};

struct PlotCommand {
    QString sweep; // file, or "-" for standard input
    QString out;
    std::vector<engine::SweepFigure> figures; // empty: the main ones
    std::optional<ui::ThemeKind> theme;
    int width = 1200;
};

// Done: help or version was printed, or the use was wrong; then with the exit code.
struct Done {
    int exitCode = 0;
};

// The name that the program was called by: messages of `stagecraft-cli render`, which hands over to this program, bear its
// own name.
std::string calledName(const char* argument);

std::variant<WindowCommand, RenderCommand, PlotCommand, Done> readCommandLine(int argc, char** argv);

} // namespace stagecraft::desktop
