// SPDX-License-Identifier: Apache-2.0
//
// One recording of what the GPU does, by the engine's own session, decoder and join, with an ear at CUPTI's functions: what the library
// answered, and its buffers as they came. One per process, made before CUDA is used.
//
//   auto recording = Recording::attach({.bufferKib = 64}).value();
//   ... warm up ...
//   recording->start(TraceLevel::Kernels);
//   { const WorkScope scope(&recording->marks(), step, work); launch(); }
//   synchronize();
//   const Recorded& all = recording->stop();
#pragma once

#include "engine/probe/cupti/activity_join.h"
#include "engine/probe/cupti/cupti_session.h"
#include "tests/gpu/activity_file.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::gpu {

using traces::TimeNs;

struct RecordingOptions {
    int bufferKib = 128;
    int flushMs = 50;
    bool launchingCalls = true; // false: the calls that launch are refused, so that kernels are recorded alone
    bool hostClock = true;      // false: the host's clock is refused, so that its offset is measured
};

struct Recorded {
    std::vector<runtime::JoinedActivity> activities;
    std::vector<TimeNs> seen; // when the batch came in that had it, by activity
    std::vector<std::string> names;
    runtime::ActivityCounts counts;
    std::int64_t unattributed = 0;
    std::vector<std::string> notes;

    [[nodiscard]] const std::string& nameOf(const runtime::KernelActivity& kernel) const;
};

class Recording {
public:
    static Expected<std::unique_ptr<Recording>> attach(const RecordingOptions& options);

    Expected<void> start(traces::TraceLevel level);
    const Recorded& stop(); // the device has nothing left to do

    [[nodiscard]] const runtime::WorkMarks& marks() const { return session_->marks(); }
    // CUPTI's answer to the host's clock; 0: taken. None where it was not asked.
    [[nodiscard]] static std::optional<int> clockAnswer();
    // Of what has been recorded so far.
    Expected<void> save(const std::filesystem::path& to) const;

private:
    std::shared_ptr<const runtime::CuptiLibrary> library_;
    std::optional<runtime::ActivityJoin> join_; // of the flush thread until stop()
    Recorded recorded_;
    std::unique_ptr<runtime::CuptiSession> session_; // last: its thread uses the others
};

} // namespace stagecraft::gpu
