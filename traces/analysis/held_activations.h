// SPDX-License-Identifier: Apache-2.0
//
// Of which stages and micro-batches the activations are that a rank holds at a moment, from its memory series and its slices.
//
//   measured    what is added or given back while an action runs belongs to its micro-batch: a rank does one thing at a time
//   simulated   an action takes at its begin and gives back at its end, the same for every micro-batch of a stage. Several such
//               moments may be one, so what each action of a stage changes is learnt where it is the only unknown.
#pragma once

#include "traces/analysis/memory_peaks.h"
#include "traces/analysis/step_view.h"

namespace stagecraft::traces {

struct HeldAtMoment {
    std::vector<HeldActivations> held; // by direction, stage and micro-batch
    Bytes unexplained = 0;             // the rest of the series' value
};

// `from` is the begin of the step: what was held before it is unexplained.
HeldAtMoment heldAt(const Trace& trace, const RankView& rank, TimeNs from, TimeNs moment);

} // namespace stagecraft::traces
