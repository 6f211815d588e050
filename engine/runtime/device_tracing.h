// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's recording of one run: from its making until the run's steps are over. What keeps it from recording is a note of the run, which
// goes on without.
//
//   DeviceTracing tracing(runnable, options, recorder);   // before the first tensor on a GPU
//   executions.push_back({..., .marks = tracing.marks()});
//   tracing.end();                                              // the devices are through
#pragma once

#include "engine/probe/cupti/cupti_session.h"
#include "engine/runtime/local_session.h"
#include "engine/runtime/run_recorder.h"
#include "engine/runtime/runnable.h"

namespace stagecraft::runtime {

class DeviceTracing {
public:
    // Nothing is recorded where the plan asks for no kernels.
    DeviceTracing(const RunnablePlan& runnable, const LocalSessionOptions& options, RunRecorder& recorder);
    ~DeviceTracing() { end(); }
    DeviceTracing(const DeviceTracing&) = delete;
    DeviceTracing& operator=(const DeviceTracing&) = delete;

    [[nodiscard]] const WorkMarks* marks() const { return session_ != nullptr ? &session_->marks() : nullptr; }
    void end();

private:
    traces::Expected<void> begin(const RunnablePlan& runnable, const LocalSessionOptions& options);

    CuptiSession* session_ = nullptr; // that records
    std::size_t known_ = 0;           // notes of earlier runs
    RunRecorder& recorder_;
};

} // namespace stagecraft::runtime
