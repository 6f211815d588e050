// SPDX-License-Identifier: Apache-2.0
//
// Which weights a micro-batch goes by in an asynchronous schedule. Version u of a stage's weights is what u updates made of the
// first ones, version 0.
//   Stashed (PipeDream, arXiv 1806.03377): a forward takes the newest version of its stage, and its backward the same one. A stage
//     keeps a version for each micro-batch in flight, the first ones being copies of version 0: on rank r of a full pipeline p-r of
//     them, and gradients are p-1-r updates late.
//   VerticalSync (the same paper, sec. 3.3): on all stages a micro-batch goes by the version that the first stage has as the newest when
//     it enters: w(t+1) = w(t) - lr * grad f(w_1(t-p+1), ..., w_p(t-p+1)). All gradients are p-1 updates late, and every stage keeps p
//     versions.
//   DoubleBuffered (PipeDream-2BW, arXiv 2006.09503, eq. of sec. 3.1): group k takes version max(0, k-1) everywhere. Two versions are
//     kept, and gradients are one update late.
//   Flush: one version for all.
// A pure function; precondition: validate() finds no error in the schedule.
//
//   weightVersions(generate({.name = "pipedream", .ranks = 4, .microbatches = 8}).value())[0].kept == 4
#pragma once

#include "engine/schedule/schedule.h"

#include <vector>

namespace stagecraft::engine {

struct StageVersions {
    int kept = 1;      // versions held at once at most, the newest included
    int staleness = 0; // updates that a gradient comes late by, at most: between the version it is of and the one that it changes
    int updates = 0;   // in the whole schedule
    std::vector<int> version = {}; // by micro-batch
    bool operator==(const StageVersions&) const = default;
};

// By stage. Of two directions, which are synchronous, both go by one version, and `version` has the micro-batches of both.
std::vector<StageVersions> weightVersions(const Schedule& schedule);

// Of a rank with several stages: the most that one of them keeps, and the largest staleness.
StageVersions versionsOfRank(const Schedule& schedule, const std::vector<StageVersions>& stages, Rank rank);

// Of VerticalSync: by micro-batch, the updates that the first stage has had before its forward. Else empty. Of any schedule whose
// micro-batches are in range.
std::vector<int> versionsAtEntry(const Schedule& schedule);

} // namespace stagecraft::engine
