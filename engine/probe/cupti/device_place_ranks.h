// SPDX-License-Identifier: Apache-2.0
//
// Whose work a device does: of what is marked, the rank of the marked stage; else the rank whose marked work ran on that
// stream before; else what was said of the stream beforehand. One thread.
//
//   DevicePlaceRanks ranks({.run = session.run(), .stageToRank = info.stageToRank});
//   const Attribution whose = ranks.of(joined);      // whose.work: none where it is not marked
#pragma once

#include "engine/probe/cupti/activity_join.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace stagecraft::runtime {

struct RankPlacement {
    std::uint32_t run = 0; // CuptiSession::run(): marks of an earlier one are none
    std::vector<traces::Rank> stageToRank;        // as in TraceInfo
    std::vector<traces::Rank> upStageToRank = {}; // of the other direction, where there are two
    int ranksPerReplica = 0;                      // the ranks of replica j come behind those of replica j - 1
    std::map<std::uint32_t, traces::Rank> deviceToRank = {}; // of what nobody marked on a stream that nobody marked
    traces::Rank otherwise{0};
    std::set<traces::Work> beside = {}; // whose blocks lie on the second lane of their rank: forwards of overlapped pairs
};

struct Attribution {
    traces::Rank rank{};
    std::optional<MarkedWork> work; // with the whole number of its step
    bool beside = false;            // the work is one of those
    bool known = false;             // the rank is one that was marked, here or before on this stream
};

class DevicePlaceRanks {
public:
    explicit DevicePlaceRanks(RankPlacement placement) : placement_(std::move(placement)) {}

    // The step that runs, from which that of a mark is told (stepNear).
    void setStep(traces::Step step) { newest_ = step; }

    Attribution of(const JoinedActivity& joined);

private:
    [[nodiscard]] std::optional<traces::Rank> rankOf(const MarkedWork& marked) const;

    RankPlacement placement_;
    traces::Step newest_{};
    std::map<DevicePlace, traces::Rank> streams_;
    std::map<std::uint32_t, traces::Rank> threads_; // that make calls
};

} // namespace stagecraft::runtime
