// SPDX-License-Identifier: Apache-2.0
//
// The recording of one run. Rank threads push plain events into their own ring and never wait; one collector thread turns
// them into records every kPeriod and passes them to the inbox. What is rare (steps, pauses, messages) is posted as records
// from any thread and keeps its order: it comes after every event that was pushed before it was posted.
//
//   RunRecorder recorder(schedule, 1 << 14, inbox);
//   recorder.start(info);
//   recorder.ring(rank).push(actionEvent(step, work, times));
//   recorder.post(StepRecord{...});
//   recorder.finish();            // the rank threads have ended
//   recorder.totals()             // what of it the summary needs
#pragma once

#include "engine/probe/event_ring.h"
#include "engine/runtime/device_recorder.h"
#include "engine/runtime/record_builder.h"
#include "engine/runtime/record_inbox.h"
#include "engine/runtime/run_totals.h"
#include "traces/format/journal.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

class RunRecorder {
public:
    // A third of the 50 ms after which a live event must be visible.
    static constexpr std::chrono::milliseconds kPeriod{16};
    // So many records may wait for the caller; then events stay in their rings, and what does not fit there is counted.
    static constexpr std::size_t kInboxLimit = std::size_t{1} << 20;

    // `only`: the rank of this process, where the others are in processes of their own; its journal is then kept.
    RunRecorder(const engine::Schedule& schedule, std::size_t ringCapacity, RecordInbox& inbox, int replicas = 1,
                std::optional<traces::Rank> only = {});

    // Starts the collector; the stream opens with `info` and the lanes.
    void start(const traces::TraceInfo& info);
    void post(traces::Record record);
    // Activities of a GPU, in batches from any thread, one at a time; the last one comes before finish(). They wait until watchDevice()
    // has said whose they are.
    void watchDevice(RankPlacement placement, const DeviceRecorderOptions& options);
    void post(ActivityBatch batch);
    void post(OperatorBatch batch);
    EventRing<RunEvent>& ring(traces::Rank rank) { return *rings_[traces::index(rank)]; }
    // Of the collectives of a rank, which a thread beside it executes.
    EventRing<RunEvent>& collectiveRing(traces::Rank rank) { return *collectiveRings_[traces::index(rank)]; }
    // Joins the collector; everything recorded is in the inbox afterwards.
    void finish();

    [[nodiscard]] const RunTotals& totals() const { return totals_; } // after finish()
    std::string takeJournal() { return std::move(journal_); } // after finish(); empty where it is not kept

private:
    void collect(const std::stop_token& stop);
    void collectOnce(bool last = false);

    RecordBuilder builder_;
    std::vector<std::unique_ptr<EventRing<RunEvent>>> rings_;
    std::vector<std::unique_ptr<EventRing<RunEvent>>> collectiveRings_;
    RecordInbox& inbox_;
    RunTotals totals_;              // collector's
    std::int64_t lostReported_ = 0; // collector's
    std::string journal_;           // collector's
    std::optional<traces::JournalWriter> writer_;

    std::mutex mutex_; // guards posted_, batches_ and operators_
    std::condition_variable_any wake_;
    std::vector<traces::Record> posted_;
    std::vector<ActivityBatch> batches_; // of a GPU
    std::vector<OperatorBatch> operators_;
    std::optional<DeviceRecorder> device_; // the collector's once it is there
    std::jthread collector_; // last: joined before what it uses goes away
};

} // namespace stagecraft::runtime
