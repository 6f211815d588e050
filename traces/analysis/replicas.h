// SPDX-License-Identifier: Apache-2.0
//
// Replicas of a pipeline in a trace of all of them (data parallelism). The placement of the stages is that of one; the ranks of
// replica j are numbered from j times the ranks of one on.
//
//   replicaOf(trace.info, Rank{5})     // 1, where a pipeline has 4 ranks
//   rankInReplica(trace.info, Rank{5}) // rank 1 of it
#pragma once

#include "traces/store/trace.h"

#include <algorithm>

namespace stagecraft::traces {

// Of one replica: as many as its stages lie on, and all where their places are not known.
inline int ranksOfReplica(const TraceInfo& info)
{
    int ranks = 0;
    for (const std::vector<Rank>* placement : {&info.stageToRank, &info.upStageToRank})
        for (const Rank rank : *placement) ranks = std::max(ranks, rank.value + 1);
    return ranks > 0 ? ranks : std::max(info.ranks, 1);
}

inline int replicasOf(const TraceInfo& info)
{
    const int ranks = ranksOfReplica(info);
    return info.ranks > 0 && info.ranks % ranks == 0 ? info.ranks / ranks : 1;
}

inline int replicaOf(const TraceInfo& info, Rank rank) { return replicasOf(info) == 1 ? 0 : rank.value / ranksOfReplica(info); }

inline Rank rankInReplica(const TraceInfo& info, Rank rank)
{
    return replicasOf(info) == 1 ? rank : Rank{rank.value % ranksOfReplica(info)};
}

} // namespace stagecraft::traces
