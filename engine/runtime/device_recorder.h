// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI recorded of a run, on its way into the run's trace: batches come from CUPTI's flush thread, and the collector turns them
// into lanes beneath the ranks, with the numbers of its stream. What is missing is counted.
//
//   DeviceRecorder device(builder, {.run = session.run(), .stageToRank = ...}, {.calls = session.recordsCalls()});
//   device.add(batch, out);       // the collector, after the events that it has
//   device.finish(out);           // the last batch is in
#pragma once

#include "engine/probe/cupti/activity_join.h"
#include "engine/probe/cupti/device_lanes.h"
#include "traces/base/trace_level.h"

#include <string>
#include <vector>

namespace stagecraft::runtime {

struct DeviceRecorderOptions {
    bool calls = false;                                     // of the host come with the launches
    traces::TraceLevel level = traces::TraceLevel::Kernels; // Api: calls have lanes as well
};

class DeviceRecorder {
public:
    // `numbers` stays where it is.
    DeviceRecorder(RecordNumbers& numbers, RankPlacement placement, const DeviceRecorderOptions& options);

    void beginStep(traces::Step step) { ranks_.setStep(step); }
    void add(const ActivityBatch& batch, std::vector<traces::Record>& out);
    void finish(std::vector<traces::Record>& out);

private:
    void put(std::vector<traces::Record>& out);

    DevicePlaceRanks ranks_;
    ActivityJoin join_;
    DeviceLanes lanes_;
    ActivityCounts counts_;
    std::vector<JoinedActivity> joined_; // of a batch
};

} // namespace stagecraft::runtime
