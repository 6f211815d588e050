// SPDX-License-Identifier: Apache-2.0
//
// One run from its start to its end: recorder, control, and the controller's thread that builds the stages, executes the
// steps and sums up. Owned by the session.
//
//   Run run(runnable, options, inbox, state);     // all that may fail before it goes on, in one process of several
//   run.begin();
#pragma once

#include "engine/runtime/device_watch.h"
#include "engine/runtime/local_session.h"
#include "engine/runtime/process_run.h"
#include "engine/runtime/run_control.h"
#include "engine/runtime/run_recorder.h"
#include "engine/runtime/runnable.h"
#include "engine/runtime/trouble.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace stagecraft::runtime {

class Run {
public:
    // `state` is the session's; the run is the only one to write it until the destructor returns.
    Run(RunnablePlan runnable, const LocalSessionOptions& options, RecordInbox& inbox,
        std::atomic<engine::SessionState>& state);
    ~Run(); // stops and joins; a run that was not begun leaves nothing behind in other processes
    void begin();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    RunControl& control() { return control_; }
    void pause();
    void resume();
    void trouble(const engine::StageTrouble& trouble);
    void stop(); // no more than a word to a run that is over

    // Stops, and waits for the end. False where a rank hangs in a GPU and was given up: then nothing of the run may go away any more.
    [[nodiscard]] bool settle();
    // After the end: why its process can have no other one (Session::spent()).
    [[nodiscard]] const std::string& spent() const { return spent_; }

private:
    enum class Start : std::uint8_t { Awaited, Given, Denied };

    void execute();
    void trainSteps();
    bool claimEnd(); // true once
    void end();      // of who has claimed it
    void lookAtDevices(const std::stop_token& stop);
    void giveUp(const DeviceWatch::Awaited& silent);
    void enterState(engine::SessionState state); // not over Stopping
    void say(const engine::SessionMessage& message);
    void hear(engine::SessionState state); // of the control
    std::vector<traces::Record> closingRecords(); // the trace of all processes, where there are several, and the result
    std::optional<traces::Trace> gatherTrace(); // of all processes; nothing in one

    RunnablePlan runnable_;
    LocalSessionOptions options_;
    const Clock& clock_;
    std::atomic<engine::SessionState>& state_;
    RecordInbox& inbox_;
    RunRecorder recorder_;
    RunControl control_;
    Trouble trouble_;
    std::optional<ProcessRun> processes_; // mode processes
    std::vector<std::vector<std::int64_t>> outputs_;
    engine::GradientCheck check_ = engine::GradientCheck::Off;
    double maxAbsDiff_ = 0;
    double peakFlops_ = 0;
    std::optional<engine::TextLearned> text_;
    std::vector<engine::StageActivations> stageActivations_;
    std::vector<engine::Bytes> peakActivations_; // by rank
    const char* phase_ = "building the stages"; // what a failure without a place happened in
    std::mutex stateMutex_; // guards changes of state_, each with its record, until the run is over
    bool over_ = false;     // guarded by it: nothing changes the state any more but the end
    std::atomic<Start> start_{Start::Awaited};
    std::optional<DeviceWatch> watch_; // of a run on GPUs
    std::string spent_;
    bool givenUp_ = false;
    std::atomic<bool> ended_{false}; // the two above are what they will be
    std::jthread controller_;
    std::jthread lookout_; // at watch_
};

} // namespace stagecraft::runtime
