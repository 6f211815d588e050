// SPDX-License-Identifier: Apache-2.0
//
// One trace from the parts that ranks in processes of their own wrote, each by its own clock. Times move to rank 0's clock; what a
// rank sent and another one received becomes one hand-off, on the sender's side from the producer's end to the arrival, with its edge
// from the producer to the consumer. In a part, what came from elsewhere is a RECV of no length when it was there, with an edge to its
// consumer. A sum of replicas waits for the one that gives last, wherever that is: in a part it has an edge from the part's own backward.
//
//   rank 0   F0 |SEND_F0|                    F0 |--SEND_F0--|
//   rank 1              |RECV_F0| F0   -->                  F0
//
//   Expected<Trace> whole = mergeRanks(parts, files);
#pragma once

#include "traces/store/trace.h"

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

// Whether the trace holds one rank of a run that has more: what mergeRanks() takes.
[[nodiscard]] bool isRankPart(const Trace& trace);

// Runs of one plan are alike but for this: each has an identity that its ranks agree upon, and each rank keeps it in its part as a piece of
// information, which any form of a trace keeps. The whole is without it.
[[nodiscard]] std::string partOfRun(std::string_view identity);
[[nodiscard]] std::string_view runOfPart(const Trace& part); // the identity; empty in a part that was written before there was one

// An error where the parts are none, not of one run, or not what a rank writes; it calls them by `names`, the files that they are from, or
// else by their ranks. A rank whose part is missing is told in a note; a step that not all parts have finished is left without its span.
Expected<Trace> mergeRanks(const std::vector<Trace>& parts, const std::vector<std::string>& names = {});

} // namespace stagecraft::traces
