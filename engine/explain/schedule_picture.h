// SPDX-License-Identifier: Apache-2.0
//
// A small picture of a simulated step: what each rank computes when, as blocks, and the same as a small SVG file that follows the
// reader's light or dark ground. Pure; any thread.
//
//   writeWholeFile("1f1b.svg", pictureSvg(pictureOf(trace), {.title = "1F1B, p=4, m=8"}));
#pragma once

#include "traces/store/trace.h"

#include <string>
#include <vector>

namespace stagecraft::engine {

struct PictureBlock {
    int rank = 0;
    traces::TimeNs begin = 0; // from the start of the step
    traces::TimeNs end = 0;
    traces::PaintClass paint = traces::PaintClass::Other;
    int chunk = 0;      // of the rank, or the direction: another shade
    std::string label = {}; // the micro-batch's number; empty where the action has none
};

struct SchedulePicture {
    int ranks = 0;
    traces::TimeNs length = 0; // the whole step's
    std::vector<PictureBlock> blocks; // by rank and time; nothing that takes no time
};

// Of the trace's computing lanes, its first step. At most `mostBlocks` of them: with more the picture would be a band, and neighbours
// of one colour on a rank are drawn as one block without a label.
SchedulePicture pictureOf(const traces::Trace& trace, std::size_t mostBlocks = 4000);

struct SvgOptions {
    std::string title = {};
    int width = 640;     // of the lanes
    int laneHeight = 20; // a rank's, with the space below
};
std::string pictureSvg(const SchedulePicture& picture, const SvgOptions& options = {});

} // namespace stagecraft::engine
