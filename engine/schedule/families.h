// SPDX-License-Identifier: Apache-2.0
//
// The generators behind generate(): one file per family, which says what the family is and makes its schedules, as a pure
// function of a request that checkRequest() has passed. What a family needs beyond the ranges and its chunk counts it says in
// a check of its own. Each looks at the request's stop before it fills the list of a rank, and leaves the rest where it is
// asked for: generate() then gives no schedule at all.
//
//   Generator gpipe();   // in gpipe.cpp, and a line in the list of generate.cpp
#pragma once

#include "engine/schedule/schedule.h"

#include <initializer_list>
#include <limits>

namespace stagecraft::engine {

struct Generator {
    ScheduleFamily family;
    Schedule (*generate)(const ScheduleRequest&);
    Expected<void> (*check)(const ScheduleRequest&) = nullptr;
    std::vector<Rank> (*placement)(int ranks, int chunks) = &loopPlacement;
};

inline constexpr int kAnyChunks = std::numeric_limits<int>::max();

Generator naive();
Generator gpipe();
Generator gpipeLifo();
Generator oneFOneB();
Generator eagerOneFOneB();
Generator bPipe();
Generator interleaved();
Generator loopedBfs();
Generator zbH1();
Generator zbH2();
Generator zbAuto();
Generator interleavedZb();
Generator zbV();
Generator zbVAuto();
Generator vHalf();
Generator vMin();
Generator oneFOneBV();
Generator dualPipe();
Generator dualPipeV();
Generator hanayo();
Generator chimera();
Generator seq1F1B();
Generator pipeDream();
Generator pipeDream2Bw();
Generator forwardOnly();

// All of them, in the order of the command line contract.
const std::vector<Generator>& generators();

// What a message may offer: "; use 6 or 8", of the values those that can stand in the place of the number. Where none can, for
// something else is wrong as well, `otherwise`.
std::string offer(ScheduleRequest request, int ScheduleRequest::*number, std::initializer_list<int> values, std::string_view otherwise = {});

// A schedule without actions: name, sizes and placement are set, each rank's list has room for `perRank` actions.
Schedule emptySchedule(const ScheduleRequest& request, std::vector<Rank> placement, std::size_t perRank);
Schedule emptySchedule(const ScheduleRequest& request, std::size_t perRank); // laid in a loop

} // namespace stagecraft::engine
