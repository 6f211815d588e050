// SPDX-License-Identifier: Apache-2.0
//
// The curves of a sweep as a picture, drawn by the desktop program beside this one, which reads the sweep from standard input.
#pragma once

#include "app/cli/command.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

struct SweepDrawing {
    std::string out;                  // .png, .svg or .pdf
    std::vector<std::string> figures; // as the desktop program calls them; empty: the main ones
    std::string theme;                // empty: light
};

// Wrong use: a file that is no picture.
Expected<void> checkDrawing(const SweepDrawing& drawing);

// `json` as engine::sweepJson() writes it. Waits for the picture; where there is none, the desktop program has said why on standard error.
Expected<void> drawSweep(const std::string& json, const SweepDrawing& drawing);

} // namespace stagecraft::cli
