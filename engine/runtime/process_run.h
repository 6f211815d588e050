// SPDX-License-Identifier: Apache-2.0
//
// What makes one run of the runs in several processes: the end of one, with its reason, is the end of all; rank 0's pauses and the trouble
// that it makes are everybody's; rank 0 learns how the others' clocks stand to its own and gathers the parts of the trace. Lives as long as the run; see docs/processes.md.
//
//   ProcessRun all(group, {control, recorder, trouble, clock});
//   all.pause();                                  // rank 0
//   all.alignClocks();                            // rank 0, while the others wait
//   std::vector<std::string> parts = all.gather(recorder.takeJournal());
#pragma once

#include "engine/runtime/run_control.h"
#include "engine/runtime/run_recorder.h"
#include "engine/runtime/trouble.h"
#include "engine/transport/process_group.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace stagecraft::runtime {

class ProcessRun final : private PostOffice::Receiver {
public:
    struct Parts {
        RunControl& control;
        RunRecorder& recorder;
        Trouble& trouble;
        const Clock& clock;
        std::function<void()> paused; // rank 0: all have; it must not call back
    };
    ProcessRun(ProcessGroup& group, const Parts& parts);
    ~ProcessRun() override;

    [[nodiscard]] ProcessGroup& group() const { return group_; }
    [[nodiscard]] int rank() const { return group_.rank(); }

    // Rank 0: for all. The others do as they are told.
    void pause();
    void resume();
    void trouble(const engine::StageTrouble& trouble);
    // This process is paused, or was and goes on. That all are paused is known by paused().
    void rested();
    void wentOn();

    [[nodiscard]] bool ending() const { return parts_.control.ending(); }

    // Rank 0, while the others wait for mail: puts a reading of every clock that is not its own into the parts of their ranks.
    void alignClocks();

    // This process is through with its steps: how its run is put away from now on is no end for the others.
    // An end that has begun is told before: the steps may see it first.
    void close();

    // The others' parts of the trace, by rank, and one's own; of other ranks than 0 nothing. Nothing as well where one is lost.
    std::vector<std::string> gather(std::string own);

private:
    void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) override;
    void tellEnd();
    void endAs(const std::string& text, int from);
    void takeClock(const std::string& text);
    void pauseHere(int number);
    void tellRested(int number);
    void noteRested(int rank, int number);

    ProcessGroup& group_;
    Parts parts_;
    std::atomic<bool> endTold_{false}; // the others know, or need not

    std::mutex mutex_; // guards all below
    // Pauses are numbered: that a rank has rested may be heard long after, when the next one is asked for already.
    int pause_ = 0;
    bool pausing_ = false; // rank 0: asked for, and not yet over
    bool atRest_ = false;  // this process
    std::vector<bool> rested_; // rank 0: of all, in this pause
    std::optional<TimeNs> answer_; // of the last question for the time
};

} // namespace stagecraft::runtime
